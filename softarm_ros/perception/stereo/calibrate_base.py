"""Pose of the arm's base from a board that lies on it, or from markers fixed to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.calibrate_stereo import shared_corners
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.rigid_fit import rigid_fit, unordered_fit
from softarm_ros.perception.stereo.triangulation import triangulate

FEWEST_CORNERS = 3  # of a pair, seen by both cameras
_SCALE = 0.05  # tolerance of the squares' size: beyond, the size or calibration is wrong
# A board that lies still moves by less than these between two pairs: a distance, or ...
_MOVED_M = 1.0e-3
_MOVED_MISSES = 3.0  # ... this multiple of the misfit of its corners


@dataclass(frozen=True)
class BaseFit:
    """
    The base in the left camera's frame.

    Attributes
    ----------
    X_LB : (4, 4)
        Least-squares fit to all points of all pairs.
    errors_m : mapping
        Root-mean-square misfit of the points, by name of the pair or marker.
    rms_m : float
        Root-mean-square misfit of all points.

    """

    X_LB: Array
    errors_m: Mapping[str, float]
    rms_m: float


def base_from_board(
    cameras: StereoCameras,
    board: Board,
    pairs: Sequence[tuple[BoardView, BoardView]],
    X_BO: Array,
) -> BaseFit:
    """
    Fit the pose of the base to pairs of images of a board that lies still on it.

    `X_BO` (4, 4) is the pose of the board in the base frame. Corners are triangulated, through
    the window if there is one.

    Raises
    ------
    CameraError
        If the board looks the same after half a turn, no pair shows three common corners, their
        distances differ from those on the board (wrong square size, or exchanged images), or the
        board has moved between pairs.

    """
    board.require_told_apart()
    known, pixels, names = [], [], []
    for pair in pairs:
        shared = shared_corners(board, pair, FEWEST_CORNERS)
        if shared is None:
            continue
        pixels.append([view.pixels for view in shared])
        known.append(board.points(shared[0].ids) @ X_BO[:3, :3].T + X_BO[:3, 3])
        names.append(shared[0].name)
    if not known:
        raise CameraError('no pair of images shows the board on the base to both cameras')
    corners = np.concatenate(known)
    both = [np.concatenate(each) for each in zip(*pixels)]
    measured = triangulate(cameras, *both).points
    ends = np.cumsum([len(points) for points in known])[:-1]
    by_pair = np.split(measured, ends)
    scale = _scale(known, by_pair)
    if not abs(scale - 1.0) <= _SCALE:  # rejects nan as well
        exchanged = np.split(triangulate(cameras.swapped(), *both).points, ends)
        if abs(_scale(known, exchanged) - 1.0) <= _SCALE:
            raise CameraError('the board fits with the images of left and right exchanged')
        given = 1e3 * board.square_m
        raise CameraError(
            f'the board is seen with squares of {scale * given:.1f} mm: {given:g} mm given; '
            'measure them, and check that both images are one pair of the calibrated cameras'
        )
    _require_still(names, known, by_pair)
    X_LB, misses = rigid_fit(corners, measured)
    errors = {name: _rms(part) for name, part in zip(names, np.split(misses, ends))}
    return BaseFit(X_LB, errors, _rms(misses))


def base_from_markers(markers_B: Mapping[str, Sequence[float]], points_L: Array) -> BaseFit:
    """
    Fit the pose of the base to markers with known places (3,) in the base frame [m].

    Parameters
    ----------
    markers_B
        Place of each marker, by name.
    points_L : (n, 3)
        The same markers as triangulated, in any order.

    Raises
    ------
    CameraError
        If the numbers of markers differ, or their order does not follow from their distances.

    """
    known = np.array([markers_B[name] for name in markers_B], dtype=np.float64)
    if known.shape[0] < 3:
        raise CameraError(f'{len(known)} base markers: expected at least 3')
    X_LB, order, rms = unordered_fit(known, points_L)
    expected = known @ X_LB[:3, :3].T + X_LB[:3, 3]
    misses = points_L[order] - expected
    errors = {name: float(np.linalg.norm(miss)) for name, miss in zip(markers_B, misses)}
    return BaseFit(X_LB, errors, rms)


def _scale(known: Sequence[Array], measured: Sequence[Array]) -> float:
    """
    Return the ratio of measured to known distances between the points (n, 3) of a pair.

    The ratio is over all pairs, each of which may show the board elsewhere; nan without any point.
    """
    sizes = np.zeros(2)
    for each in zip(measured, known, strict=True):
        seen = np.isfinite(each[0]).all(axis=1)
        if seen.any():
            sizes += [float(((p[seen] - p[seen].mean(axis=0)) ** 2).sum()) for p in each]
    return float(np.sqrt(sizes[0] / sizes[1])) if sizes[1] > 0.0 else np.nan


def _require_still(
    names: Sequence[str], known: Sequence[Array], measured: Sequence[Array]
) -> None:
    """Raise CameraError if the board has moved since the first pair with enough corners."""
    first: tuple[str, Array, float] | None = None
    for name, corners, seen in zip(names, known, measured, strict=True):
        if np.isfinite(seen).all(axis=1).sum() < 3:
            continue
        X, misses = rigid_fit(corners, seen)
        missed = _rms(misses)
        if first is None:
            first = name, X, missed
            continue
        way = (X - first[1])[:3]
        moved = _rms(corners @ way[:, :3].T + way[:, 3])
        limit = max(_MOVED_M, _MOVED_MISSES * max(missed, first[2]))
        if not moved <= limit:
            raise CameraError(
                f'the board lies {1e3 * moved:.1f} mm elsewhere in pair {name} than in pair '
                f'{first[0]} (limit {1e3 * limit:.1f} mm): it must lie still on the base; take '
                'only the pairs of one place'
            )


def _rms(misses: Array) -> float:
    return float(np.sqrt(np.nanmean((misses**2).sum(axis=1))))
