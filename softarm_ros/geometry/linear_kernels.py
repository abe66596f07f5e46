"""Compiled linear algebra of small vectors and matrices."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


@kernel(allocates=False)
def cross_into(a: Array, b: Array, out: Array) -> None:
    """Set `out` to the cross product of two vectors (3,)."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@kernel(allocates=False)
def solve_columns(matrix: Array, right: Array) -> None:
    """Solve matrix X = right (m, n) in place, by Gauss with pivoting; both are overwritten."""
    m, n = right.shape
    for i in range(m):
        pivot = i
        for k in range(i + 1, m):
            if abs(matrix[k, i]) > abs(matrix[pivot, i]):
                pivot = k
        if pivot != i:
            for j in range(m):
                matrix[i, j], matrix[pivot, j] = matrix[pivot, j], matrix[i, j]
            for c in range(n):
                right[i, c], right[pivot, c] = right[pivot, c], right[i, c]
        for k in range(i + 1, m):
            ratio = matrix[k, i] / matrix[i, i]
            for j in range(i + 1, m):
                matrix[k, j] -= ratio * matrix[i, j]
            for c in range(n):
                right[k, c] -= ratio * right[i, c]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            for c in range(n):
                right[i, c] -= matrix[i, j] * right[j, c]
        for c in range(n):
            right[i, c] /= matrix[i, i]


@kernel(allocates=False)
def solve_small(matrix: Array, right: Array) -> None:
    """Solve as `solve_columns` for a single column `right` (m,)."""
    solve_columns(matrix, right[:, None])


@kernel(allocates=False)
def solve_by_factor(factor: Array, right: Array) -> None:
    """Solve factor factor^T x = right (n,) in place; `factor` is lower triangular (Cholesky)."""
    n = right.shape[0]
    for i in range(n):
        for k in range(i):
            right[i] -= factor[i, k] * right[k]
        right[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            right[i] -= factor[k, i] * right[k]
        right[i] /= factor[i, i]


@kernel(allocates=False)
def weighted_square(vector: Array, weight: Array) -> float:
    """Return v^T W v of a vector (n,) and a matrix (n, n)."""
    total = 0.0
    for i in range(vector.shape[0]):
        for j in range(vector.shape[0]):
            total += vector[i] * weight[i, j] * vector[j]
    return total
