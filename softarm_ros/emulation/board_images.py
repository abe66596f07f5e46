"""Render images of a calibration board as a camera sees it, with a ray for every pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose
from softarm_ros.perception.stereo.boards import Board
from softarm_ros.perception.stereo.cameras import Side, StereoCameras
from softarm_ros.perception.stereo.images import Image, opencv

_TEXELS_PER_SQUARE = 60
_GREY_OF_ROOM = 60.0
_RAYS = 2  # per pixel, across and down: grey edges average the rays of their pixel


@dataclass(frozen=True)
class PixelRays:
    """Rays of a camera, four per pixel: start points and unit vectors (n, 3) in the left frame."""

    size: tuple[int, int]
    starts: Array
    rays: Array


def pixel_rays(cameras: StereoCameras, side: Side) -> PixelRays:
    """Return the rays of every pixel of a camera, for use with all its images."""
    width, height = cameras.camera(side).size
    fine = (np.arange(_RAYS) + 0.5) / _RAYS - 0.5
    x = (np.arange(width)[:, None] + fine).ravel()
    y = (np.arange(height)[:, None] + fine).ravel()
    pixels = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return PixelRays((width, height), *cameras.rays(side, pixels))


def board_image(
    view: PixelRays,
    board: Board,
    X_LO: Array,
    noise: np.random.Generator,
    noise_grey: float = 2.0,
    black: float = 25.0,
    white: float = 220.0,
) -> Image:
    """
    Return the image of a board that a camera takes.

    Parameters
    ----------
    view : PixelRays
        Rays of the camera.
    board : Board
        Board to render, as `Board.draw` draws it.
    X_LO : (4, 4)
        Pose of the board in the left camera's frame.
    noise : Generator
        Generator of the sensor's noise.
    noise_grey : float
        Standard deviation of the noise.
    black, white : float
        Grey levels of the black and white squares.

    """
    width, height = view.size
    X_OL = inverse_pose(X_LO)
    start = view.starts @ X_OL[:3, :3].T + X_OL[:3, 3]
    ray = view.rays @ X_OL[:3, :3].T
    with np.errstate(all='ignore'):
        reach = -start[:, 2] / ray[:, 2]
        on_board = start[:, :2] + reach[:, None] * ray[:, :2]
    # The first inner corner is two squares from the picture's edge: the margin and one square.
    # It lies between texels; the centres of texels have whole-number coordinates.
    place = on_board / board.square_m * _TEXELS_PER_SQUARE + 2.0 * _TEXELS_PER_SQUARE - 0.5
    place[~(reach > 0.0)] = np.nan
    light = np.full(len(ray), _GREY_OF_ROOM)
    seen = _sampled(board, place.reshape(height * _RAYS, width * _RAYS, 2)).ravel()
    inside = np.isfinite(seen)
    light[inside] = black + (white - black) * seen[inside] / 255.0
    light = light.reshape(height, _RAYS, width, _RAYS).mean(axis=(1, 3))
    light += noise.normal(0.0, noise_grey, light.shape)
    image: Image = np.clip(np.rint(light), 0, 255).astype(np.uint8)
    return image


def _sampled(board: Board, place: Array) -> Array:
    """
    Return the grey levels of a board's picture at texel coordinates (rows, columns, 2).

    Places outside the picture give NaN. The picture is first blurred by half the distance of
    neighbouring rays, so that the grey level of an edge depends on its exact position.
    """
    cv2 = opencv()
    picture = board.draw(_TEXELS_PER_SQUARE)
    height, width = picture.shape
    with np.errstate(invalid='ignore'):
        within = (place > -0.5) & (place < (width - 0.5, height - 0.5))
    inside = within[..., 0] & within[..., 1]
    steps = np.linalg.norm(np.diff(place, axis=1), axis=2)[inside[:, 1:] & inside[:, :-1]]
    if not steps.size:
        return np.full(place.shape[:2], np.nan)
    soft = cv2.GaussianBlur(picture.astype(np.float32), (0, 0), 0.5 * float(np.median(steps)))
    x, y = (np.where(inside, place[..., k], 0.0).astype(np.float32) for k in range(2))
    seen = cv2.remap(soft, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.where(inside, seen.astype(np.float64), np.nan)
