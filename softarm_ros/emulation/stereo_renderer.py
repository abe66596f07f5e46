"""
A pair of cameras looks at an arm: a tube with bright balls, through lens, window, blur and noise.

Balls are drawn by the outline they really have (a ball seen off the axis is no circle), covered to
a fraction of each pixel; what is nearer hides what is behind it, the arm its own markers too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.emulation.ball_kernels import cover_ellipse
from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.images import Image, opencv

_OUTLINE = 16  # points on the outline of a ball
_FRACTION_BITS = 6
_RIM_PX = 6  # that blur reaches
_NOISE_BANK = 7  # spare pixels, by which the bank of noise is shifted at random


@dataclass(frozen=True)
class ArmLooks:
    """What the arm looks like, and what the sensor of a camera adds."""

    tube_radius_m: float = 0.012
    marker_diameter_m: float = 0.008
    background_grey: float = 30.0
    tube_grey: float = 75.0
    marker_grey: float = 225.0
    blur_px: float = 0.7
    noise_grey: float = 3.0


class StereoRenderer:
    """
    Draws what both cameras see of an arm.

    Parameters
    ----------
    cameras : StereoCameras
        With the pose of the base, and the window if there is one.
    looks : ArmLooks
    seed : int
        Of the noise.

    """

    def __init__(self, cameras: StereoCameras, looks: ArmLooks, seed: int) -> None:
        self.cameras = cameras
        self.looks = looks
        self._random = np.random.default_rng(seed)
        cv2 = opencv()
        # Load what is compiled now, not at the first exposure.
        cover_ellipse(np.zeros((4, 4), dtype=np.float32), 1.0 + np.eye(3, 2), 1.0)
        self._bank = {side: self._noise(cameras.camera(side).size) for side in SIDES}
        self._ground: dict[Side, Image] = {
            side: cv2.convertScaleAbs(cv2.max(bank + np.float32(looks.background_grey), 0.0))
            for side, bank in self._bank.items()
        }

    def draw(
        self, centreline_B: Array, markers_B: Array, boxes_B: Sequence[Array] = ()
    ) -> tuple[Image, Image]:
        """
        Return the left and the right image.

        Parameters
        ----------
        centreline_B : (n, 3)
            From base to tip, in the base frame [m].
        markers_B : (m, 3)
            Middles of the balls.
        boxes_B
            Outlines (k, 3) of flat things before the arm, as a hand or a frame is: they hide.

        """
        X_LB = self.cameras.base_pose()
        line, balls = (p @ X_LB[:3, :3].T + X_LB[:3, 3] for p in (centreline_B, markers_B))
        boxes = [box @ X_LB[:3, :3].T + X_LB[:3, 3] for box in boxes_B]
        left, right = (self._seen(side, line, balls, boxes) for side in SIDES)
        return left, right

    def _seen(self, side: Side, line: Array, balls: Array, boxes: Sequence[Array]) -> Image:
        cv2 = opencv()
        width, height = self.cameras.camera(side).size
        X_LC = self.cameras.pose(side)

        def depth(points: Array) -> Array:
            return (points - X_LC[:3, 3]) @ X_LC[:3, 2]

        middles = 0.5 * (line[1:] + line[:-1])
        drawn = [(z, 0, k) for k, z in enumerate(depth(middles))]
        drawn += [(z, 1, k) for k, z in enumerate(depth(balls))]
        drawn += [(float(z.mean()), 2, k) for k, z in enumerate(map(depth, boxes))]
        sides = self._tube_sides(side, line, X_LC[:3, 3])
        outlines = self._ball_outlines(side, balls, X_LC[:3, 3])
        flat = [self.cameras.project(side, box) for box in boxes]
        x, y = self._random.integers(0, _NOISE_BANK, 2)
        shown: Image = self._ground[side][y : y + height, x : x + width].copy()
        # Only where something is drawn is there more to do than the ground and its noise.
        part = _around([*sides, outlines.reshape(-1, 2), *flat], (width, height))
        if part is None:
            return shown
        rows, columns = part
        shift = np.array([columns.start, rows.start], dtype=np.float64)
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        image = np.full(shape, self.looks.background_grey, dtype=np.float32)
        for _, kind, k in sorted(drawn, reverse=True):  # the farthest first
            if kind == 1:
                if np.isfinite(outlines[k]).all():
                    cover_ellipse(image, outlines[k] - shift, self.looks.marker_grey)
                continue
            if kind == 0:
                corners = np.array([sides[0][k], sides[0][k + 1], sides[1][k + 1], sides[1][k]])
            else:
                corners = flat[k]
            if np.isfinite(corners).all():
                fixed = np.rint((corners - shift) * (1 << _FRACTION_BITS)).astype(np.int32)
                hull = cv2.convexHull(fixed.reshape(-1, 1, 2))
                cv2.fillConvexPoly(image, hull, self.looks.tube_grey, cv2.LINE_8, _FRACTION_BITS)
        if self.looks.blur_px > 0.0:
            image = cv2.GaussianBlur(image, (0, 0), self.looks.blur_px)
        bank = self._bank[side]
        image += bank[y + rows.start : y + rows.stop, x + columns.start : x + columns.stop]
        shown[rows, columns] = cv2.convertScaleAbs(cv2.max(image, 0.0))  # rounds, stops at 255
        return shown

    def _tube_sides(self, side: Side, line: Array, eye: Array) -> tuple[Array, Array]:
        """Return where both edges of the tube (n, 2) appear."""
        along = np.gradient(line, axis=0)
        across = np.cross(along, line - eye)
        across *= self.looks.tube_radius_m / np.linalg.norm(across, axis=1, keepdims=True)
        return self.cameras.project(side, line + across), self.cameras.project(side, line - across)

    def _ball_outlines(self, side: Side, balls: Array, eye: Array) -> Array:
        """Return points (m, 16, 2) on the outline of each ball: where rays touch it."""
        radius = 0.5 * self.looks.marker_diameter_m
        window = self.cameras.window
        if window is None:
            away = balls - eye
            starts = np.broadcast_to(eye, balls.shape)
        else:
            # Rays in water come from near where the one to the middle leaves the glass, seen from
            # as far behind it as makes the cone of rays as wide as it is.
            starts, rays = window.rays_in_water(eye, window.directions_to(eye, balls))
            path = np.linalg.norm(balls - starts, axis=1, keepdims=True)
            dry = np.linalg.norm(starts - eye, axis=1, keepdims=True)
            away = rays * (path + dry * window.water / window.air)
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        ray = away / distance
        first = np.cross(ray, (0.0, 1.0, 0.0))
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        second = np.cross(ray, first)
        sine = radius / distance
        middle = balls - ray * (radius * sine)
        wide = radius * np.sqrt(1.0 - sine**2)
        turn = 2.0 * np.pi * np.arange(_OUTLINE) / _OUTLINE
        points = middle[:, None] + wide[:, None] * (
            np.cos(turn)[:, None] * first[:, None] + np.sin(turn)[:, None] * second[:, None]
        )
        shown = self.cameras.project(side, points.reshape(-1, 3))
        return shown.reshape(len(balls), _OUTLINE, 2)

    def _noise(self, size: tuple[int, int]) -> NDArray[np.float32]:
        shape = (size[1] + _NOISE_BANK, size[0] + _NOISE_BANK)
        return self._random.normal(0.0, self.looks.noise_grey, shape).astype(np.float32)


def _around(drawn: Sequence[Array], size: tuple[int, int]) -> tuple[slice, slice] | None:
    """Return the rows and columns of an image that points (n, 2) lie in, with a rim."""
    points = np.concatenate(drawn)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return None
    limits = np.array(size)
    low = np.clip(np.floor(points.min(axis=0)).astype(int) - _RIM_PX, 0, limits)
    high = np.clip(np.ceil(points.max(axis=0)).astype(int) + _RIM_PX + 1, 0, limits)
    if (low >= high).any():
        return None
    return slice(int(low[1]), int(high[1])), slice(int(low[0]), int(high[0]))
