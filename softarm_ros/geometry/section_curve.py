"""Poses along a section, interpolated between the poses of its ends."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3, log_so3


def along_sections(section_tips: Array, index: int, fraction: Array) -> Array:
    """
    Return poses (n, 4, 4) along a section, between the tips before and after it.

    Positions lie on the cubic through both tips with the tips' tangents, scaled to the length of
    the arc that has the same chord. Frames turn evenly from one tip to the other. This is nearly
    an arc, and needs no mechanical model of the section.

    Parameters
    ----------
    section_tips : (sections, 4, 4)
        Section tips in the base frame.
    index : int
        Index of the section.
    fraction : (n,)
        Fraction of the section, 0 at its base, 1 at its tip.

    """
    start = np.eye(4) if index == 0 else section_tips[index - 1]
    end = section_tips[index]
    t = np.asarray(fraction, dtype=np.float64)[:, None]
    chord = np.linalg.norm(end[:3, 3] - start[:3, 3])
    turn = log_so3(start[:3, :3].T @ end[:3, :3])
    angle = float(np.linalg.norm(turn))
    # Length of the arc that has this chord and angle.
    length = chord * (0.5 * angle / np.sin(0.5 * angle) if 1e-6 < angle < 6.0 else 1.0)
    p, q = start[:3, 3], end[:3, 3]
    u, v = length * start[:3, 2], length * end[:3, 2]
    poses = np.tile(np.eye(4), (len(t), 1, 1))
    poses[:, :3, 3] = (
        (2 * t**3 - 3 * t**2 + 1) * p
        + (t**3 - 2 * t**2 + t) * u
        + (3 * t**2 - 2 * t**3) * q
        + (t**3 - t**2) * v
    )
    for row, part in enumerate(t[:, 0]):
        poses[row, :3, :3] = start[:3, :3] @ exp_so3(part * turn)
    return poses
