"""Compiled rotations and small matrices of the Cosserat rod kernels."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


@kernel
def matrix_into(x: float, y: float, z: float, w: float, r: Array) -> None:
    """Write the rotation matrix of a quaternion of any length."""
    scale = 2.0 / (x * x + y * y + z * z + w * w)
    r[0, 0] = 1.0 - scale * (y * y + z * z)
    r[1, 1] = 1.0 - scale * (x * x + z * z)
    r[2, 2] = 1.0 - scale * (x * x + y * y)
    r[0, 1] = scale * (x * y - z * w)
    r[1, 0] = scale * (x * y + z * w)
    r[0, 2] = scale * (x * z + y * w)
    r[2, 0] = scale * (x * z - y * w)
    r[1, 2] = scale * (y * z - x * w)
    r[2, 1] = scale * (y * z + x * w)


@kernel
def quaternion_product(a: Array, b: Array, out: Array) -> None:
    """Write the normalised product a b of quaternions (x, y, z, w); `out` may be a or b."""
    x = a[3] * b[0] + b[3] * a[0] + a[1] * b[2] - a[2] * b[1]
    y = a[3] * b[1] + b[3] * a[1] + a[2] * b[0] - a[0] * b[2]
    z = a[3] * b[2] + b[3] * a[2] + a[0] * b[1] - a[1] * b[0]
    w = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]
    scale = 1.0 / math.sqrt(x * x + y * y + z * z + w * w)
    out[0], out[1], out[2], out[3] = x * scale, y * scale, z * scale, w * scale


@kernel
def turn_right(q: Array, x: float, y: float, z: float) -> None:
    """Turn q on the right by the rotation vector (x, y, z)."""
    angle = math.sqrt(x * x + y * y + z * z)
    k = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(0.5 * angle) / angle
    quaternion_product(q, np.array((k * x, k * y, k * z, math.cos(0.5 * angle))), q)


@kernel
def solve3(matrix: Array, b: Array, x: Array) -> bool:
    """Solve matrix x = b (3, 3) by cofactors; False where the matrix is singular to rounding."""
    c00 = matrix[1, 1] * matrix[2, 2] - matrix[1, 2] * matrix[2, 1]
    c01 = matrix[1, 2] * matrix[2, 0] - matrix[1, 0] * matrix[2, 2]
    c02 = matrix[1, 0] * matrix[2, 1] - matrix[1, 1] * matrix[2, 0]
    det = matrix[0, 0] * c00 + matrix[0, 1] * c01 + matrix[0, 2] * c02
    size = 1.0
    for i in range(3):
        size *= abs(matrix[i, 0]) + abs(matrix[i, 1]) + abs(matrix[i, 2])
    if not abs(det) > 1e-14 * size:
        return False
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        # Cofactors of column k.
        f0 = matrix[1, i] * matrix[2, j] - matrix[1, j] * matrix[2, i]
        f1 = matrix[2, i] * matrix[0, j] - matrix[2, j] * matrix[0, i]
        f2 = matrix[0, i] * matrix[1, j] - matrix[0, j] * matrix[1, i]
        x[k] = (f0 * b[0] + f1 * b[1] + f2 * b[2]) / det
    return True


@kernel
def determinant3(t: Array) -> float:
    """Return the determinant of a matrix (3, 3)."""
    return (
        t[0, 0] * (t[1, 1] * t[2, 2] - t[1, 2] * t[2, 1])
        - t[0, 1] * (t[1, 0] * t[2, 2] - t[1, 2] * t[2, 0])
        + t[0, 2] * (t[1, 0] * t[2, 1] - t[1, 1] * t[2, 0])
    )


@kernel
def crosses(before: Array, after: Array, transfer: Array, column: Array) -> bool:
    """
    Tell whether Y became singular between two cuts, even twice at once.

    The transfer T = Y_after Y_before^-1 of a short step has eigenvalues near 1; an eigenvalue has
    passed through zero if its real part is <= 0 (Routh-Hurwitz on the characteristic polynomial).
    """
    for k in range(3):
        # Row k of T solves before^T x = after[k].
        if not solve3(before.T, after[k], column):
            return True
        for i in range(3):
            transfer[k, i] = column[i]
    t = transfer
    trace = t[0, 0] + t[1, 1] + t[2, 2]
    minors = (
        t[0, 0] * t[1, 1]
        - t[0, 1] * t[1, 0]
        + t[0, 0] * t[2, 2]
        - t[0, 2] * t[2, 0]
        + t[1, 1] * t[2, 2]
        - t[1, 2] * t[2, 1]
    )
    det = determinant3(t)
    return not (trace > 0.0 and det > 0.0 and trace * minors > det)
