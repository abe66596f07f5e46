"""Compiled products of poses, and conversions from and to rows of position and quaternion."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import quaternion_of


@kernel(allocates=False)
def matrix_of_quaternion(q: Array, rotation: Array) -> None:
    """Write the matrix of a unit quaternion (x, y, z, w) into `rotation` (3, 3)."""
    x, y, z, w = q[0], q[1], q[2], q[3]
    rotation[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    rotation[0, 1] = 2.0 * (x * y - z * w)
    rotation[0, 2] = 2.0 * (x * z + y * w)
    rotation[1, 0] = 2.0 * (x * y + z * w)
    rotation[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    rotation[1, 2] = 2.0 * (y * z - x * w)
    rotation[2, 0] = 2.0 * (x * z - y * w)
    rotation[2, 1] = 2.0 * (y * z + x * w)
    rotation[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@kernel(allocates=False)
def compose_into(first: Array, second: Array, out: Array) -> None:
    """Write the product of two transforms (4, 4) into `out`, which must be a third array."""
    for i in range(3):
        for j in range(4):
            value = first[i, 3] if j == 3 else 0.0
            for m in range(3):
                value += first[i, m] * second[m, j]
            out[i, j] = value
    out[3, 0] = out[3, 1] = out[3, 2] = 0.0
    out[3, 3] = 1.0


@kernel
def transforms_kernel(rows: Array) -> Array:
    """
    Return transforms (n, 4, 4) of rows (n, 7): position [m], quaternion x, y, z, w.

    Quaternions may have any length but zero.
    """
    count = len(rows)
    transforms = np.zeros((count, 4, 4))
    for k in range(count):
        transform, quaternion = transforms[k], rows[k, 3:]
        unit = quaternion / np.sqrt(np.sum(quaternion**2))
        matrix_of_quaternion(unit, transform[:3, :3])
        transform[:3, 3] = rows[k, :3]
        transform[3, 3] = 1.0
    return transforms


@kernel
def rows_kernel(transforms: Array) -> Array:
    """Return rows (n, 7): position [m], quaternion x, y, z, w, of transforms (n, 4, 4)."""
    count = len(transforms)
    rows = np.empty((count, 7))
    for k in range(count):
        rows[k, :3] = transforms[k, :3, 3]
        rows[k, 3], rows[k, 4], rows[k, 5], rows[k, 6] = quaternion_of(transforms[k, :3, :3])
    return rows
