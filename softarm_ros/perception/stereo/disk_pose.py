"""The pose of a rigid disk from its markers, weighted by their covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.disk_kernels import refine_pose
from softarm_ros.perception.stereo.rigid_fit import rigid_fit

_STEPS = 2  # Gauss-Newton steps, starting from the unweighted fit
_FEWEST = 3
# 99.9 % quantiles of chi-square with 3, 6, 9, ... degrees of freedom, for 3, 4, 5, ... markers.
_GATES = (16.27, 22.46, 27.88, 32.91, 37.70, 42.31)


@dataclass(frozen=True)
class DiskPose:
    """
    Pose of a disk with its covariance.

    Attributes
    ----------
    pose : (4, 4)
        Pose in the frame of the points [m].
    covariance : (6, 6)
        Covariance of position [m2], then rotation vector [rad2], along the axes of that frame.
    used : tuple of int
        Indices of the markers that agree with the pose.
    doubted : tuple of int
        Indices of those that do not: reflections, or half-hidden markers.

    """

    pose: Array
    covariance: Array
    used: tuple[int, ...]
    doubted: tuple[int, ...] = ()


def disk_pose(
    known: Array, measured: Array, covariances: Array, mounted_within_m: float
) -> DiskPose | None:
    """
    Return the pose that maps known markers to measured ones; None if fewer than three agree.

    Parameters
    ----------
    known, measured : (n, 3)
        Positions in the disk's frame, and measured positions, one row per marker [m].
    covariances : (n, 3, 3)
        Covariances of the measured positions [m2].
    mounted_within_m : float
        Standard deviation of the markers' positions on the disk.

    """
    spread = covariances + mounted_within_m**2 * np.eye(3)
    weights: Array = np.asarray(np.linalg.inv(spread), dtype=np.float64)
    used = list(range(len(known)))
    doubted: list[int] = []
    while len(used) >= _FEWEST:
        try:
            X, _ = rigid_fit(known[used], measured[used])
        except CameraError:  # the remaining markers lie on a line
            return None
        misfits = np.empty(len(used))
        information = refine_pose(known[used], measured[used], weights[used], _STEPS, X, misfits)
        if misfits.sum() < _GATES[min(len(used) - _FEWEST, len(_GATES) - 1)]:
            covariance: Array = np.asarray(np.linalg.inv(information), dtype=np.float64)
            return DiskPose(X, covariance, tuple(used), tuple(sorted(doubted)))
        doubted.append(used.pop(int(misfits.argmax())))
    return None
