"""Compiled matching of the marks of two images that show the same marker."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.perception.stereo.pair_kernels import (
    midway,
    project_through,
    rays_into,
    refine_points,
)


@kernel
def match_marks(
    left: tuple[Array, Array, Array],
    right: tuple[Array, Array, Array],
    together: NDArray[np.bool_],
    matrices: Array,
    lenses: Array,
    poses: Array,
    window: Array,
    ranges: tuple[float, float],
    sizes: tuple[float, float],
    gates: tuple[float, float],
    X: Array,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array, Array]:
    """
    Return the pairs of marks whose rays meet: left and right marks (n,), points (n, 3), their
    covariances (n, 3, 3), and misfits (n,).

    Parameters
    ----------
    left, right : ((k, 2), (k, 2, 2), (k,))
        Centres of the marks, their covariances, and the areas of the marks [px].
    together : (left marks, right marks)
        Which marks may show the same marker.
    matrices, lenses, poses, window
        As for `refine_points`.
    ranges : (float, float)
        Nearest and farthest distance from either camera, along its view [m].
    sizes : (float, float)
        Diameter of a marker [m], nan if unknown, and relative tolerance of its width in an image.
    gates : (float, float)
        Largest misfit of a pair, and of its point midway between both rays.
    X : (4, 4)
        Pose of the left camera in the frame of the results.

    """
    count = 0
    for a in range(together.shape[0]):
        for b in range(together.shape[1]):
            count += together[a, b]
    lefts, rights = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    seen, weights = np.empty((count, 4)), np.zeros((count, 4, 4))
    points, covariances = np.empty((count, 3)), np.empty((count, 3, 3))
    misfits = np.empty(count)
    of_left = np.empty((2, together.shape[0], 3))
    of_right = np.empty((2, together.shape[1], 3))
    rays_into(left[0], matrices[0], lenses[0], poses[0], window, of_left[0], of_left[1])
    rays_into(right[0], matrices[1], lenses[1], poses[1], window, of_right[0], of_right[1])
    n = 0
    for a in range(together.shape[0]):
        for b in range(together.shape[1]):
            if together[a, b]:
                lefts[n], rights[n] = a, b
                seen[n, :2], seen[n, 2:] = left[0][a], right[0][b]
                _invert_small(left[1][a], weights[n, :2, :2])
                _invert_small(right[1][b], weights[n, 2:, 2:])
                midway(of_left[0, a], of_left[1, a], of_right[0, b], of_right[1, b], points[n])
                n += 1
    refine_points(
        points,
        seen,
        weights,
        matrices,
        lenses,
        poses,
        window,
        gates[1],
        covariances,
        misfits,
    )
    ends, pixels = np.empty((4, 3)), np.empty((4, 2))
    n = 0
    for k in range(count):
        if not misfits[k] < gates[0]:
            continue
        good = True
        for side in range(2):
            area = left[2][lefts[k]] if side == 0 else right[2][rights[k]]
            X_LC = poses[side]
            depth = 0.0
            for i in range(3):
                depth += (points[k, i] - X_LC[i, 3]) * X_LC[i, 2]
            good = good and ranges[0] < depth < ranges[1]
            if good and not math.isnan(sizes[0]):
                _ends(points[k], X_LC, 0.5 * sizes[0], ends)
                project_through(ends, matrices[side], lenses[side], X_LC, window, pixels)
                wanted = _width(pixels)
                width = math.sqrt(4.0 / math.pi * area)
                good = abs(width / wanted - 1.0) < sizes[1]
        if good:
            lefts[n], rights[n], misfits[n] = lefts[k], rights[k], misfits[k]
            points[n], covariances[n] = points[k], covariances[k]
            n += 1
    _move(X, points[:n], covariances[:n])
    return (
        lefts[:n].copy(),
        rights[:n].copy(),
        points[:n].copy(),
        covariances[:n].copy(),
        misfits[:n].copy(),
    )


@kernel
def _invert_small(matrix: Array, inverse: Array) -> None:
    """Write the inverse of a symmetric matrix (2, 2)."""
    det = matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]
    inverse[0, 0], inverse[1, 1] = matrix[1, 1] / det, matrix[0, 0] / det
    inverse[0, 1], inverse[1, 0] = -matrix[0, 1] / det, -matrix[1, 0] / det


@kernel
def _ends(point: Array, X_LC: Array, radius_m: float, ends: Array) -> None:
    """Write the ends (4, 3) of a ball across a camera's view: right, left, down, up."""
    for i in range(3):
        ends[0, i] = point[i] + radius_m * X_LC[i, 0]
        ends[1, i] = point[i] - radius_m * X_LC[i, 0]
        ends[2, i] = point[i] + radius_m * X_LC[i, 1]
        ends[3, i] = point[i] - radius_m * X_LC[i, 1]


@kernel
def _width(ends: Array) -> float:
    """Return the width [px] of a ball from the pixels of its ends (4, 2)."""
    across = math.sqrt((ends[0, 0] - ends[1, 0]) ** 2 + (ends[0, 1] - ends[1, 1]) ** 2)
    up = math.sqrt((ends[2, 0] - ends[3, 0]) ** 2 + (ends[2, 1] - ends[3, 1]) ** 2)
    return math.sqrt(across * up)


@kernel
def _move(X: Array, points: Array, covariances: Array) -> None:
    """Move points (n, 3) and their covariances (n, 3, 3) by a pose, in place."""
    moved, half = np.empty(3), np.empty((3, 3))
    for n in range(points.shape[0]):
        for i in range(3):
            moved[i] = X[i, 3]
            for j in range(3):
                moved[i] += X[i, j] * points[n, j]
                half[i, j] = 0.0
                for k in range(3):
                    half[i, j] += X[i, k] * covariances[n, k, j]
        points[n] = moved
        for i in range(3):
            for j in range(3):
                covariances[n, i, j] = 0.0
                for k in range(3):
                    covariances[n, i, j] += half[i, k] * X[j, k]
