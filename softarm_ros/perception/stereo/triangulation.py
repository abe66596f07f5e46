"""Points in space from two images: nearest to both rays, then least reprojection error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import Mask
from softarm_ros.perception.stereo.cameras import SIDES, StereoCameras

_STEP_M = 1e-6  # of the central differences
_CONVERGED_M = 1e-8  # of a step; the next would be far smaller
_FLAT_M = 2e-3  # after a smaller step the slopes of the one before are as good
_STEPS = 10


@dataclass(frozen=True)
class Triangulated:
    """
    Points of n pairs of pixels, in the left camera's frame; nan where the rays do not meet.

    Attributes
    ----------
    points : (n, 3)
        [m].
    covariances : (n, 3, 3)
        From those of the pixels [m2].
    misfit : (n,)
        Squared reprojection error by the pixels' covariance: chi-square of one degree of freedom
        for pixels that show one point (four numbers less three), so the square of the epipolar
        distance by its standard deviation, distortion and refraction included.

    """

    points: Array
    covariances: Array
    misfit: Array


def nearest_to_rays(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Mask]:
    """
    Return the points (n, 3) midway between rays (starts, unit vectors), and which lie ahead (n,).

    Parallel rays give nan.
    """
    (a, u), (b, v) = left, right
    across = b - a
    cosine = np.einsum('ni,ni->n', u, v)
    along_u, along_v = np.einsum('ni,ni->n', across, u), np.einsum('ni,ni->n', across, v)
    with np.errstate(all='ignore'):
        apart = 1.0 - cosine * cosine
        apart = np.where(apart > 1e-12, apart, np.nan)
        s = (along_u - cosine * along_v) / apart
        t = (cosine * along_u - along_v) / apart
        return 0.5 * (a + s[:, None] * u + b + t[:, None] * v), (s > 0.0) & (t > 0.0)


def triangulate(
    cameras: StereoCameras,
    left_px: ArrayLike,
    right_px: ArrayLike,
    left_covariances: ArrayLike | None = None,
    right_covariances: ArrayLike | None = None,
    *,
    hopeless: float = np.inf,
) -> Triangulated:
    """
    Return the points that n pairs of pixels show.

    Parameters
    ----------
    cameras : StereoCameras
        With its window, if there is one.
    left_px, right_px : (n, 2)
        As in the images, distorted.
    left_covariances, right_covariances : (n, 2, 2), optional
        [px2]; those of a standard deviation of 1 px without.
    hopeless : float
        Pairs whose misfit is more than this midway between their rays are given up: nan. The
        search for what cannot be found costs most.

    """
    pixels = [np.asarray(p, dtype=np.float64).reshape(-1, 2) for p in (left_px, right_px)]
    count = len(pixels[0])
    seen = np.concatenate(pixels, axis=1)
    weight = np.zeros((count, 4, 4))
    for place, given in ((0, left_covariances), (2, right_covariances)):
        each = np.eye(2) if given is None else np.linalg.inv(np.asarray(given).reshape(-1, 2, 2))
        weight[:, place : place + 2, place : place + 2] = each
    points, ahead = nearest_to_rays(
        cameras.rays('left', pixels[0]), cameras.rays('right', pixels[1])
    )
    points[~ahead] = np.nan
    if np.isfinite(hopeless):
        miss = _appearance(cameras, points) - seen
        with np.errstate(invalid='ignore'):
            points[~(np.einsum('ni,nij,nj->n', miss, weight, miss) < hopeless)] = np.nan
    information = np.full((count, 3, 3), np.nan)
    slope = np.empty((0, 4, 3))
    moved = np.inf
    for _ in range(_STEPS):
        known = np.isfinite(points).all(axis=1)
        if not known.any():
            break
        if len(slope) != known.sum() or moved > _FLAT_M:
            slope = _slopes(cameras, points[known])
        # A start so far off that it appears in one image only leaves nan here, and stays unknown.
        miss = _appearance(cameras, points[known]) - seen[known]
        weighted = np.einsum('nji,njk->nik', slope, weight[known])
        information[known] = weighted @ slope
        step = _solved(information[known], np.einsum('nij,nj->ni', weighted, miss))
        points[known] -= step
        # Not nan: a point without a solution does not keep the others waiting.
        moved = float(np.max(np.abs(step), initial=0.0, where=np.isfinite(step)))
        if moved <= _CONVERGED_M:
            break
    miss = _appearance(cameras, points) - seen
    misfit = np.einsum('ni,nij,nj->n', miss, weight, miss)
    return Triangulated(points, _inverted(information), misfit)


def _appearance(cameras: StereoCameras, points: Array) -> Array:
    return np.concatenate([cameras.project(side, points) for side in SIDES], axis=1)


def _slopes(cameras: StereoCameras, points: Array) -> Array:
    """Return (n, 4, 3): pixels by metres."""
    moves = _STEP_M * np.concatenate([np.eye(3), -np.eye(3)])
    shown = _appearance(cameras, (points[None] + moves[:, None]).reshape(-1, 3))
    shown = shown.reshape(6, len(points), 4)
    return np.moveaxis((shown[:3] - shown[3:]) / (2.0 * _STEP_M), 0, 2)


def _solved(matrices: Array, vectors: Array) -> Array:
    out = np.full(vectors.shape, np.nan)
    good = _regular(matrices)
    if good.any():
        out[good] = np.linalg.solve(matrices[good], vectors[good][..., None])[..., 0]
    return out


def _inverted(matrices: Array) -> Array:
    out = np.full(matrices.shape, np.nan)
    good = _regular(matrices)
    if good.any():
        out[good] = np.linalg.inv(matrices[good])
    return out


def _regular(matrices: Array) -> Mask:
    """Return which symmetric matrices (n, 3, 3) can be inverted."""
    finite: Mask = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    good: Mask = finite.copy()
    sizes = np.linalg.eigvalsh(matrices[finite])  # in ascending order
    good[finite] = sizes[:, 0] > 1e-14 * sizes[:, -1]
    return good
