"""Bending vectors of sections, from measured section tips."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.turn_kernels import turns_between


def configuration_of_tips(section_tips: Array) -> Array:
    """Return the bending vectors (dof,) [rad] of measured section tips (sections, 4, 4)."""
    tips = np.asarray(section_tips, dtype=np.float64)
    if tips.ndim != 3 or tips.shape[1:] != (4, 4):
        raise ValueError(f'section_tips has shape {tips.shape}, expected (sections, 4, 4)')
    if not np.isfinite(tips).all():
        raise ValueError('section_tips are not finite')
    bends: Array = turns_between(np.ascontiguousarray(tips))[:, 1::-1] * (1.0, -1.0)
    return bends.ravel()
