"""
Compiled Gauss-Newton over the states of a window: a filter forward, an adjoint backward.

The backward pass is the modified Bryson-Frazier smoother (Bierman 1973): it uses the innovations
that the updates stored, so that no covariance of states is inverted.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.control.estimation.bank_kernels import (
    by_modes_into,
    residual_into,
    strains_into,
)
from softarm_ros.control.estimation.chain_kernels import places_into
from softarm_ros.control.estimation.kalman_kernels import apply_innovation, innovate, predict
from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel


@kernel
def _squared_distance(r: Array, R: Array, rows: int, L: Array, y: Array) -> float:
    """Return r^T R^-1 r of the first rows; L (6, 6) and y (6,) are overwritten."""
    distance = 0.0
    for a in range(rows):
        y[a] = r[a]
        for b in range(a + 1):
            s = R[a, b]
            for e in range(b):
                s -= L[a, e] * L[b, e]
            L[a, b] = math.sqrt(max(s, 1e-300)) if a == b else s / L[b, b]
        for e in range(a):
            y[a] -= L[a, e] * y[e]
        y[a] /= L[a, a]
        distance += y[a] * y[a]
    return distance


@kernel
def _back_over_update(
    adjoint: Array, H: Array, W: Array, L: Array, y: Array, rows: int, work: Array
) -> None:
    """Take the adjoint (2 n,) back over an update: (I - K H)^T adjoint - H^T S^-1 innovation."""
    for a in range(rows):  # L^-1 H P adjoint, less the negative of y
        value = y[a]
        for i in range(len(adjoint)):
            value += W[a, i] * adjoint[i]
        work[a] = value
    for a in range(rows - 1, -1, -1):  # times L^-T
        value = work[a]
        for e in range(a + 1, rows):
            value -= L[e, a] * work[e]
        work[a] = value / L[a, a]
    for a in range(rows):
        for j in range(H.shape[1]):
            adjoint[j] -= H[a, j] * work[a]


@kernel
def fit_window(
    x: Array,
    P: Array,
    first: int,
    count: int,
    new: int,
    periods: Array,
    scale: Array,
    rates: Array,
    memory_s: float,
    modes: IntArray,
    shares: Array,
    gates: Array,
    iterations: int,
    tolerance: float,
    commanded: Array,
    sections: IntArray,
    fractions: Array,
    offsets: Array,
    poses: Array,
    covariances: Array,
    sizes: IntArray,
    means: Array,
    ahead_x: Array,
    ahead_P: Array,
    H_of: Array,
    W_of: Array,
    L_of: Array,
    y_of: Array,
    smoothed: Array,
) -> int:
    """
    Fit the states at all times of a window; write the last state, return the number of updates.

    Results of the last fit are reused for older times, unless the fit has moved away from where
    they were linearised.

    Parameters
    ----------
    x, P
        (1, 2 n), (1, 2 n, 2 n): the belief before the first new time; overwritten with that at the
        end.
    first, count, new : int
        The window's times are `count` rows of a ring of `kept`, from row `first` on; the last
        `new` of them have arrived since the last fit.
    periods : (kept,)
        From the previous time, or from the belief, to each time [s].
    scale, rates, memory_s
        (1,), (n, n): of the noise, as in `take_in`.
    commanded : (kept, sections, 6)
        Strains of the command at each time.
    modes, shares
        As in `DeviationModel`.
    sections, fractions, offsets, poses, covariances, sizes
        (kept, blocks, ...): places and their measurements; size 0: no measurement.
    gates : (7,)
        Squared distance, by number of rows, beyond which a measurement is doubted: its covariance
        is multiplied by the square of its squared distance over the gate.
    means : (kept, n)
        Deviations at which measurements are linearised; overwritten when that is repeated.
    ahead_x, ahead_P : (kept, 2 n), (kept, 2 n, 2 n)
        The belief before the measurements of a time; kept between fits, as the next four.
    H_of, W_of, L_of, y_of : (kept, blocks, ...)
        Results of `innovate` and `apply_innovation` for every measurement.
    smoothed : (kept, n)
        Written: the fitted deviations at every time of the window.
    iterations : int
        Largest number of passes forward; each but the last is followed by one backward.
    tolerance : float
        Largest difference of the fit from `means`. The next pass forward starts at the first time
        with a larger one, and linearises at the fit.

    """
    kept, blocks = sizes.shape
    n, sections_of_arm = len(rates), commanded.shape[1]
    width, density = 2 * n, 2.0 / memory_s * rates
    strains, turn = np.empty((sections_of_arm, 6)), np.empty((3, 3))
    foreseen, jacobians = np.empty((blocks, 4, 4)), np.empty((blocks, 6, 6 * sections_of_arm))
    r, R, L, y = np.empty(6), np.empty((6, 6)), np.empty((6, 6)), np.empty(6)
    adjoint, work = np.empty(width), np.empty(6)
    begin, done, again = count - new, 0, False
    for iteration in range(iterations):
        for t in range(begin, count):
            k = (first + t) % kept
            if not again and periods[k] > 0.0:
                predict(x, P, scale, density, memory_s, periods[k])
            again = False
            ahead_x[k], ahead_P[k] = x[0], P[0]
            strains_into(commanded[k], modes, shares, means[k], strains)
            places_into(strains, sections[k], fractions[k], offsets[k], foreseen, jacobians)
            done += 1
            for b in range(blocks):
                m = sizes[k, b]
                if m == 0:
                    continue
                residual_into(poses[k, b], foreseen[b], m, turn, r)
                far = _squared_distance(r, covariances[k, b], m, L, y)
                doubt = max(1.0, far / gates[m]) ** 2
                for i in range(6):
                    for j in range(6):
                        R[i, j] = doubt * covariances[k, b, i, j]
                H, W = H_of[k, b], W_of[k, b]
                by_modes_into(jacobians[b], modes, shares, H)
                innovate(x[0], P[0], means[k], H, r, R, m, W, L_of[k, b], y_of[k, b])
                apply_innovation(x[0], P[0], m, W, L_of[k, b], y_of[k, b])
        if iteration == iterations - 1:
            break
        begin = count
        adjoint[:] = 0.0
        for t in range(count - 1, -1, -1):
            k = (first + t) % kept
            for b in range(blocks - 1, -1, -1):
                if sizes[k, b] > 0:
                    _back_over_update(
                        adjoint, H_of[k, b], W_of[k, b], L_of[k, b], y_of[k, b], sizes[k, b], work
                    )
            _times_rows(ahead_P[k], adjoint, smoothed[k])
            for j in range(n):
                smoothed[k, j] = ahead_x[k, j] - smoothed[k, j]
                if abs(smoothed[k, j] - means[k, j]) > tolerance:
                    begin = t
            left = math.exp(-periods[k] / memory_s)
            gone = memory_s * -math.expm1(-periods[k] / memory_s)
            for j in range(n):
                adjoint[n + j] = gone * adjoint[j] + left * adjoint[n + j]
        if begin == count:
            break
        for t in range(begin, count):
            k = (first + t) % kept
            means[k] = smoothed[k]
        k, again = (first + begin) % kept, True
        x[0], P[0] = ahead_x[k], ahead_P[k]
    return done


@kernel(allocates=False)
def _times_rows(P: Array, vector: Array, out: Array) -> None:
    """Write the first rows of P vector; P is symmetric and read by rows, contiguous in memory."""
    out[:] = 0.0
    for i in range(len(vector)):
        for j in range(len(out)):
            out[j] += P[i, j] * vector[i]
