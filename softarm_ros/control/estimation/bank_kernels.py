"""Compiled steps of a bank of filters on a chain of sections: one call for each step."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.control.estimation.chain_kernels import places_into
from softarm_ros.control.estimation.kalman_kernels import (
    absorb,
    mean_into,
    merged,
    predict,
    predict_past,
    shares_into,
)
from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import log_so3_of

HINDSIGHT_S = 0.06  # delay after which an expectation is compared with the later estimate
_REMEMBERED_S = 1.0  # time constant with which comparisons are forgotten
_LEAST_TOLD = 0.1  # of 3; below, the tip was hardly measured and the comparison tells nothing


@kernel(allocates=False)
def strains_into(
    commanded: Array, modes: IntArray, shares: Array, deviation: Array, strains: Array
) -> None:
    """Write the strains (sections, 6): the commanded ones plus shares deviation[modes]."""
    for k in range(len(commanded)):
        for i in range(6):
            row = 6 * k + i
            strains[k, i] = commanded[k, i] + shares[row] * deviation[modes[row]]


@kernel(allocates=False)
def by_modes_into(jacobian: Array, modes: IntArray, shares: Array, H: Array) -> None:
    """Write the derivative (6, n) by deviations, from that by strains (6, 6 sections)."""
    H[:, :] = 0.0
    for a in range(6):
        for i in range(len(modes)):
            H[a, modes[i]] += shares[i] * jacobian[a, i]


@kernel
def residual_into(measured: Array, foreseen: Array, rows: int, turn: Array, r: Array) -> None:
    """Write measured less predicted pose (6,): position and, if rows is 6, rotation vector."""
    for i in range(3):
        r[i] = measured[i, 3] - foreseen[i, 3]
        r[3 + i] = 0.0
    if rows < 6:
        return
    for i in range(3):
        for j in range(3):
            value = 0.0
            for m in range(3):
                value += measured[i, m] * foreseen[j, m]
            turn[i, j] = value
    r[3], r[4], r[5] = log_so3_of(turn)


@kernel
def take_in(
    x: Array,
    P: Array,
    weights: Array,
    rates: Array,
    scales: Array,
    memory_s: float,
    learning_s: float,
    least_rates: Array,
    period_s: float,
    commanded: Array,
    modes: IntArray,
    shares: Array,
    sections: IntArray,
    fractions: Array,
    offsets: Array,
    poses: Array,
    covariances: Array,
    sizes: IntArray,
    gates: Array,
    rows: IntArray,
    distances: Array,
    expected: Array,
    past: Array,
    past_with_now: Array,
    past_P: Array,
    tests: Array,
) -> None:
    """
    Advance a bank to an exposure and update it with its measurements, in place.

    Parameters
    ----------
    x, P, weights
        (K, 2 n), (K, 2 n, 2 n), (K,): at the previous measurement; overwritten.
    rates : (n, n)
        Covariance of the velocities learnt so far; overwritten with the new one.
    scales, memory_s, least_rates
        As in `DeviationModel`.
    learning_s, period_s : float
        Time constant of the learning, and time since the previous measurement [s].
    commanded : (sections, 6)
        Strains of the command at that time.
    modes, shares
        As in `DeviationModel`.
    sections, fractions, offsets, poses, covariances, sizes
        As in `Measured`.
    gates, rows, distances
        As in `absorb`.
    expected, past, past_with_now, past_P, tests
        As in `Hindsight`; overwritten.

    """
    n, blocks, count = len(rates), len(sizes), len(commanded)
    if period_s > 0.0:
        predict(x, P, scales, 2.0 / memory_s * rates, memory_s, period_s)
        predict_past(past_with_now, memory_s, period_s)
    tests[0] += period_s
    undoubted, published = np.empty(len(scales)), np.empty(2 * n)
    mean_into(x, weights, undoubted, published)
    _doubt(weights, -math.expm1(-period_s / memory_s))
    likely, mean = np.empty(len(scales)), np.empty(2 * n)
    mean_into(x, weights, likely, mean)
    at = mean[:n]
    strains, turn = np.empty((count, 6)), np.empty((3, 3))
    foreseen, jacobians = np.empty((blocks, 4, 4)), np.empty((blocks, 6, 6 * count))
    H, r = np.empty((blocks, 6, n)), np.empty((blocks, 6))
    strains_into(commanded, modes, shares, at, strains)
    places_into(strains, sections, fractions, offsets, foreseen, jacobians)
    for b in range(blocks):
        residual_into(poses[b], foreseen[b], sizes[b], turn, r[b])
        by_modes_into(jacobians[b], modes, shares, H[b])
    if tests[0] >= HINDSIGHT_S:
        _compare(expected, past, past_P, weights, tests)
        _expect(
            strains, modes, shares, x, P, undoubted, published, expected, past, past_with_now,
            past_P,
        )  # fmt: skip
        tests[0] = 0.0
    absorb(
        x, P, weights, at, H, r, covariances, sizes, gates, rows, distances, past, past_with_now,
        past_P,
    )  # fmt: skip
    _learn(rates, x, P, weights, scales, least_rates, -math.expm1(-period_s / learning_s))


@kernel
def _expect(
    strains: Array,
    modes: IntArray,
    shares: Array,
    x: Array,
    P: Array,
    likely: Array,
    mean: Array,
    expected: Array,
    past: Array,
    past_with_now: Array,
    past_P: Array,
) -> None:
    """
    Store the expected tip position before it is measured, for `Hindsight`.

    `likely` (K,) and `mean` (2 n,) are those of the published estimate, before `_doubt`.
    """
    bank, n, count = len(x), len(mean) // 2, len(strains)
    pose, jacobian = np.empty((1, 4, 4)), np.empty((1, 6, 6 * count))
    offset, H = np.zeros((1, 4, 4)), np.empty((6, n))
    for i in range(4):
        offset[0, i, i] = 1.0
    end, whole = np.full(1, count - 1), np.ones(1)
    places_into(strains, end, whole, offset, pose, jacobian)
    by_modes_into(jacobian[0], modes, shares, H)
    expected[:, :] = 0.0
    for k in range(bank):
        for p in range(3):
            value = 0.0
            for j in range(n):
                value += H[p, j] * (x[k, j] - mean[j])
            past[k, p] = value
            row = past_with_now[k, p]
            row[:] = 0.0
            for j in range(n):
                for i in range(2 * n):
                    row[i] += H[p, j] * P[k, j, i]
        for p in range(3):
            for q in range(3):
                value = 0.0
                for j in range(n):
                    value += past_with_now[k, p, j] * H[q, j]
                past_P[k, p, q] = value
                expected[p, q] += likely[k] * (value + past[k, p] * past[k, q])


@kernel
def _compare(expected: Array, past: Array, past_P: Array, weights: Array, tests: Array) -> None:
    """
    Compare the tip's later estimate with its expectation, for `Hindsight`.

    If a covariance M is right and later measurements reduce it to S, the squared difference,
    normalized by M, is 3 - tr(M^-1 S) on average.
    """
    if expected[0, 0] <= 0.0:
        return
    bank = len(past)
    likely, off, left = np.empty(bank), np.zeros(3), np.zeros((3, 3))
    shares_into(weights, likely)
    for k in range(bank):
        for p in range(3):
            off[p] += likely[k] * past[k, p]
    for k in range(bank):
        for p in range(3):
            for q in range(3):
                apart = (past[k, p] - off[p]) * (past[k, q] - off[q])
                left[p, q] += likely[k] * (past_P[k, p, q] + apart)
    inverse = np.linalg.inv(expected)
    found, told = 0.0, 3.0
    for p in range(3):
        for q in range(3):
            found += inverse[p, q] * off[p] * off[q]
            told -= inverse[p, q] * left[p, q]
    if told < _LEAST_TOLD:
        return
    kept = math.exp(-tests[0] / _REMEMBERED_S)
    tests[1] = kept * tests[1] + found
    tests[2] = kept * tests[2] + told


@kernel(allocates=False)
def _doubt(weights: Array, share: float) -> None:
    """
    Mix the weights: with probability `share`, any filter may be the right one now.

    `weights` (K,) are logarithms.
    """
    shares_into(weights, weights)
    for k in range(len(weights)):
        weights[k] = math.log((1.0 - share) * weights[k] + share / len(weights))


@kernel
def _learn(
    rates: Array,
    x: Array,
    P: Array,
    weights: Array,
    scales: Array,
    least_rates: Array,
    share: float,
) -> None:
    """
    Replace a share of the learnt rates (n, n) by the velocities of the last period.

    The rates average the second moment of each filter's velocity, divided by the filter's scale
    (expectation maximisation). Without measurements that moment equals the present rates, so what
    is not observed is neither learnt nor forgotten.
    """
    bank, n = len(scales), len(rates)
    likely = np.empty(bank)
    shares_into(weights, likely)
    for i in range(n):
        for j in range(n):
            rates[i, j] *= 1.0 - share
    for k in range(bank):
        part = share * likely[k] / scales[k]
        for i in range(n):
            for j in range(n):
                rates[i, j] += part * (P[k, n + i, n + j] + x[k, n + i] * x[k, n + j])
    for i in range(n):
        rates[i, i] = max(rates[i, i], least_rates[i])


@kernel
def foreseen(
    x: Array,
    P: Array,
    weights: Array,
    rates: Array,
    scales: Array,
    memory_s: float,
    period_s: float,
    commanded: Array,
    commanded_rates: Array,
    modes: IntArray,
    shares: Array,
    sections: IntArray,
    fractions: Array,
    offsets: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """
    Return a bank's prediction for places on the arm, a period [s] later.

    Strains and their rates (sections, 6); poses (places, 4, 4); for the last place the derivative
    by the deviations (6, n), the twist (6,) and the covariance (6, 6); the covariance of the
    strains (6 sections, 6 sections); mean (2 n,) and covariance (2 n, 2 n) of the state.
    Parameters as in `take_in`; `commanded_rates` (sections, 6) are the commanded strain rates.

    The filters are merged before the prediction, which is linear. Its noise has the mean scale.
    """
    n, count = len(rates), len(commanded)
    mean, covariance, likely = merged(x, P, weights)
    if period_s > 0.0:
        scale = np.zeros(1)
        for k in range(len(scales)):
            scale[0] += likely[k] * scales[k]
        predict(
            mean.reshape((1, 2 * n)), covariance.reshape((1, 2 * n, 2 * n)), scale,
            2.0 / memory_s * rates, memory_s, period_s,
        )  # fmt: skip
    strains, strain_rates = np.empty((count, 6)), np.empty((count, 6))
    strains_into(commanded, modes, shares, mean[:n], strains)
    strains_into(commanded_rates, modes, shares, mean[n:], strain_rates)
    poses = np.empty((len(sections), 4, 4))
    jacobians = np.empty((len(sections), 6, 6 * count))
    places_into(strains, sections, fractions, offsets, poses, jacobians)
    H, twist, last = np.empty((6, n)), np.zeros(6), np.zeros((6, 6))
    by_modes_into(jacobians[-1], modes, shares, H)
    for a in range(6):
        for k in range(count):
            for i in range(6):
                twist[a] += jacobians[-1, a, 6 * k + i] * strain_rates[k, i]
        for j in range(n):
            value = 0.0
            for i in range(n):
                value += H[a, i] * covariance[i, j]
            for b in range(6):
                last[a, b] += value * H[b, j]
    of_strains = np.empty((6 * count, 6 * count))
    for i in range(6 * count):
        for j in range(6 * count):
            of_strains[i, j] = shares[i] * shares[j] * covariance[modes[i], modes[j]]
    return strains, strain_rates, poses, H, twist, last, of_strains, mean, covariance
