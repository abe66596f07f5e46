"""Derivatives of recorded motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import savgol_filter

from softarm_ros.geometry.arrays import Array

# Long enough for steps of sensors: a load cell's step of 0.01 N within 10 ms already exceeds the
# acceleration limit of fishbone_arm.
WINDOW_S = 0.1


def derivative(
    rows: Sequence[Array], order: int, step_s: float, window_s: float = WINDOW_S
) -> Array:
    """Return a derivative (n, ...) of n rows that are `step_s` apart, by cubics over a window."""
    points = max(round(window_s / step_s) // 2 * 2 + 1, 5)
    return np.asarray(
        savgol_filter(np.array(rows), points, 3, deriv=order, delta=step_s, axis=0, mode='interp')
    )
