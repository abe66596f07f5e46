"""Bends brought within the bending limits of their sections."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array


def clipped_bends(bends: Array, limits: Array) -> Array:
    """Return bending vectors (sections, 2) [rad], shortened to `limits` (sections,) [rad]."""
    sizes = np.linalg.norm(bends, axis=1)
    return np.asarray((limits / np.maximum(sizes, limits))[:, None] * bends)
