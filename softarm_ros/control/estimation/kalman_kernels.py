"""
Compiled bank of Kalman filters over deviations and their rates.

State x = (c, v), (2 n,): dc = v dt, dv = -v / memory dt + w, with w white of density q. These are
integrated Ornstein-Uhlenbeck processes; for a long memory they become white noise on acceleration.
All filters of a bank have the same measurements and differ in the scale of q.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

_FAR = 1e30
_LEAST = -24.0  # lower bound of a weight's logarithm


@kernel(allocates=False)
def predict(
    x: Array, P: Array, scales: Array, density: Array, memory_s: float, period_s: float
) -> None:
    """
    Predict a bank in place, x (K, 2 n) and P (K, 2 n, 2 n), by `period_s` [s].

    The noise of filter k has the spectral density scales[k] density, (K,) and (n, n).

    Exact for the process above.
    """
    bank, n = len(scales), len(density)
    left = math.exp(-period_s / memory_s)
    gone = -math.expm1(-period_s / memory_s)
    a = memory_s * gone
    gone_twice = -math.expm1(-2.0 * period_s / memory_s)
    vv = 0.5 * memory_s * gone_twice
    cv = 0.5 * memory_s * memory_s * gone * gone
    # For a short period, rounding destroys the exact difference; use its leading term.
    ratio = period_s / memory_s
    if ratio < 1e-3:
        cc = period_s**3 / 3.0 * (1.0 - 0.75 * ratio)
    else:
        cc = memory_s * memory_s * (period_s - 2.0 * a + 0.5 * memory_s * gone_twice)
    for k in range(bank):
        for i in range(n):
            x[k, i] += a * x[k, n + i]
            x[k, n + i] *= left
        for i in range(n):
            for j in range(n):
                old_cv, old_vc, old_vv = P[k, i, n + j], P[k, n + i, j], P[k, n + i, n + j]
                P[k, i, j] += a * (old_cv + old_vc) + a * a * old_vv
                P[k, i, n + j] = left * (old_cv + a * old_vv)
                P[k, n + i, j] = left * (old_vc + a * old_vv)
                q = scales[k] * density[i, j]
                P[k, i, j] += q * cc
                P[k, i, n + j] += q * cv
                P[k, n + i, j] += q * cv
                P[k, n + i, n + j] = left * left * old_vv + q * vv


@kernel(allocates=False)
def predict_past(past_with_now: Array, memory_s: float, period_s: float) -> None:
    """Predict the covariance (K, p, 2 n) of a past quantity with x, in place, as `predict`."""
    left = math.exp(-period_s / memory_s)
    a = memory_s * -math.expm1(-period_s / memory_s)
    n = past_with_now.shape[2] // 2
    for k in range(past_with_now.shape[0]):
        for p in range(past_with_now.shape[1]):
            row = past_with_now[k, p]
            for i in range(n):
                row[i] += a * row[n + i]
                row[n + i] *= left


@kernel(allocates=False)
def innovate(
    x: Array,
    P: Array,
    at: Array,
    H: Array,
    r: Array,
    R: Array,
    m: int,
    W: Array,
    L: Array,
    y: Array,
) -> tuple[float, float]:
    """
    Prepare an update by the first m rows, 3 or 6; return (squared distance, log determinant).

    H (m, n) is the derivative by c at `at` (n,), r (m,) the residual there. Writes the Cholesky
    factor L (m, m) of the innovation's covariance, y = L^-1 innovation and, in W (m, 2 n), H P.
    """
    n, size = H.shape[1], len(x)
    used = n  # the last columns are zero: they belong to sections beyond the place
    while used > 0 and _is_zero(H, m, used - 1):
        used -= 1
    # By rows of P, which is symmetric, and three rows of H at once: contiguous in memory.
    for a in range(0, m, 3):
        first, second, third = W[a], W[a + 1], W[a + 2]
        for i in range(size):
            first[i] = second[i] = third[i] = 0.0
        for j in range(used):
            f, s, t = H[a, j], H[a + 1, j], H[a + 2, j]
            row = P[j]
            for i in range(size):
                first[i] += f * row[i]
                second[i] += s * row[i]
                third[i] += t * row[i]
    logs, distance = 0.0, 0.0
    for a in range(m):
        value = r[a]
        for j in range(used):
            value -= H[a, j] * (x[j] - at[j])
        y[a] = value
        for b in range(a + 1):
            s = R[a, b]
            for j in range(used):
                s += H[a, j] * W[b, j]
            for e in range(b):
                s -= L[a, e] * L[b, e]
            if a == b:
                L[a, a] = math.sqrt(max(s, 1e-300))
            else:
                L[a, b] = s / L[b, b]
        for e in range(a):
            y[a] -= L[a, e] * y[e]
        y[a] /= L[a, a]
        logs += 2.0 * math.log(L[a, a])
        distance += y[a] * y[a]
    return distance, logs


@kernel(allocates=False)
def _is_zero(H: Array, rows: int, column: int) -> bool:
    largest = 0.0
    for a in range(rows):
        largest = max(largest, abs(H[a, column]))
    return largest == 0.0


@kernel(allocates=False)
def apply_innovation(x: Array, P: Array, m: int, W: Array, L: Array, y: Array) -> None:
    """Update x (2 n,), P (2 n, 2 n) with the output of `innovate`; W becomes L^-1 H P (m, 2 n)."""
    size = len(x)
    for a in range(m):
        for e in range(a):
            factor = L[a, e]
            for i in range(size):
                W[a, i] -= factor * W[e, i]
        inverse = 1.0 / L[a, a]
        for i in range(size):
            W[a, i] *= inverse
            x[i] += W[a, i] * y[a]
    # P -= W^T W, by rows as in `innovate`.
    for a in range(0, m, 3):
        first, second, third = W[a], W[a + 1], W[a + 2]
        for i in range(size):
            f, s, t = first[i], second[i], third[i]
            row = P[i]
            for j in range(size):
                row[j] -= f * first[j] + s * second[j] + t * third[j]


@kernel(allocates=False)
def _apply_to_past(
    past: Array,
    past_with_now: Array,
    past_P: Array,
    m: int,
    H: Array,
    W: Array,
    L: Array,
    y: Array,
    told: Array,
) -> None:
    """Update the past quantity after `apply_innovation`; `told` (6, p) is overwritten."""
    count = len(past)
    for a in range(m):  # L^-1 H times the covariance of present and past
        for p in range(count):
            value = 0.0
            for j in range(H.shape[1]):
                value += H[a, j] * past_with_now[p, j]
            for e in range(a):
                value -= L[a, e] * told[e, p]
            told[a, p] = value / L[a, a]
    for p in range(count):
        row = past_with_now[p]
        for a in range(m):
            factor = told[a, p]
            past[p] += factor * y[a]
            for i in range(len(row)):
                row[i] -= factor * W[a, i]
            for b in range(count):
                past_P[p, b] -= factor * told[a, b]


@kernel
def absorb(
    x: Array,
    P: Array,
    weights: Array,
    at: Array,
    H: Array,
    r: Array,
    R: Array,
    sizes: NDArray[np.int64],
    gates: Array,
    taken: NDArray[np.int64],
    distances: Array,
    past: Array,
    past_with_now: Array,
    past_P: Array,
) -> None:
    """
    Update a bank in place by blocks of up to six rows, each gated separately.

    Parameters
    ----------
    x, P
        (K, 2 n), (K, 2 n, 2 n).
    weights : (K,)
        Logarithms of the filters' likelihoods.
    at : (n,)
        Deviations at which H and r were computed.
    H, r, R : (blocks, 6, n), (blocks, 6), (blocks, 6, 6)
        Derivatives, residuals, covariances.
    sizes : (blocks,)
        Number of rows of each block.
    gates : (7,)
        Largest squared distance from the likeliest filter, by number of rows. For another filter
        it is smaller by twice the logarithm of how much less likely that filter is.
    taken : (blocks,)
        Written: rows used. If a block of six is too far away, its first three rows are tried: the
        position of a body whose attitude may be flipped.
    distances : (blocks,)
        Written: squared distance of all rows from the likeliest filter.
    past, past_with_now, past_P : (K, p), (K, p, 2 n), (K, p, p)
        Quantity of the past, its covariance with x, and its own covariance; updated too (a
        fixed-point smoother).

    """  # fmt: skip
    bank, size = x.shape
    W, L, y = np.empty((bank, 6, size)), np.empty((bank, 6, 6)), np.empty((bank, 6))
    far, logs = np.empty(bank), np.empty(bank)
    told = np.empty((6, past.shape[1]))
    for block in range(len(sizes)):
        m = sizes[block]
        taken[block] = 0
        while True:
            best, nearest, likeliest = -_FAR, _FAR, 0
            for k in range(bank):
                best = max(best, weights[k])
            for k in range(bank):
                far[k], logs[k] = innovate(
                    x[k], P[k], at, H[block], r[block], R[block], m, W[k], L[k], y[k]
                )
                if weights[k] >= weights[likeliest]:
                    likeliest = k
                # A measurement near an unlikely filter is as doubtful as that filter.
                nearest = min(nearest, far[k] + 2.0 * (best - weights[k]))
            if m == sizes[block]:
                distances[block] = far[likeliest]
            if nearest <= gates[m]:
                taken[block] = m
                break
            if m != 6:
                break
            m = 3
        if taken[block] == 0:
            continue
        for k in range(bank):
            apply_innovation(x[k], P[k], m, W[k], L[k], y[k])
            _apply_to_past(
                past[k], past_with_now[k], past_P[k], m, H[block], W[k], L[k], y[k], told
            )
            weights[k] -= 0.5 * (far[k] + logs[k])
        best = -_FAR
        for k in range(bank):
            best = max(best, weights[k])
        for k in range(bank):
            weights[k] = max(weights[k] - best, _LEAST)


@kernel(allocates=False)
def shares_into(weights: Array, share: Array) -> None:
    """Write the probabilities (K,) of the filters from their log weights (K,); may be in place."""
    best, total = weights[0], 0.0
    for k in range(len(weights)):
        best = max(best, weights[k])
    for k in range(len(weights)):
        share[k] = math.exp(weights[k] - best)
        total += share[k]
    for k in range(len(weights)):
        share[k] /= total


@kernel(allocates=False)
def mean_into(x: Array, weights: Array, share: Array, mean: Array) -> None:
    """Write the probability of each filter of a bank (K,) and their mean (2 n,)."""
    shares_into(weights, share)
    mean[:] = 0.0
    for k in range(len(x)):
        for i in range(len(mean)):
            mean[i] += share[k] * x[k, i]


@kernel
def merged(x: Array, P: Array, weights: Array) -> tuple[Array, Array, Array]:
    """
    Return mean (2 n,), covariance (2 n, 2 n) and shares (K,) of a bank.

    The covariance includes the spread between the filters.
    """
    bank, size = x.shape
    share, apart = np.empty(bank), np.empty(size)
    mean, covariance = np.empty(size), np.zeros((size, size))
    mean_into(x, weights, share, mean)
    for k in range(bank):
        if share[k] < 1e-9:
            continue
        for i in range(size):
            apart[i] = x[k, i] - mean[i]
        for i in range(size):
            d, row, of = apart[i], covariance[i], P[k, i]
            for j in range(size):
                row[j] += share[k] * (of[j] + d * apart[j])
    return mean, covariance, share
