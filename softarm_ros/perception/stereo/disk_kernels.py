"""Compiled identification of the markers of a rigid disk, and fit of its pose."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import solve_small, weighted_square
from softarm_ros.geometry.rotation_kernels import exp_so3_into
from softarm_ros.perception.stereo.pair_kernels import invert_symmetric

_STEPS = 2  # Gauss-Newton steps, starting from the unweighted fit
_FEWEST = 3
# 99.9 % quantiles of chi-square with 3, 6, 9, ... degrees of freedom, for 3, 4, 5, ... markers.
_GATES = (16.27, 22.46, 27.88, 32.91, 37.70, 42.31)
_SWEEPS = 30
_ROUNDING = 1e-16
_FLAT = 1e-6  # ratio of the spreads of points on a line


@kernel
def fit_disk(
    known: Array,
    measured: Array,
    covariances: Array,
    mounted_within_m: float,
    X: Array,
    covariance: Array,
    used: NDArray[np.bool_],
) -> bool:
    """
    Write the pose that maps known markers to measured ones; return whether there is one.

    The marker that agrees least is left out until the others agree.

    Parameters
    ----------
    known, measured, covariances, mounted_within_m
        As for `disk_pose`.
    X, covariance : (4, 4), (6, 6)
        Output: the pose and its covariance.
    used : (n,)
        Output: which markers agree with the pose.

    """
    total = known.shape[0]
    weights, spread = np.empty((total, 3, 3)), np.empty((3, 3))
    for n in range(total):
        spread[:] = covariances[n]
        for k in range(3):
            spread[k, k] += mounted_within_m**2
        if not invert_symmetric(spread, weights[n]):
            return False
    source, target, misfits = np.empty((total, 3)), np.empty((total, 3)), np.empty(total)
    weight, places = np.empty((total, 3, 3)), np.empty(total, dtype=np.int64)
    used[:] = True
    for count in range(total, _FEWEST - 1, -1):
        k = 0
        for n in range(total):
            if used[n]:
                source[k], target[k], weight[k], places[k] = known[n], measured[n], weights[n], n
                k += 1
        if not _fit(source[:count], target[:count], X):
            return False
        information = refine_pose(
            source[:count], target[:count], weight[:count], _STEPS, X, misfits[:count]
        )
        worst, misfit = 0, 0.0
        for k in range(count):
            misfit += misfits[k]
            worst = k if misfits[k] > misfits[worst] else worst
        if misfit < _GATES[min(count - _FEWEST, len(_GATES) - 1)]:
            for k in range(6):
                column = np.zeros(6)
                column[k] = 1.0
                solve_small(information.copy(), column)
                covariance[:, k] = column
            return True
        used[places[worst]] = False
    return False


@kernel
def _fit(known: Array, measured: Array, X: Array) -> bool:
    """
    Write the least-squares pose of `rigid_fit`; return whether the points (n, 3) lie on no line.

    One-sided Jacobi rotations yield the two largest singular values with their vectors; the third
    pair of vectors is perpendicular to these.
    """
    count = known.shape[0]
    middle, centre = np.zeros(3), np.zeros(3)
    for n in range(count):
        for k in range(3):
            middle[k] += known[n, k] / count
            centre[k] += measured[n, k] / count
    # The columns of A become the left singular vectors times the singular values.
    A, V = np.zeros((3, 3)), np.zeros((3, 3))
    for i in range(3):
        V[i, i] = 1.0
        for j in range(3):
            for n in range(count):
                A[i, j] += (measured[n, i] - centre[i]) * (known[n, j] - middle[j])
    for _ in range(_SWEEPS):
        turned = False
        for p in range(2):
            for q in range(p + 1, 3):
                turned = _turn_columns(A, V, p, q) or turned
        if not turned:
            break
    sizes = np.sqrt(A[0] ** 2 + A[1] ** 2 + A[2] ** 2)
    last = int(np.argmin(sizes))
    a, b = (last + 1) % 3, (last + 2) % 3
    if not min(sizes[a], sizes[b]) >= _FLAT * max(sizes[a], sizes[b]) > 0.0:
        return False
    left, right = np.empty((3, 3)), np.empty((3, 3))
    for k in range(3):
        left[0, k], left[1, k] = A[k, a] / sizes[a], A[k, b] / sizes[b]
        right[0, k], right[1, k] = V[k, a], V[k, b]
    _cross(left)
    _cross(right)
    for i in range(3):
        X[i, 3] = centre[i]
        for j in range(3):
            X[i, j] = 0.0
            for k in range(3):
                X[i, j] += left[k, i] * right[k, j]
            X[i, 3] -= X[i, j] * middle[j]
    X[3, 0] = X[3, 1] = X[3, 2] = 0.0
    X[3, 3] = 1.0
    return True


@kernel
def _turn_columns(A: Array, V: Array, p: int, q: int) -> bool:
    """Make two columns of A perpendicular; return whether they were not."""
    large = small = both = 0.0
    for k in range(3):
        large += A[k, p] * A[k, p]
        small += A[k, q] * A[k, q]
        both += A[k, p] * A[k, q]
    if not abs(both) > _ROUNDING * math.sqrt(large * small):
        return False
    ratio = (small - large) / (2.0 * both)
    tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
    c = 1.0 / math.sqrt(1.0 + tangent * tangent)
    s = c * tangent
    for k in range(3):
        A[k, p], A[k, q] = c * A[k, p] - s * A[k, q], s * A[k, p] + c * A[k, q]
        V[k, p], V[k, q] = c * V[k, p] - s * V[k, q], s * V[k, p] + c * V[k, q]
    return True


@kernel
def _cross(rows: Array) -> None:
    """Write the cross product of the first two rows (3, 3) to the third."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        rows[2, k] = rows[0, i] * rows[1, j] - rows[0, j] * rows[1, i]


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
def assign_disks(
    points: Array,
    places: Array,
    reaches: Array,
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    tolerances_m: Array,
) -> NDArray[np.int64]:
    """
    Return the index of the point of each marker (m,) of all disks, -1 for none.

    No point belongs to two disks: if two claim the same points, the disk that is nearer to its
    expected position gets them. A disk has three points or none.

    Parameters
    ----------
    points : (n, 3)
        Candidates.
    places, reaches : (k, 3), (k,)
        Expected positions of markers, and their standard deviations [m].
    rows : (m,)
        Index of each marker of the disks in `places`; -1 if its position is not known.
    starts : (d + 1,)
        Index of the first marker of each disk, and m.
    tolerances_m : (d,)
        Tolerance of a marker's position on each disk after a shift: the disk may have turned.

    """
    disks = tolerances_m.shape[0]
    labels = np.full(rows.shape[0], -1, dtype=np.int64)
    free = np.ones(points.shape[0], dtype=np.bool_)
    settled = np.zeros(disks, dtype=np.bool_)
    for d in range(disks):
        a, b = starts[d], starts[d + 1]
        _claim(points, free, places, reaches, rows[a:b], tolerances_m[d], labels[a:b])
    for _ in range(disks):
        nearest, least = -1, math.inf
        for d in range(disks):
            if settled[d]:
                continue
            a, b = starts[d], starts[d + 1]
            shift = _shift(points, places, rows[a:b], labels[a:b])
            if nearest < 0 or shift < least:
                nearest, least = d, shift
        settled[nearest] = True
        for m in range(starts[nearest], starts[nearest + 1]):
            if labels[m] >= 0:
                free[labels[m]] = False
        for d in range(disks):
            if settled[d]:
                continue
            a, b = starts[d], starts[d + 1]
            for m in range(a, b):
                if labels[m] >= 0 and not free[labels[m]]:
                    _claim(points, free, places, reaches, rows[a:b], tolerances_m[d], labels[a:b])
                    break
    return labels


@kernel
def _claim(
    points: Array,
    free: NDArray[np.bool_],
    places: Array,
    reaches: Array,
    rows: NDArray[np.int64],
    tolerance_m: float,
    labels: NDArray[np.int64],
) -> None:
    """Write the index of the free point of each marker of a disk; -1 for all if not seen."""
    labels[:] = -1
    expected = np.empty((rows.shape[0], 3))
    reach = 0.0
    for m in range(rows.shape[0]):
        if rows[m] < 0:
            return
        expected[m] = places[rows[m]]
        reach = max(reach, reaches[rows[m]])
    which = np.flatnonzero(free)
    if which.size == 0:
        return
    left = np.empty((which.size, 3))
    for n in range(which.size):
        left[n] = points[which[n]]
    found = rigid_labels(left, expected, 3.0 * reach, tolerance_m)
    if (found >= 0).sum() < _FEWEST:
        return
    for m in range(rows.shape[0]):
        if found[m] >= 0:
            labels[m] = which[found[m]]


@kernel
def _shift(
    points: Array, places: Array, rows: NDArray[np.int64], labels: NDArray[np.int64]
) -> float:
    """Return the distance of a disk from its expected position [m]; inf if not seen."""
    x = y = z = 0.0
    count = 0
    for m in range(rows.shape[0]):
        if labels[m] >= 0:
            u, v, w = _between(places[rows[m]], points[labels[m]])
            x, y, z, count = x + u, y + v, z + w, count + 1
    return math.sqrt(x * x + y * y + z * z) / count if count else math.inf


@kernel
def rigid_labels(
    points: Array, expected: Array, reach_m: float, tolerance_m: float
) -> NDArray[np.int64]:
    """
    Return the index of the point of each marker (m,) of a rigid disk, -1 for none.

    If a disk is not at its expected place, all of its markers are shifted. So every shift that
    brings a marker onto a point is tried. The shift that explains most markers is taken; among
    equals, that with the smallest misfit. If two shifts are similar in both, no marker has a
    point.

    Parameters
    ----------
    points : (n, 3)
        Candidates.
    expected : (m, 3)
        Expected positions of the markers.
    reach_m : float
        Longest shift of the disk.
    tolerance_m : float
        Tolerance of a marker's position after the shift: the disk may have turned.

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
