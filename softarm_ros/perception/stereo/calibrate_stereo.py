"""Relative pose of two cameras from pairs of images of one board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.perception.stereo import fit_quality
from softarm_ros.perception.stereo.boards import Board, BoardView, Ids
from softarm_ros.perception.stereo.calibrate_camera import CameraFit, calibrate_camera
from softarm_ros.perception.stereo.camera import Camera, CameraError, Mask
from softarm_ros.perception.stereo.cameras import SIDES, StereoCameras
from softarm_ros.perception.stereo.images import opencv
from softarm_ros.perception.stereo.rigid_fit import rigid_fit
from softarm_ros.perception.stereo.triangulation import triangulate

FEWEST = 3
FEWEST_SHARED = 6  # corners seen by both cameras
# A pair is inconsistent if its error exceeds both limits. These are wide, because poses from
# single cameras are less exact than a common fit.
_NO_PAIR_OF_MEDIAN = 5.0
_NO_PAIR_PX = 3.0

Pair = tuple[BoardView, BoardView]


@dataclass(frozen=True)
class StereoFit:
    """
    A calibrated pair of cameras and the quality of its fit.

    Attributes
    ----------
    cameras : StereoCameras
        Least-squares fit to all corners of both images, lenses included.
    left, right : CameraFit
        Separate fit of each camera to the same images.
    names : tuple of str
        Names of the pairs.
    residuals : tuple of (2, corners, 2)
        Seen minus expected corners in the left and right image of each pair [px].
    flatness_m : (n,)
        For each pair, root-mean-square distance of the triangulated corners from those of the
        board at its best-fit pose: the size of the errors in space.
    outliers, dropped : tuple of str
        Outlier pairs still in the fit, and outlier pairs that were dropped.

    """

    cameras: StereoCameras
    left: CameraFit
    right: CameraFit
    names: tuple[str, ...]
    residuals: tuple[Array, ...]
    flatness_m: Array
    outliers: tuple[str, ...]
    dropped: tuple[str, ...] = ()

    @property
    def errors_px(self) -> Array:
        """Root-mean-square reprojection error of the corners of each pair (n,)."""
        return np.array([np.sqrt((r**2).sum(axis=-1).mean()) for r in self.residuals])

    @property
    def rms_px(self) -> float:
        """Root-mean-square reprojection error over all pairs and images, as OpenCV reports it."""
        each = np.concatenate([r.reshape(-1, 2) for r in self.residuals])
        return float(np.sqrt((each**2).sum(axis=1).mean()))

    @property
    def warnings(self) -> list[str]:
        """Shortcomings of the images, and inconsistent pairs with the likely cause."""
        found = [*self.left.warnings, *self.right.warnings]
        alone = {
            view.name: max(a, b)
            for view, a, b in zip(self.left.views, self.left.errors_px, self.right.errors_px)
        }
        for name, error in zip(self.names, self.errors_px):
            if name in self.outliers and error > 2.0 * alone.get(name, np.inf):
                found.append(
                    f'pair {name}: {error:.2f} px together, {alone[name]:.2f} px in each image '
                    'alone: the board moved between the two exposures, or they are not one pair'
                )
        return found


def calibrate_stereo(
    board: Board,
    pairs: Sequence[Pair],
    sizes: tuple[tuple[int, int], tuple[int, int]],
    *,
    rational: bool = False,
    drop_outliers: bool = False,
    lenses: tuple[Camera, Camera] | None = None,
) -> StereoFit:
    """
    Fit both cameras to pairs of images of one board; both images of a pair are simultaneous.

    Parameters
    ----------
    board : Board
        The board in both images of every pair.
    pairs
        Left and right view of each pair, with the same name.
    sizes : ((int, int), (int, int))
        Width and height of the left and the right images [px].
    rational, drop_outliers : bool
        As for `calibrate_camera`.
    lenses : (Camera, Camera), optional
        Cameras calibrated with images that filled each view; they are kept unchanged.

    Raises
    ------
    CameraError
        If there are fewer than three pairs, the board looks the same after half a turn, so that
        its corners cannot be matched, or no two cameras fit the pairs; the message then lists the
        inconsistent pairs.

    """
    board.require_told_apart()
    kept = [shared for pair in pairs if (shared := shared_corners(board, pair)) is not None]
    dropped: list[str] = []
    while True:
        fit, apart_px = _fitted(board, kept, sizes, rational, lenses)
        bad = set(fit.outliers)
        if not (drop_outliers and bad) or len(kept) - len(bad) < FEWEST:
            break
        dropped += fit.outliers
        kept = [pair for pair in kept if pair[0].name not in bad]
    _require_fit(fit, apart_px)
    return StereoFit(
        fit.cameras,
        fit.left,
        fit.right,
        fit.names,
        fit.residuals,
        fit.flatness_m,
        fit.outliers,
        tuple(dropped),
    )


def shared_corners(board: Board, pair: Pair, fewest: int = FEWEST_SHARED) -> Pair | None:
    """Return both views reduced to their common corners; None if too few, or on one line."""
    ids: Ids = np.intersect1d(pair[0].ids, pair[1].ids)
    if len(ids) < fewest or not board.define_pose(ids):
        return None
    left, right = (
        BoardView(view.name, ids, view.pixels[np.searchsorted(view.ids, ids)]) for view in pair
    )
    return left, right


def _fitted(
    board: Board,
    pairs: Sequence[Pair],
    sizes: tuple[tuple[int, int], tuple[int, int]],
    rational: bool,
    lenses: tuple[Camera, Camera] | None,
) -> tuple[StereoFit, Array]:
    """Return the fit, and the contradiction of each pair (n,) to the others [px]."""
    cv2 = opencv()
    if len(pairs) < FEWEST:
        raise CameraError(
            f'both cameras found the board in {len(pairs)} pairs: expected at least {FEWEST}'
        )
    views = [[pair[index] for pair in pairs] for index in range(2)]
    fits = [
        calibrate_camera(board, each, size, side, rational=rational, lens=lens)
        for each, size, side, lens in zip(views, sizes, SIDES, lenses or (None, None))
    ]
    first = [fit.camera for fit in fits] if lenses is None else list(lenses)
    model = cv2.CALIB_RATIONAL_MODEL if any(c.distortion.size == 8 for c in first) else 0
    flags = model | (cv2.CALIB_USE_INTRINSIC_GUESS if lenses is None else cv2.CALIB_FIX_INTRINSIC)
    solved = cv2.stereoCalibrateExtended(
        [board.points(pair[0].ids).astype(np.float32) for pair in pairs],
        *([v.pixels.astype(np.float32).reshape(-1, 1, 2) for v in each] for each in views),
        *(part.copy() for c in first for part in (c.matrix, c.distortion)),
        sizes[0],
        np.eye(3),
        np.zeros((3, 1)),
        flags=flags,
    )
    _, K_l, lens_l, K_r, lens_r, R, T, _, _, turns, places, _ = solved
    cameras = StereoCameras(
        Camera('left', sizes[0], np.array(K_l), np.ravel(lens_l)[: first[0].distortion.size]),
        Camera('right', sizes[1], np.array(K_r), np.ravel(lens_r)[: first[1].distortion.size]),
        pose(R, np.ravel(T)),
    )
    residuals, flatness = [], []
    for pair, turn, place in zip(pairs, turns, places):
        X_LO = pose(cv2.Rodrigues(turn)[0], np.ravel(place))
        corners = board.points(pair[0].ids) @ X_LO[:3, :3].T + X_LO[:3, 3]
        residuals.append(
            np.array([v.pixels - cameras.project(s, corners) for v, s in zip(pair, SIDES)])
        )
        try:
            flatness.append(board_misfit(cameras, board, pair)[1])
        except CameraError:  # the rays of this pair do not meet
            flatness.append(np.inf)
    errors = np.array([np.sqrt((r**2).sum(axis=-1).mean()) for r in residuals])
    # One wrong pair can distort the fit so that good pairs become outliers: so prefer pairs that
    # contradict the others.
    apart_px = _apart_px(board, pairs, fits)
    apart = _no_pairs(apart_px)
    worst = apart if apart.any() else fit_quality.outliers(errors)
    fit = StereoFit(
        cameras,
        fits[0],
        fits[1],
        tuple(pair[0].name for pair in pairs),
        tuple(residuals),
        np.array(flatness),
        tuple(pair[0].name for pair, bad in zip(pairs, worst) if bad),
    )
    return fit, apart_px


def _require_fit(fit: StereoFit, apart_px: Array) -> None:
    """Raise CameraError if the fit is bad: large or undefined errors, or no baseline."""
    errors = np.nan_to_num(fit.errors_px, nan=np.inf)
    bad = [
        f'pair {name}: {miss:.3g} px'
        for name, miss, wrong in zip(fit.names, apart_px, _no_pairs(apart_px))
        if wrong
    ]
    good = bool(bad) or np.median(errors) <= _NO_PAIR_PX  # wrong pairs explain a bad median
    if good and np.isfinite([*errors, *fit.flatness_m]).all():
        return
    if (errors <= _NO_PAIR_PX).all():
        raise CameraError(
            f'the cameras are {1e3 * fit.cameras.baseline_m:.3g} mm apart: expected two cameras '
            'at two places; check whether left and right images come from one camera'
        )
    if bad:
        raise CameraError(
            f'no two cameras fit to all pairs; {", ".join(bad)} from its place by the others: '
            'the board moved between the two exposures, or they are not one pair; leave it out, '
            'or let --drop-outliers do it'
        )
    raise CameraError(
        f'no two cameras fit to the pairs: they contradict one another by '
        f'{np.median(apart_px):.3g} px (median): images of two exposures under one number, images '
        'of one camera mirrored, or a camera that was moved'
    )


def _no_pairs(apart_px: Array) -> Mask:
    """Return which pairs (n,) contradict the others, independent of the common fit."""
    limit = max(_NO_PAIR_OF_MEDIAN * float(np.median(apart_px)), _NO_PAIR_PX)
    return np.asarray(apart_px > limit)


def _apart_px(board: Board, pairs: Sequence[Pair], fits: Sequence[CameraFit]) -> Array:
    """
    Return the contradiction of each pair (n,) to the others [px], without a common fit.

    The separate fits give the board's pose in each camera, so each pair gives a relative pose of
    the cameras. The errors are those for the relative pose with the smallest median error.
    """
    left, right = fits
    corners = [
        board.points(pair[0].ids) @ X[:3, :3].T + X[:3, 3] for pair, X in zip(pairs, left.poses)
    ]

    def errors(X_RL: Array) -> Array:
        each = []
        for points, pair in zip(corners, pairs):
            shown = right.camera.project(points @ X_RL[:3, :3].T + X_RL[:3, 3])
            miss = np.linalg.norm(shown - pair[1].pixels, axis=1)
            each.append(np.sqrt(np.nanmean(miss**2)) if np.isfinite(miss).any() else np.inf)
        return np.array(each)

    tried = [errors(X_R @ inverse_pose(X_L)) for X_L, X_R in zip(left.poses, right.poses)]
    return min(tried, key=lambda e: float(np.median(e)))


def board_misfit(cameras: StereoCameras, board: Board, pair: Pair) -> tuple[Array, float]:
    """Return the board's pose (4, 4) in the left frame from both images, and its misfit [m]."""
    found = triangulate(cameras, pair[0].pixels, pair[1].pixels)
    X_LO, misses = rigid_fit(board.points(pair[0].ids), found.points)
    return X_LO, float(np.sqrt((misses**2).sum(axis=1).mean()))
