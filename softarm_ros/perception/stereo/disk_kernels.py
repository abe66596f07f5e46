"""Compiled identification of the markers of a rigid disk, and fit of its pose."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import solve_small, weighted_square
from softarm_ros.geometry.rotation_kernels import exp_so3_into


@kernel
def refine_pose(
    known: Array, measured: Array, weights: Array, steps: int, X: Array, misfits: Array
) -> Array:
    """
    Improve a pose by Gauss-Newton steps of weighted least squares; return the information (6, 6).

    Parameters
    ----------
    known, measured : (n, 3)
        Markers in the disk's frame, and their measured positions [m].
    weights : (n, 3, 3)
        Inverse covariance of each measurement [1/m2].
    steps : int
        Number of steps, at least one.
    X : (4, 4)
        Initial pose; overwritten with the result.
    misfits : (n,)
        Output: squared misfit of each marker, weighted by its covariance.

    """
    information, change = np.empty((6, 6)), np.empty(6)
    turn, turned = np.empty((3, 3)), np.empty((3, 3))
    slope, miss, arm = np.zeros((3, 6)), np.empty(3), np.empty(3)
    for k in range(3):
        slope[k, k] = 1.0
    for _ in range(steps):
        information[:] = 0.0
        change[:] = 0.0
        for n in range(known.shape[0]):
            _miss(known[n], measured[n], X, arm, miss)
            # Derivative by a small turn of the disk: - hat(arm).
            slope[0, 4], slope[0, 5] = arm[2], -arm[1]
            slope[1, 3], slope[1, 5] = -arm[2], arm[0]
            slope[2, 3], slope[2, 4] = arm[1], -arm[0]
            for a in range(6):
                for i in range(3):
                    for j in range(3):
                        weighted = slope[i, a] * weights[n, i, j]
                        change[a] += weighted * miss[j]
                        for b in range(6):
                            information[a, b] += weighted * slope[j, b]
        solve_small(information.copy(), change)
        exp_so3_into(change[3], change[4], change[5], turn)
        for i in range(3):
            X[i, 3] += change[i]
            for j in range(3):
                turned[i, j] = 0.0
                for k in range(3):
                    turned[i, j] += turn[i, k] * X[k, j]
        X[:3, :3] = turned
    for n in range(known.shape[0]):
        _miss(known[n], measured[n], X, arm, miss)
        misfits[n] = weighted_square(miss, weights[n])
    return information


@kernel
def _miss(known: Array, measured: Array, X: Array, arm: Array, miss: Array) -> None:
    """Write a marker's vector from the disk's origin, and its misfit, both (3,) [m]."""
    for i in range(3):
        arm[i] = X[i, 0] * known[0] + X[i, 1] * known[1] + X[i, 2] * known[2]
        miss[i] = measured[i] - arm[i] - X[i, 3]


@kernel
def rigid_labels(
    points: Array, expected: Array, reach_m: float, tolerance_m: float
) -> NDArray[np.int64]:
    """
    Return the index of the point of each marker (m,) of a disk, -1 for none; see `label_rigid`.

    All shifts shorter than `reach_m` that bring a marker onto a point are tried.
    """
    count, markers = points.shape[0], expected.shape[0]
    tried = count * markers
    best = np.empty((tried, markers), dtype=np.int64)
    explained, cost = np.zeros(tried, dtype=np.int64), np.full(tried, math.inf)
    shifts = 0
    for p in range(count):
        for m in range(markers):
            x, y, z = _between(expected[m], points[p])
            if math.sqrt(x * x + y * y + z * z) >= reach_m:
                continue
            cost[shifts] = 0.0
            for k in range(markers):
                nearest, away = -1, math.inf
                for q in range(count):
                    u, v, w = _between(expected[k], points[q])
                    miss = math.sqrt((u - x) ** 2 + (v - y) ** 2 + (w - z) ** 2)
                    if miss < away:
                        nearest, away = q, miss
                best[shifts, k] = nearest if away < tolerance_m else -1
                explained[shifts] += away < tolerance_m
                cost[shifts] += min(away, tolerance_m) ** 2
            shifts += 1
    none = np.full(markers, -1, dtype=np.int64)
    if shifts == 0:
        return none
    first = 0
    for s in range(1, shifts):
        more = explained[s] - explained[first]
        if more > 0 or (more == 0 and cost[s] < cost[first]):
            first = s
    chosen = best[first]
    for k in range(markers):
        for j in range(k):
            if chosen[k] >= 0 and chosen[k] == chosen[j]:
                return none
    for s in range(shifts):
        alike = cost[s] <= 2.0 * cost[first] + tolerance_m**2
        if explained[s] < explained[first] or not alike:
            continue
        for k in range(markers):
            if chosen[k] >= 0 and best[s, k] >= 0 and best[s, k] != chosen[k]:
                return none
    return chosen


@kernel
def _between(start: Array, end: Array) -> tuple[float, float, float]:
    return end[0] - start[0], end[1] - start[1], end[2] - start[2]
