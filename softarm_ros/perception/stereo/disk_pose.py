"""The pose of a rigid disk from its markers, weighted by their covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.disk_kernels import fit_disk


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
    count = len(known)
    X, covariance, used = np.empty((4, 4)), np.empty((6, 6)), np.empty(count, dtype=bool)
    if not fit_disk(known, measured, covariances, mounted_within_m, X, covariance, used):
        return None
    agree = used.tolist()
    return DiskPose(
        X,
        covariance,
        tuple(k for k in range(count) if agree[k]),
        tuple(k for k in range(count) if not agree[k]),
    )
