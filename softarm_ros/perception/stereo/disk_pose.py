"""The pose of a rigid disk from its markers, weighted by how well each is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.disk_kernels import refine_pose
from softarm_ros.perception.stereo.rigid_fit import rigid_fit

_STEPS = 2  # of Gauss and Newton, from the unweighted fit
_FEWEST = 3
# Of chi-square with 3, 6, 9, ... degrees of freedom (of 3, 4, 5, ... markers): 1 in 1000 is lost.
_GATES = (16.27, 22.46, 27.88, 32.91, 37.70, 42.31)


@dataclass(frozen=True)
class DiskPose:
    """
    Where a disk is.

    Attributes
    ----------
    pose : (4, 4)
        In the frame of the points [m].
    covariance : (6, 6)
        Of position [m2], then of a rotation vector [rad2], along the axes of that frame.
    used : tuple of int
        Markers that agree on it.
    doubted : tuple of int
        Those that do not: a reflection, or something that hides half of a marker.

    """

    pose: Array
    covariance: Array
    used: tuple[int, ...]
    doubted: tuple[int, ...] = ()


def disk_pose(
    known: Array, measured: Array, covariances: Array, mounted_within_m: float
) -> DiskPose | None:
    """
    Return the pose that takes known markers to measured ones; None if fewer than three agree.

    Parameters
    ----------
    known, measured : (n, 3)
        In the disk's frame, and where they are seen; one row each [m].
    covariances : (n, 3, 3)
        Of the measured ones [m2].
    mounted_within_m : float
        Standard deviation of where markers are on the disk.

    """
    spread = covariances + mounted_within_m**2 * np.eye(3)
    weights: Array = np.asarray(np.linalg.inv(spread), dtype=np.float64)
    used = list(range(len(known)))
    doubted: list[int] = []
    while len(used) >= _FEWEST:
        try:
            X, _ = rigid_fit(known[used], measured[used])
        except CameraError:  # those that are left lie on a line
            return None
        misfits = np.empty(len(used))
        information = refine_pose(known[used], measured[used], weights[used], _STEPS, X, misfits)
        if misfits.sum() < _GATES[min(len(used) - _FEWEST, len(_GATES) - 1)]:
            covariance: Array = np.asarray(np.linalg.inv(information), dtype=np.float64)
            return DiskPose(X, covariance, tuple(used), tuple(sorted(doubted)))
        doubted.append(used.pop(int(misfits.argmax())))
    return None
