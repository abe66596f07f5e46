"""Poses: homogeneous transforms (4, 4), [[R, p], [0, 1]], p in metres; compose them with `@`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.pose_kernels import rows_kernel, transforms_kernel
from softarm_ros.geometry.rotations import log_so3


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


def transforms_from_rows(rows: ArrayLike) -> Array:
    """
    Return transforms (n, 4, 4) of poses given in the format of messages.

    Parameters
    ----------
    rows : (n, 7)
        Position [m], then a quaternion x, y, z, w of any length but zero.

    Raises
    ------
    ValueError
        If a position or quaternion is not finite, or if a quaternion has length zero; the text
        shows it.

    """
    given = np.array(rows, dtype=np.float64, order='C').reshape(-1, 7)
    if not np.isfinite(given).all():
        row = given[~np.isfinite(given).all(axis=1)][0]
        what = 'quaternion' if np.isfinite(row[:3]).all() else 'position'
        part = row[3:] if what == 'quaternion' else row[:3]
        raise ValueError(f'{what} {part.tolist()} is not finite')
    if not given[:, 3:].any(axis=1).all():
        raise ValueError(f'quaternion {[0.0] * 4} has length zero')
    return transforms_kernel(given)


def rows_from_transforms(transforms: ArrayLike) -> Array:
    """
    Return poses (n, 7) in the format of messages: position [m], unit quaternion x, y, z, w.

    Raises
    ------
    ValueError
        If one of the transforms (n, 4, 4) is not finite.

    """
    given = np.array(transforms, dtype=np.float64, order='C').reshape(-1, 4, 4)
    if not np.isfinite(given).all():
        raise ValueError(f'transforms {given.tolist()} are not finite')
    return rows_kernel(given)


def displacement(start: ArrayLike, end: ArrayLike) -> Array:
    """
    Return the small-motion twist (6,) that leads from one pose to the other.

    The linear part [m] comes first, then the rotation vector [rad], both in the frame in which the
    poses are given. For a vanishing displacement, this is the differential twist of the models'
    Jacobians.
    """
    first = np.asarray(start, dtype=np.float64)
    second = np.asarray(end, dtype=np.float64)
    twist = np.empty(6)
    twist[:3] = second[:3, 3] - first[:3, 3]
    twist[3:] = log_so3(second[:3, :3] @ first[:3, :3].T)
    return twist
