"""Calibration of a camera's focal lengths, centre and lens from images of a board."""

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
    A calibrated camera and the quality of its fit.

    Attributes
    ----------
    camera : Camera
        Least-squares fit to the reprojection errors of all corners.
    views : tuple of BoardView
        Views to which it was fitted.
    poses : (n, 4, 4)
        Pose of the board in the camera's frame in each image.
    residuals : tuple of (corners, 2)
        Seen minus expected corners of each image [px].
    focal_sd_px, centre_sd_px : (2,)
        Standard deviations, derived from the residuals.
    outliers : tuple of str
        Names of the outlier images still in the fit.
    dropped : tuple of str
        Names of the outlier images that were dropped.
    kept : bool
        Whether the camera was known before, and only the poses were fitted.

    """

    camera: Camera
    views: tuple[BoardView, ...]
    poses: Array
    residuals: tuple[Array, ...]
    focal_sd_px: Array
    centre_sd_px: Array
    outliers: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    kept: bool = False

    @property
    def errors_px(self) -> Array:
        """Root-mean-square reprojection error of the corners of each image (n,)."""
        return np.array([np.sqrt((r**2).sum(axis=1).mean()) for r in self.residuals])

    @property
    def rms_px(self) -> float:
        """Root-mean-square reprojection error over all images."""
        return float(np.sqrt((np.concatenate(self.residuals) ** 2).sum(axis=1).mean()))

    @property
    def coverage(self) -> Mask:
        """Cells of the image that contain a corner in any view."""
        return fit_quality.coverage(self.views, self.camera.size)

    @property
    def tilts_deg(self) -> list[float]:
        """Tilt of the board against the view in each image."""
        return [fit_quality.tilt_deg(X[:3, :3]) for X in self.poses]

    @property
    def turn_deg(self) -> float:
        """Largest angle between the boards of two images."""
        return fit_quality.turn_deg(self.poses[:, :3, :3])

    @property
    def warnings(self) -> list[str]:
        """Shortcomings of the images."""
        name, places = self.camera.name, fit_quality.places(self.views, self.camera.size[0])
        found = fit_quality.few_images(name, len(self.views), places)
        if not self.kept:
            found += fit_quality.lens_warnings(name, self.coverage, self.tilts_deg, self.turn_deg)
        return found


def calibrate_camera(
    board: Board,
    views: Sequence[BoardView],
    size: tuple[int, int],
    name: str,
    *,
    rational: bool = False,
    drop_outliers: bool = False,
    lens: Camera | None = None,
) -> CameraFit:
    """
    Fit a camera to images of a board.

    Parameters
    ----------
    board : Board
        The board in all images.
    views
        Its corners in each image.
    size : (int, int)
        Width and height of the images [px].
    name : str
        Name of the camera.
    rational : bool
        Whether to fit k4 to k6, for wide lenses; needs corners all over the image.
    drop_outliers : bool
        Whether to drop outlier images and fit again, until there are none.
    lens : Camera, optional
        The known camera, which is kept: only the poses of the boards are fitted.

    Raises
    ------
    CameraError
        If there are fewer than three images, they show the board at fewer than three places, all
        boards are parallel, or no camera fits them.

    """
    kept = list(views)
    dropped: list[str] = []
    while True:
        fit = _fitted(board, kept, size, name, rational, lens)
        if not (drop_outliers and fit.outliers) or len(kept) - len(fit.outliers) < FEWEST:
            break
        dropped += fit.outliers
        kept = [view for view in kept if view.name not in fit.outliers]
    if lens is None and fit.turn_deg < fit_quality.LEAST_TURN_DEG:
        raise CameraError(
            f'{name}: all boards are parallel to within {fit.turn_deg:.1f} deg: expected at least '
            f'{fit_quality.LEAST_TURN_DEG:g} deg between two, otherwise focal length and distance '
            'cannot be separated; tilt the board by 20 to 40 deg, each way'
        )
    return CameraFit(
        fit.camera,
        fit.views,
        fit.poses,
        fit.residuals,
        fit.focal_sd_px,
        fit.centre_sd_px,
        fit.outliers,
        tuple(dropped),
        fit.kept,
    )


def _fitted(
    board: Board,
    views: Sequence[BoardView],
    size: tuple[int, int],
    name: str,
    rational: bool,
    known: Camera | None,
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
    if known is not None:
        rational = known.distortion.size == 8
    flags = cv2.CALIB_RATIONAL_MODEL if rational else 0
    if known is not None:
        flags |= sum(getattr(cv2, f'CALIB_FIX_K{k}') for k in range(1, 7))
        flags |= cv2.CALIB_USE_INTRINSIC_GUESS | cv2.CALIB_FIX_FOCAL_LENGTH
        flags |= cv2.CALIB_FIX_PRINCIPAL_POINT | cv2.CALIB_FIX_TANGENT_DIST
    no_fit = CameraError(
        f'{name}: no camera fits these corners: has the board {board.described}, and is it at '
        'another place or tilt in each image?'
        + ('' if rational else ' A wide lens needs --rational')
    )
    try:
        _, K, lens, turns, shifts, sd, _, _ = cv2.calibrateCameraExtended(
            [board.points(view.ids).astype(np.float32) for view in views],
            [view.pixels.astype(np.float32).reshape(-1, 1, 2) for view in views],
            size,
            None if known is None else known.matrix.copy(),
            None if known is None else known.distortion.copy(),
            flags=flags,
        )
    except cv2.error:
        raise no_fit from None
    if not all(np.isfinite(x).all() for x in (K, lens, sd)):
        raise no_fit
    camera = Camera(name, size, np.array(K), np.ravel(lens)[: 8 if rational else 5].copy())
    poses = np.array([pose(cv2.Rodrigues(r)[0], np.ravel(t)) for r, t in zip(turns, shifts)])
    residuals = tuple(
        view.pixels - camera.project(board.points(view.ids) @ X[:3, :3].T + X[:3, 3])
        for view, X in zip(views, poses)
    )
    errors = np.array([np.sqrt((r**2).sum(axis=1).mean()) for r in residuals])
    if not np.isfinite(errors).all():
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
        kept=known is not None,
    )
