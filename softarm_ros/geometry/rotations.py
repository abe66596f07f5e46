"""Rotations: matrices, rotation vectors and quaternions (x, y, z, w as in ROS)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.rotation_kernels import (
    exp_so3_kernel,
    log_so3_kernel,
    quaternion_kernel,
)


def hat(vector: ArrayLike) -> Array:
    """Return the skew matrix (3, 3) of a vector a (3,); its product with b is a x b."""
    x, y, z = np.asarray(vector, dtype=np.float64)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_x(angle: float) -> Array:
    """Return the rotation (3, 3) by `angle` [rad] about x."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: float) -> Array:
    """Return the rotation (3, 3) by `angle` [rad] about y."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_z(angle: float) -> Array:
    """Return the rotation (3, 3) by `angle` [rad] about z."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def exp_so3(rotation_vector: ArrayLike) -> Array:
    """Return the rotation matrix (3, 3) of a rotation vector (3,) [rad]; smooth at zero."""
    return exp_so3_kernel(finite_array(rotation_vector, (3,), 'rotation vector'))


def log_so3(rotation: ArrayLike) -> Array:
    """
    Return the rotation vector (3,) [rad] of a rotation matrix (3, 3).

    Its length is in 0..pi. It is smooth at the identity; at pi, both axes +-n describe the
    rotation and one of them is returned.
    """
    return log_so3_kernel(finite_array(rotation, (3, 3), 'rotation matrix'))


def quaternion_from_matrix(rotation: ArrayLike) -> Array:
    """Return the unit quaternion (x, y, z, w) with w >= 0 of a rotation matrix (3, 3)."""
    return quaternion_kernel(finite_array(rotation, (3, 3), 'rotation matrix'))


def matrix_from_quaternion(quaternion: ArrayLike) -> Array:
    """
    Return the rotation matrix (3, 3) of a quaternion (x, y, z, w) of any length but zero.

    Raises
    ------
    ValueError
        If the quaternion has length zero, which no rotation has.

    """
    q = finite_array(quaternion, (4,), 'quaternion')
    norm = float(np.linalg.norm(q))
    if norm == 0.0:
        raise ValueError(f'quaternion {q.tolist()} has length zero')
    x, y, z, w = q / norm
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def angle_between(first: ArrayLike, second: ArrayLike) -> float:
    """Return the angle [rad], 0..pi, of the rotation that leads from one matrix to the other."""
    relative = np.asarray(first, dtype=np.float64).T @ np.asarray(second, dtype=np.float64)
    return float(np.linalg.norm(log_so3(relative)))
