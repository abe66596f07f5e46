"""Voltages at the terminals of winch amplifiers and their load cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array

_SIGNAL_V = 10.0  # 0 to 10 V for zero tension to the span
_MONITOR_V = (1.0, 5.0)  # the same range with live zero


def winch_signal_N(volts: ArrayLike, span_N: float) -> Array:
    """Return the tensions [N] for voltages at the set-point inputs of amplifiers."""
    signal: Array = np.asarray(volts, dtype=float) * (span_N / _SIGNAL_V)
    return np.maximum(signal, 0.0)


def winch_volts(tension_N: ArrayLike, span_N: float) -> Array:
    """Return the set points [V] for tensions [N]."""
    return np.asarray(tension_N, dtype=float) * (_SIGNAL_V / span_N)


def cell_volts(tension_N: ArrayLike, span_N: float) -> Array:
    """Return the voltages of the load cells' amplifiers at the tensions [N] that they show."""
    low, high = _MONITOR_V
    return low + (high - low) * np.asarray(tension_N, dtype=float) / span_N
