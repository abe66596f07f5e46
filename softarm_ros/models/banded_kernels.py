"""
Compiled LDL^T of symmetric matrices, banded or small and dense, that counts negative pivots.

By Sylvester's law of inertia the signs of D are those of the eigenvalues. So the factorisation
that Newton's method needs anyway also shows whether an equilibrium is a minimum.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

# Pivots below this share of the largest diagonal entry count as zero.
_ZERO_PIVOT = 1e-14
_NEUTRAL_PIVOT = 1e-11


@kernel(allocates=False)
def banded_ldl_into(band: Array) -> int:
    """
    Factorise in place; return the number of negative pivots, or -1 for a vanishing pivot.

    `band` (N, w + 1) holds A[i, i - j] in band[i, j], j = 0..w. Afterwards column 0 holds D and
    the other columns hold the unit lower factor L[i, i - j].
    """
    size, width = band.shape[0], band.shape[1] - 1
    largest = 0.0
    for i in range(size):
        largest = max(largest, abs(band[i, 0]))
    negative = 0
    for i in range(size):
        first = max(0, i - width)
        # The inner loop subtracts from independent values; a sum over k would wait for each term.
        for k in range(first, i):
            value = band[i, i - k]  # L[i, k] D[k], until the row is done
            for j in range(k + 1, i):
                band[i, i - j] -= value * band[j, j - k]
        pivot = band[i, 0]
        for j in range(first, i):
            lower = band[i, i - j] / band[j, 0]
            pivot -= lower * band[i, i - j]
            band[i, i - j] = lower
        if not abs(pivot) > _ZERO_PIVOT * largest:
            return -1
        band[i, 0] = pivot
        if pivot < 0.0:
            negative += 1
    return negative


@kernel(allocates=False)
def banded_solve_into(factor: Array, columns: Array) -> None:
    """Overwrite `columns` (N, m) with A^-1 columns; `factor` comes from `banded_ldl_into`."""
    size, width = factor.shape[0], factor.shape[1] - 1
    count = columns.shape[1]
    if count == 1:  # without loops over a single column
        for j in range(size):
            value = columns[j, 0]
            for i in range(j + 1, min(size, j + width + 1)):
                columns[i, 0] -= factor[i, i - j] * value
        for i in range(size - 1, -1, -1):
            value = columns[i, 0] / factor[i, 0]
            for j in range(i + 1, min(size, i + width + 1)):
                value -= factor[j, j - i] * columns[j, 0]
            columns[i, 0] = value
        return
    for i in range(size):
        for j in range(max(0, i - width), i):
            lower = factor[i, i - j]
            for c in range(count):
                columns[i, c] -= lower * columns[j, c]
    for i in range(size - 1, -1, -1):
        for c in range(count):
            columns[i, c] /= factor[i, 0]
        for j in range(i + 1, min(size, i + width + 1)):
            lower = factor[j, j - i]
            for c in range(count):
                columns[i, c] -= lower * columns[j, c]


@kernel(allocates=False)
def dense_ldl_solve_into(matrix: Array, vector: Array) -> tuple[int, int]:
    """
    Overwrite `vector` (m,) with matrix^-1 vector; count the negative and the vanishing pivots.

    `matrix` (m, m) is symmetric, small, and overwritten. Components that belong to a vanishing
    pivot are set to zero, so the solution does not move along neutral directions.
    """
    size = matrix.shape[0]
    largest = 0.0
    for i in range(size):
        largest = max(largest, abs(matrix[i, i]))
    negative, neutral = 0, 0
    for i in range(size):
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                if matrix[k, k] != np.inf:
                    value -= matrix[i, k] * matrix[k, k] * matrix[j, k]
            matrix[i, j] = value / matrix[j, j]
        pivot = matrix[i, i]
        for k in range(i):
            if matrix[k, k] != np.inf:
                pivot -= matrix[i, k] * matrix[i, k] * matrix[k, k]
        if not abs(pivot) > _NEUTRAL_PIVOT * largest:
            pivot = np.inf  # every quotient by it vanishes
            neutral += 1
        matrix[i, i] = pivot
        if pivot < 0.0:
            negative += 1
    for i in range(size):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
    for i in range(size - 1, -1, -1):
        vector[i] /= matrix[i, i]
        for k in range(i + 1, size):
            vector[i] -= matrix[k, i] * vector[k]
    return negative, neutral
