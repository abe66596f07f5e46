"""Fit of a pose that maps known points to measured ones."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose
from softarm_ros.perception.stereo.camera import CameraError

_LARGEST_SET = 8  # number of markers; all their permutations are tried
_AMBIGUOUS = 3.0  # the error of the second-best order must be this multiple of the best one
# Points that miss the known ones by more than this share of their size and this length are others.
_MISFIT, _MISFIT_M = 0.05, 2.0e-3


def rigid_fit(known: ArrayLike, measured: ArrayLike) -> tuple[Array, Array]:
    """
    Return the least-squares pose (4, 4) that maps known points to measured ones.

    It uses the singular value decomposition of their covariance (Kabsch; Umeyama 1991).

    Returns
    -------
    X : (4, 4)
    misses : (n, 3)
        Measured minus expected points [m].

    Raises
    ------
    CameraError
        If fewer than three points are finite in both, or they lie on a line.

    """
    source, target = (np.asarray(p, dtype=np.float64).reshape(-1, 3) for p in (known, measured))
    usable = np.isfinite(source).all(axis=1) & np.isfinite(target).all(axis=1)
    if usable.sum() < 3:
        raise CameraError(f'{int(usable.sum())} points are known and measured: expected 3')
    middle, centre = source[usable].mean(axis=0), target[usable].mean(axis=0)
    U, sizes, Vt = np.linalg.svd((target[usable] - centre).T @ (source[usable] - middle))
    if sizes[1] < 1e-6 * sizes[0]:
        raise CameraError('the points lie on a line: expected three that do not')
    flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))])
    rotation = U @ flip @ Vt
    X = pose(rotation, centre - rotation @ middle)
    return X, target - (source @ rotation.T + X[:3, 3])


def unordered_fit(known: ArrayLike, measured: ArrayLike) -> tuple[Array, Array, float]:
    """
    Return the pose that maps known points to the same number of measured ones in unknown order.

    Returns
    -------
    X : (4, 4)
    order : (n,)
        Index of the measured point of each known one.
    rms : float
        Root mean square of the misfits [m].

    Raises
    ------
    CameraError
        If the numbers differ or exceed eight, the points have other distances than the known ones,
        or two orders fit about equally well.

    """
    source, target = (np.asarray(p, dtype=np.float64).reshape(-1, 3) for p in (known, measured))
    if len(source) != len(target):
        advice = (
            'hide other bright objects and reflections'
            if len(target) > len(source)
            else 'check what hides a marker, the light, and --threshold'
        )
        raise CameraError(
            f'{len(target)} markers are seen by both cameras, {len(source)} are listed: {advice}'
        )
    if len(source) > _LARGEST_SET:
        raise CameraError(f'{len(source)} base markers: expected {_LARGEST_SET} at most')
    listed_m, seen_m = (_radius(points) for points in (source, target))
    limit_m = max(_MISFIT * listed_m, _MISFIT_M)
    if not abs(seen_m - listed_m) <= limit_m:
        raise CameraError(
            f'the markers are seen {1e3 * seen_m:.3g} mm from their middle (rms), and listed '
            f'{1e3 * listed_m:.3g} mm from it (limit +-{1e3 * limit_m:.2g} mm): check the listed '
            'places, which are in mm'
        )
    tried = []
    for order in permutations(range(len(target))):
        X, misses = rigid_fit(source, target[list(order)])
        tried.append((float(np.sqrt((misses**2).sum(axis=1).mean())), order, X))
    tried.sort(key=lambda found: found[0])
    if not tried[0][0] <= limit_m:
        raise CameraError(
            f'the markers are {1e3 * tried[0][0]:.3g} mm (rms) from the listed places (limit '
            f'{1e3 * limit_m:.2g} mm): check the listed places, and that x, y, z are right-handed'
        )
    if len(tried) > 1 and tried[1][0] < _AMBIGUOUS * tried[0][0]:
        raise CameraError(
            f'two orders of the markers fit about as well: {1e3 * tried[0][0]:.2f} and '
            f'{1e3 * tried[1][0]:.2f} mm: place them less symmetrically'
        )
    return tried[0][2], np.array(tried[0][1]), tried[0][0]


def _radius(points: Array) -> float:
    """Return the root-mean-square distance of points (n, 3) from their middle [m]."""
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))
