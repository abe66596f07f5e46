"""Poses: homogeneous transforms (4, 4), [[R, p], [0, 1]], p in metres; compose them with `@`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.geometry.rotations import log_so3

Array = NDArray[np.float64]


def pose(rotation: ArrayLike, position: ArrayLike) -> Array:
    """Return the transform (4, 4) of a rotation (3, 3) and a position (3,) [m]."""
    transform = np.eye(4)
    transform[:3, :3] = rotation
    transform[:3, 3] = position
    return transform


def inverse_pose(transform: ArrayLike) -> Array:
    """Return the inverse (4, 4) of a transform, by transposition."""
    matrix = np.asarray(transform, dtype=np.float64)
    rotation = matrix[:3, :3]
    return pose(rotation.T, -rotation.T @ matrix[:3, 3])


def displacement(start: ArrayLike, end: ArrayLike) -> Array:
    """
    Return the small-motion twist (6,) that leads from one pose to the other.

    Linear part first [m], then the rotation vector [rad], both in the frame the poses are given
    in. For vanishing displacement this is the differential twist of the Jacobians of the models.
    """
    first = np.asarray(start, dtype=np.float64)
    second = np.asarray(end, dtype=np.float64)
    twist = np.empty(6)
    twist[:3] = second[:3, 3] - first[:3, 3]
    twist[3:] = log_so3(second[:3, :3] @ first[:3, :3].T)
    return twist
