"""Bending vectors of sections, from rotations and from measured section tips."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import log_so3
from softarm_ros.geometry.turn_kernels import turns_between


def bending_vector(rotation: Array) -> Array:
    """
    Return the bending vector (2,) [rad] of a rotation (3, 3) of a section, start -> tip.

    The inverse of exp(hat(-b_y, b_x, 0)); a twist about the backbone, which a measured rotation
    may contain, is left out.
    """
    rotation_vector = log_so3(rotation)
    return np.array([rotation_vector[1], -rotation_vector[0]])


def configuration_of_tips(section_tips: Array) -> Array:
    """Return the bending vectors (dof,) [rad] of measured section tips (sections, 4, 4)."""
    tips = np.asarray(section_tips, dtype=np.float64)
    if tips.ndim != 3 or tips.shape[1:] != (4, 4):
        raise ValueError(f'section_tips has shape {tips.shape}, expected (sections, 4, 4)')
    if not np.isfinite(tips).all():
        raise ValueError('section_tips are not finite')
    bends: Array = turns_between(np.ascontiguousarray(tips))[:, 1::-1] * (1.0, -1.0)
    return bends.ravel()
