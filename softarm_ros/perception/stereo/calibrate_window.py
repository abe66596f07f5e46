"""Calibration of a window's pose from images of a board behind it; cameras calibrated in air."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3, log_so3
from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.calibrate_stereo import board_misfit, shared_corners
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.cameras import SIDES, StereoCameras
from softarm_ros.perception.stereo.window import FlatWindow

FEWEST = 3
_OUT_OF_SIGHT_PX = 1e3
_CLEARLY = 1.1  # glass between air and air fits about as well as no window


@dataclass(frozen=True)
class WindowFit:
    """
    A fitted window and the quality of its fit.

    Attributes
    ----------
    window : FlatWindow
        Window with fitted normal and distance; thickness and indices as given.
    rms_px : float
        Reprojection error of the corners with the fitted window.
    rms_start_px : float
        Reprojection error of the corners with the guessed window.
    distance_sd_m, normal_sd_rad : float
        Standard deviations, derived from the residuals.

    """

    window: FlatWindow
    rms_px: float
    rms_start_px: float
    distance_sd_m: float
    normal_sd_rad: float


def calibrate_window(
    cameras: StereoCameras,
    board: Board,
    pairs: Sequence[tuple[BoardView, BoardView]],
    guess: FlatWindow,
) -> WindowFit:
    """
    Fit normal and distance of the window to images of a board in the water.

    The poses of the board are fitted as well. Thickness and indices are not fitted, because images
    hardly separate them from the distance: measure the thickness and look up the indices.

    Raises
    ------
    CameraError
        If the board looks the same after half a turn, fewer than three pairs show it to both
        cameras, the board is not behind the guessed window, the fit does not converge, or the
        images clearly fit better without a window.

    """
    board.require_told_apart()
    shared = [both for pair in pairs if (both := shared_corners(board, pair)) is not None]
    if len(shared) < FEWEST:
        raise CameraError(
            f'both cameras found the board in {len(shared)} pairs: expected at least {FEWEST}'
        )
    across = np.linalg.svd(guess.normal[None])[2][1:]  # two directions along the window

    def window_of(x: Array) -> FlatWindow:
        normal = guess.normal + x[0] * across[0] + x[1] * across[1]
        return replace(guess, normal=normal / np.linalg.norm(normal), distance_m=max(x[2], 0.0))

    def misses(window: FlatWindow | None, poses: Array) -> Array:
        seen_through = replace(cameras, window=window)
        found = []
        for (left, right), row in zip(shared, poses.reshape(-1, 6)):
            points = board.points(left.ids) @ exp_so3(row[3:]).T + row[:3]
            for view, side in zip((left, right), SIDES):
                found.append(seen_through.project(side, points) - view.pixels)
        each = np.concatenate(found).ravel()
        return np.where(np.isfinite(each), each, _OUT_OF_SIGHT_PX)

    through = replace(cameras, window=guess)
    rows = []
    for pair in shared:
        try:
            X_LO = board_misfit(through, board, pair)[0]
        except CameraError:
            raise CameraError(
                f'pair {pair[0].name}: its rays do not meet behind a window at '
                f'{1e3 * guess.distance_m:g} mm, {1e3 * guess.thickness_m:g} mm thick: is the '
                'board nearer than that, or were the images not taken through a window?'
            ) from None
        rows.append(np.concatenate([X_LO[:3, 3], log_so3(X_LO[:3, :3])]))
    # Best fits with the guessed window, and without any: only the poses of the board vary.
    still = least_squares(lambda y: misses(guess, y), np.concatenate(rows), x_scale='jac')
    solved = least_squares(
        lambda x: misses(window_of(x), x[3:]),
        np.concatenate([[0.0, 0.0, guess.distance_m], still.x]),
        x_scale='jac',
    )
    if not solved.success:
        raise CameraError(f'the window cannot be fitted: {solved.message}')
    in_air = least_squares(lambda y: misses(None, y), still.x, x_scale='jac')
    if _CLEARLY * _rms_px(in_air.fun) < _rms_px(solved.fun):
        raise CameraError(
            f'the images fit better without a window, {_rms_px(in_air.fun):.3f} px rms, than '
            f'with one, {_rms_px(solved.fun):.3f} px: were they taken through the window, with '
            'water behind it?'
        )
    degrees = solved.fun.size - solved.x.size
    # Of the Jacobian itself: its square loses what images hardly show, such as a window without
    # water behind it, for which variances then came out negative.
    _, singular, axes = np.linalg.svd(solved.jac, full_matrices=False)
    known = np.maximum(singular, np.finfo(float).eps * singular[0])
    noise = np.sqrt(solved.fun @ solved.fun / degrees)
    sds = noise * np.linalg.norm(axes[:, :3] / known[:, None], axis=0)
    return WindowFit(
        window_of(solved.x),
        _rms_px(solved.fun),
        _rms_px(still.fun),
        float(sds[2]),
        float(max(sds[:2])),
    )


def _rms_px(misses: Array) -> float:
    """Return the root mean square of the distances whose two components follow one another."""
    return float(np.sqrt(2.0 * (misses**2).mean()))
