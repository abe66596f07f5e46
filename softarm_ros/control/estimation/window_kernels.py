"""
Gauss-Newton over the states of a window, compiled: a filter forward, an adjoint backward.

The backward pass is the modified Bryson-Frazier smoother (Bierman 1973): it goes back by what each
update left of its innovation, so that no covariance of states is inverted.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.estimation.bank_kernels import (
    by_modes_into,
    residual_into,
    strains_into,
)
from softarm_ros.control.estimation.chain_kernels import places_into
from softarm_ros.control.estimation.kalman_kernels import apply_innovation, innovate, predict
from softarm_ros.geometry.arrays import Array
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
    adjoint: Array, H: Array, PH: Array, L: Array, y: Array, rows: int, work: Array
) -> None:
    """Take the adjoint (2 n,) back over an update: (I - K H)^T adjoint - H^T S^-1 innovation."""
    for a in range(rows):  # L^-1 H P adjoint, less y
        value = 0.0
        for i in range(len(adjoint)):
            value += PH[i, a] * adjoint[i]
        for e in range(a):
            value -= L[a, e] * work[e]
        work[a] = value / L[a, a]
    for a in range(rows):
        work[a] += y[a]
    for a in range(rows - 1, -1, -1):  # L^-T of it
        value = work[a]
        for e in range(a + 1, rows):
            value -= L[e, a] * work[e]
        work[a] = value / L[a, a]
    for j in range(H.shape[1]):
        for a in range(rows):
            adjoint[j] -= H[a, j] * work[a]


@kernel
def fit_window(
    x: Array,
    P: Array,
    periods: Array,
    scale: Array,
    density: Array,
    memory_s: float,
    commanded: Array,
    spread: Array,
    sections: NDArray[np.int64],
    fractions: Array,
    offsets: Array,
    poses: Array,
    covariances: Array,
    sizes: NDArray[np.int64],
    gates: Array,
    means: Array,
    iterations: int,
) -> None:
    """
    Fit the states at all times of a window; write that of its end.

    Parameters
    ----------
    x, P
        (1, 2 n), (1, 2 n, 2 n): the belief at the begin; overwritten with that at the end.
    periods : (times,)
        From the time before, or from the belief, to each [s].
    scale, density
        (1,), (n, n): of the noise, as `predict` has it.
    commanded : (times, sections, 6)
        Strains of the command at each time.
    spread : (6 sections, n)
        Strains are the command's and spread @ deviations.
    sections, fractions, offsets, poses, covariances, sizes
        (times, blocks, ...): places and what was measured there; a size of 0: nothing.
    gates : (7,)
        Squared distance by number of rows, beyond which a measurement is doubted: its covariance
        grows by the square of how much farther it is from the fit.
    means : (times, n)
        Deviations to begin the iterations at; overwritten by those of the last but one.
    memory_s : float
        Of the noise, likewise.
    iterations : int
        Passes forward; between two of them one backward.

    """
    times, blocks = sizes.shape
    n = len(density)
    width = 2 * n
    begin_x, begin_P = x.copy(), P.copy()
    ahead_x, ahead_P = np.empty((times, width)), np.empty((times, width, width))
    H_of, PH_of = np.empty((times, blocks, 6, n)), np.empty((times, blocks, width, 6))
    L_of, y_of = np.empty((times, blocks, 6, 6)), np.empty((times, blocks, 6))
    count = commanded.shape[1]
    strains = np.empty((count, 6))
    foreseen, jacobians = np.empty((blocks, 4, 4)), np.empty((blocks, 6, 6 * count))
    r, R, turn, L, y = (
        np.empty(6), np.empty((6, 6)), np.empty((3, 3)), np.empty((6, 6)), np.empty(6),
    )  # fmt: skip
    adjoint, work = np.empty(width), np.empty(6)
    for iteration in range(iterations):
        x[:, :] = begin_x
        P[:, :, :] = begin_P
        for t in range(times):
            if periods[t] > 0.0:
                predict(x, P, scale, density, memory_s, periods[t])
            ahead_x[t], ahead_P[t] = x[0], P[0]
            strains_into(commanded[t], spread, means[t], strains)
            places_into(strains, sections[t], fractions[t], offsets[t], foreseen, jacobians)
            for b in range(blocks):
                m = sizes[t, b]
                if m == 0:
                    continue
                residual_into(poses[t, b], foreseen[b], m, turn, r)
                far = _squared_distance(r, covariances[t, b], m, L, y)
                doubt = max(1.0, far / gates[m]) ** 2
                for i in range(6):
                    for j in range(6):
                        R[i, j] = doubt * covariances[t, b, i, j]
                H = H_of[t, b]
                by_modes_into(jacobians[b], spread, H)
                PH = PH_of[t, b]
                innovate(x[0], P[0], means[t], H, r, R, m, PH, L_of[t, b], y_of[t, b])
                apply_innovation(x[0], P[0], m, PH, L_of[t, b], y_of[t, b])
        if iteration == iterations - 1:
            break
        adjoint[:] = 0.0
        for t in range(times - 1, -1, -1):
            for b in range(blocks - 1, -1, -1):
                if sizes[t, b] > 0:
                    _back_over_update(
                        adjoint, H_of[t, b], PH_of[t, b], L_of[t, b], y_of[t, b], sizes[t, b],
                        work,
                    )  # fmt: skip
            for j in range(n):
                value = ahead_x[t, j]
                for i in range(width):
                    value -= ahead_P[t, j, i] * adjoint[i]
                means[t, j] = value
            left = math.exp(-periods[t] / memory_s)
            gone = memory_s * -math.expm1(-periods[t] / memory_s)
            for j in range(n):
                adjoint[n + j] = gone * adjoint[j] + left * adjoint[n + j]
