"""A bank of filters and the chain of sections together, compiled: a call for each step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.estimation.chain_kernels import places_into
from softarm_ros.control.estimation.kalman_kernels import absorb, merged, shares_into
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import log_so3_of


@kernel(allocates=False)
def strains_into(commanded: Array, spread: Array, deviation: Array, strains: Array) -> None:
    """Write the strains (sections, 6): those of the command and spread @ deviation (n,)."""
    for k in range(len(commanded)):
        for i in range(6):
            value = commanded[k, i]
            for j in range(len(deviation)):
                value += spread[6 * k + i, j] * deviation[j]
            strains[k, i] = value


@kernel(allocates=False)
def by_modes_into(jacobian: Array, spread: Array, H: Array) -> None:
    """Write jacobian (6, 6 sections) @ spread (6 sections, n), of which most is zero."""
    H[:, :] = 0.0
    for i in range(len(spread)):
        for j in range(spread.shape[1]):
            if spread[i, j] != 0.0:  # a section belongs to one group
                for a in range(6):
                    H[a, j] += jacobian[a, i] * spread[i, j]


@kernel
def residual_into(measured: Array, foreseen: Array, rows: int, turn: Array, r: Array) -> None:
    """Write measured less foreseen pose (6,): position, and of six rows the rotation vector."""
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
    spread: Array,
    sections: NDArray[np.int64],
    fractions: Array,
    offsets: Array,
    poses: Array,
    covariances: Array,
    sizes: NDArray[np.int64],
    gates: Array,
    rows: NDArray[np.int64],
    distances: Array,
) -> None:
    """
    Update a bank in place by what one exposure measured.

    Parameters
    ----------
    x, P, weights
        (K, 2 n), (K, 2 n, 2 n), (K,): predicted for the time of the exposure; overwritten.
    rates : (n, n)
        Covariance of the velocities as it has been learnt; overwritten with what is learnt now.
    scales, memory_s, least_rates
        As `DeviationModel`.
    learning_s, period_s : float
        Over which is learnt, and since the measurement before [s].
    commanded : (sections, 6)
        Strains of the command at that time.
    spread : (6 sections, n)
        As `DeviationModel`.
    sections, fractions, offsets, poses, covariances, sizes
        As `Measured`.
    gates, rows, distances
        As `absorb`.

    """
    n, blocks, count = len(rates), len(sizes), len(commanded)
    _doubt(weights, -math.expm1(-period_s / memory_s))
    at = merged(x, P, weights)[0][:n].copy()
    strains, turn = np.empty((count, 6)), np.empty((3, 3))
    foreseen, jacobians = np.empty((blocks, 4, 4)), np.empty((blocks, 6, 6 * count))
    H, r = np.empty((blocks, 6, n)), np.empty((blocks, 6))
    strains_into(commanded, spread, at, strains)
    places_into(strains, sections, fractions, offsets, foreseen, jacobians)
    for b in range(blocks):
        residual_into(poses[b], foreseen[b], sizes[b], turn, r[b])
        by_modes_into(jacobians[b], spread, H[b])
    absorb(x, P, weights, at, H, r, covariances, sizes, gates, rows, distances)
    _learn(rates, x, P, weights, scales, least_rates, -math.expm1(-period_s / learning_s))


@kernel(allocates=False)
def _doubt(weights: Array, share: float) -> None:
    """
    Let another filter be right with some probability, any of them as likely.

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
    Have a share of what is learnt (n, n) replaced by the velocities of the last period.

    What is averaged is the second moment of the velocity as each filter has it, over its scale
    (expectation maximisation). Where nothing is seen that is what was believed before: what is
    not observed is neither learnt nor unlearnt.
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
    commanded: Array,
    commanded_rates: Array,
    spread: Array,
    sections: NDArray[np.int64],
    fractions: Array,
    offsets: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """
    Return what a bank says of places.

    Strains and their rates (sections, 6), poses (places, 4, 4), of the last place the derivative
    by the deviations (6, n) and the twist (6,), then mean (2 n,) and covariance (2 n, 2 n).
    Parameters as of `take_in`; `commanded_rates` (sections, 6) are those of the strains.
    """
    n, count = spread.shape[1], len(commanded)
    mean, covariance = merged(x, P, weights)
    strains, rates = np.empty((count, 6)), np.empty((count, 6))
    strains_into(commanded, spread, mean[:n], strains)
    strains_into(commanded_rates, spread, mean[n:], rates)
    poses = np.empty((len(sections), 4, 4))
    jacobians = np.empty((len(sections), 6, 6 * count))
    places_into(strains, sections, fractions, offsets, poses, jacobians)
    H, twist = np.empty((6, n)), np.zeros(6)
    by_modes_into(jacobians[-1], spread, H)
    for a in range(6):
        for k in range(count):
            for i in range(6):
                twist[a] += jacobians[-1, a, 6 * k + i] * rates[k, i]
    return strains, rates, poses, H, twist, mean, covariance
