"""
Compiled complementarity solver for cable tensions: a cable pulls, or it hangs slack.

Find T >= 0 with y = A T - r >= 0 and T.y = 0, A symmetric positive definite.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

_MAX_ROUNDS = 400
_BLOCK_ROUNDS = 5


@kernel(allocates=False)
def solve_tensions(
    A: Array,
    r: Array,
    taut: NDArray[np.bool_],
    factor: Array,
    solution: Array,
    tension: Array,
) -> bool:
    """
    Solve the complementarity problem by principal pivoting.

    `taut` (m,) is the initial active set, and is overwritten with the final one; starting from the
    last step's set, one factorisation usually suffices. All violating cables change sides at once;
    if that starts to cycle, only the last one does (Murty), which ends for every positive definite
    A.

    Returns
    -------
    bool
        Whether a solution was found; False only if values are not finite.

    """
    m = r.shape[0]
    for rounds in range(_MAX_ROUNDS):
        if not solve_active(A, r, taut, factor, solution):
            return False
        last = -1
        for i in range(m):
            if taut[i]:
                wrong = solution[i] < 0.0
            else:
                y = -r[i]
                for j in range(m):
                    if taut[j]:
                        y += A[i, j] * solution[j]
                wrong = y < -1e-15 * (1.0 + abs(r[i]))
            if wrong:
                last = i
                if rounds < _BLOCK_ROUNDS:
                    # Mark in `tension`, which is written only at the end.
                    tension[i] = -1.0
            elif rounds < _BLOCK_ROUNDS:
                tension[i] = 0.0
        if last < 0:
            for i in range(m):
                tension[i] = solution[i] if taut[i] else 0.0
            return True
        if rounds < _BLOCK_ROUNDS:
            for i in range(m):
                if tension[i] < 0.0:
                    taut[i] = not taut[i]
        else:
            taut[last] = not taut[last]
    return False


@kernel(allocates=False)
def solve_active(
    A: Array, r: Array, taut: NDArray[np.bool_], factor: Array, solution: Array
) -> bool:
    """Solve A T = r among the taut cables (Cholesky); False if A is not positive definite."""
    m = r.shape[0]
    for i in range(m):
        solution[i] = 0.0
        if not taut[i]:
            continue
        for j in range(i + 1):
            if not taut[j]:
                continue
            total = A[i, j]
            for k in range(j):
                if taut[k]:
                    total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
            else:
                if not total > 0.0:
                    return False
                factor[i, i] = math.sqrt(total)
        total = r[i]
        for k in range(i):
            if taut[k]:
                total -= factor[i, k] * solution[k]
        solution[i] = total / factor[i, i]
    for i in range(m - 1, -1, -1):
        if taut[i]:
            total = solution[i]
            for k in range(i + 1, m):
                if taut[k]:
                    total -= factor[k, i] * solution[k]
            solution[i] = total / factor[i, i]
    return True
