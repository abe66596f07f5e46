"""A camera's focal lengths, centre and lens from images of a board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose
from softarm_ros.perception.stereo import fit_quality
from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.camera import Camera, CameraError, Mask
from softarm_ros.perception.stereo.images import opencv

FEWEST = 3


@dataclass(frozen=True)
class CameraFit:
    """
    A calibrated camera and how well it fits.

    Attributes
    ----------
    camera : Camera
        Least squares of the reprojection errors of all corners.
    views : tuple of BoardView
        What it was fitted to.
    poses : (n, 4, 4)
        Of the board in the camera's frame, an image each.
    residuals : tuple of (corners, 2)
        Seen less expected, an image each [px].
    focal_sd_px, centre_sd_px : (2,)
        Standard deviations, as the residuals give them.
    outliers : tuple of str
        Names of the images that stand out.
    dropped : tuple of str
        Names of those that stood out and were left out.

    """

    camera: Camera
    views: tuple[BoardView, ...]
    poses: Array
    residuals: tuple[Array, ...]
    focal_sd_px: Array
    centre_sd_px: Array
    outliers: tuple[str, ...]
    dropped: tuple[str, ...] = ()

    @property
    def errors_px(self) -> Array:
        """Root-mean-square distance of corners from where they should be, an image each (n,)."""
        return np.array([np.sqrt((r**2).sum(axis=1).mean()) for r in self.residuals])

    @property
    def rms_px(self) -> float:
        """The same over all images."""
        return float(np.sqrt((np.concatenate(self.residuals) ** 2).sum(axis=1).mean()))

    @property
    def coverage(self) -> Mask:
        """Which cells of the image have seen a corner."""
        return fit_quality.coverage(self.views, self.camera.size)

    @property
    def tilts_deg(self) -> list[float]:
        """Of the board against the view, an image each."""
        return [fit_quality.tilt_deg(X[:3, :3]) for X in self.poses]

    @property
    def warnings(self) -> list[str]:
        """What is poor about the images."""
        return fit_quality.warnings(
            self.camera.name, len(self.views), self.coverage, self.tilts_deg
        )


def calibrate_camera(
    board: Board,
    views: Sequence[BoardView],
    size: tuple[int, int],
    name: str,
    *,
    rational: bool = False,
    drop_outliers: bool = False,
) -> CameraFit:
    """
    Fit a camera to images of a board.

    Parameters
    ----------
    board : Board
        In all of them.
    views
        Its corners, an image each.
    size : (int, int)
        Width and height of the images [px].
    name : str
        Of the camera.
    rational : bool
        With k4 to k6, for wide lenses; needs corners all over the image.
    drop_outliers : bool
        Leave out images that stand out and fit again, until none does.

    Raises
    ------
    CameraError
        If there are fewer than three images, or they show the board at fewer than three places;
        if no camera fits them.

    """
    kept = list(views)
    dropped: list[str] = []
    while True:
        fit = _fitted(board, kept, size, name, rational)
        if not (drop_outliers and fit.outliers) or len(kept) - len(fit.outliers) < FEWEST:
            break
        dropped += fit.outliers
        kept = [view for view in kept if view.name not in fit.outliers]
    return CameraFit(
        fit.camera,
        fit.views,
        fit.poses,
        fit.residuals,
        fit.focal_sd_px,
        fit.centre_sd_px,
        fit.outliers,
        tuple(dropped),
    )


def _fitted(
    board: Board, views: Sequence[BoardView], size: tuple[int, int], name: str, rational: bool
) -> CameraFit:
    cv2 = opencv()
    if len(views) < FEWEST:
        raise CameraError(
            f'{name}: the board was found in {len(views)} images: expected at least {FEWEST}'
        )
    places = fit_quality.places(views, size[0])
    if places < FEWEST:
        raise CameraError(
            f'{name}: the board lies at {places} places in {len(views)} images: expected at least '
            f'{FEWEST}; move and tilt it between images'
        )
    flags = cv2.CALIB_RATIONAL_MODEL if rational else 0
    no_fit = CameraError(
        f'{name}: no camera fits these corners: has the board {board.columns} x {board.rows} '
        'inner corners, and does it lie another way in each image?'
    )
    try:
        _, K, lens, turns, shifts, sd, _, _ = cv2.calibrateCameraExtended(
            [board.points(view.ids).astype(np.float32) for view in views],
            [view.pixels.astype(np.float32).reshape(-1, 1, 2) for view in views],
            size,
            None,
            None,
            flags=flags,
        )
    except cv2.error:
        raise no_fit from None
    camera = Camera(name, size, np.array(K), np.ravel(lens)[: 8 if rational else 5].copy())
    poses = np.array([pose(cv2.Rodrigues(r)[0], np.ravel(t)) for r, t in zip(turns, shifts)])
    residuals = tuple(
        view.pixels - camera.project(board.points(view.ids) @ X[:3, :3].T + X[:3, 3])
        for view, X in zip(views, poses)
    )
    errors = np.array([np.sqrt((r**2).sum(axis=1).mean()) for r in residuals])
    if not all(np.isfinite(x).all() for x in (camera.matrix, camera.distortion, sd, errors)):
        raise no_fit
    worst = fit_quality.outliers(errors)
    sds = np.ravel(sd)
    return CameraFit(
        camera,
        tuple(views),
        poses,
        residuals,
        sds[:2].copy(),
        sds[2:4].copy(),
        tuple(view.name for view, bad in zip(views, worst) if bad),
    )
