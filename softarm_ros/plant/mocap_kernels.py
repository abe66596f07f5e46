"""Compiled measurement noise."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import exp_so3_into


@kernel
def disturb_poses(poses: Array, shift: Array, tilt: Array) -> Array:
    """
    Return poses (k, 4, 4) moved by `shift` (k, 3) [m] and turned by `tilt` (k, 3) [rad].

    The shift is in the frame the poses are given in, the rotation vector in the pose's own.
    """
    disturbed = poses.copy()
    noise = np.empty((3, 3))
    for k in range(poses.shape[0]):
        exp_so3_into(tilt[k, 0], tilt[k, 1], tilt[k, 2], noise)
        for i in range(3):
            disturbed[k, i, 3] += shift[k, i]
            for j in range(3):
                disturbed[k, i, j] = (
                    poses[k, i, 0] * noise[0, j]
                    + poses[k, i, 1] * noise[1, j]
                    + poses[k, i, 2] * noise[2, j]
                )
    return disturbed
