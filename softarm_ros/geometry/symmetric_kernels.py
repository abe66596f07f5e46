"""Compiled algebra of small symmetric matrices."""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


@kernel(allocates=False)
def invert_symmetric_4(D: Array) -> bool:
    """
    Replace a positive definite (4, 4), lower triangle given, by its full inverse.

    Return whether it is positive definite; if not, it is filled with NaN.
    """
    # Cholesky D = L L^T in place, then L^-1 in place, then L^-T L^-1.
    for j in range(4):
        for k in range(j):
            D[j, j] -= D[j, k] * D[j, k]
        if not D[j, j] > 0.0:
            D[:] = math.nan
            return False
        D[j, j] = math.sqrt(D[j, j])
        for i in range(j + 1, 4):
            for k in range(j):
                D[i, j] -= D[i, k] * D[j, k]
            D[i, j] /= D[j, j]
    for j in range(4):
        D[j, j] = 1.0 / D[j, j]
        for i in range(j + 1, 4):
            total = 0.0
            for k in range(j, i):
                total -= D[i, k] * D[k, j]
            D[i, j] = total / D[i, i]
    for i in range(4):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, 4):
                total += D[k, i] * D[k, j]
            D[i, j] = total
            D[j, i] = total
    return True
