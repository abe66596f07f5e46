"""Compiled rotations from pose to pose."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import log_so3_of


@kernel
def turns_between(poses: Array) -> Array:
    """Return the rotation vectors (n, 3) [rad] from each pose (n, 4, 4) to the next.

    The first starts at the identity; each is expressed in the axes of the pose it starts from.
    """
    turns, relative = np.empty((len(poses), 3)), np.empty((3, 3))
    for k in range(len(poses)):
        for i in range(3):
            for j in range(3):
                value = poses[k, i, j]
                if k > 0:
                    value = 0.0
                    for m in range(3):
                        value += poses[k - 1, m, i] * poses[k, m, j]
                relative[i, j] = value
        turns[k, 0], turns[k, 1], turns[k, 2] = log_so3_of(relative)
    return turns
