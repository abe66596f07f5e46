"""Compiled measurement noise."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.pose_kernels import compose_into
from softarm_ros.geometry.rotation_kernels import exp_so3_into


@kernel
def disturb_poses(
    frame: Array,
    poses: Array,
    marker: Array,
    shift: Array,
    shift_m: float,
    drift: Array,
    tilt: Array,
    tilt_rad: float,
) -> Array:
    """
    Return disturbed measurements frame pose marker (k, 4, 4) of poses (k, 4, 4).

    They are shifted by shift_m `shift` (k, 3) + `drift` (3,) [m] in the frame of the result, and
    rotated by the rotation vector tilt_rad `tilt` (k, 3) in the pose's own frame.
    """
    disturbed = np.empty(poses.shape)
    noise, marked, seen = np.empty((3, 3)), np.empty((4, 4)), np.empty((4, 4))
    for k in range(poses.shape[0]):
        compose_into(poses[k], marker, marked)
        compose_into(frame, marked, seen)
        x, y, z = tilt_rad * tilt[k, 0], tilt_rad * tilt[k, 1], tilt_rad * tilt[k, 2]
        exp_so3_into(x, y, z, noise)
        for i in range(3):
            for j in range(3):
                disturbed[k, i, j] = (
                    seen[i, 0] * noise[0, j] + seen[i, 1] * noise[1, j] + seen[i, 2] * noise[2, j]
                )
            disturbed[k, i, 3] = seen[i, 3] + (shift_m * shift[k, i] + drift[i])
            disturbed[k, 3, i] = 0.0
        disturbed[k, 3, 3] = 1.0
    return disturbed
