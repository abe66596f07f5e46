"""Voltages at the terminals of regulators and sensors, according to their data sheets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array

_SIGNAL_V = 10.0  # ITV0030: 0 to 10 V for zero pressure to full span
_MONITOR_V = (1.0, 5.0)  # its monitor: the same range with live zero


def regulator_signal_Pa(volts: ArrayLike, span_Pa: float) -> Array:
    """Return the pressures [Pa] for voltages at the signal inputs of regulators."""
    return np.asarray(volts, dtype=float) * (span_Pa / _SIGNAL_V)


def monitor_volts(pressure_Pa: ArrayLike, span_Pa: float) -> Array:
    """Return the voltages of the regulators' monitors at the pressures [Pa] that they measure."""
    return _live_zero(pressure_Pa, 0.0, span_Pa)


def compound_volts(pressure_Pa: ArrayLike, span_Pa: float) -> Array:
    """Return the voltages of a sensor of vacuum and pressure, -span to +span, at [Pa gauge]."""
    return _live_zero(pressure_Pa, -span_Pa, span_Pa)


def gauge_volts(wrench: Array, volts_per_load: Array, bias_V: Array) -> Array:
    """
    Return the gauges' voltages (6,) of a six-axis sensor under a wrench (6,) [N, N m].

    `volts_per_load` (6, 6) is the inverse of the sensor's calibration.
    """
    return np.asarray(volts_per_load @ wrench + bias_V)


def _live_zero(pressure_Pa: ArrayLike, low_Pa: float, high_Pa: float) -> Array:
    low, high = _MONITOR_V
    share = (np.asarray(pressure_Pa, dtype=float) - low_Pa) / (high_Pa - low_Pa)
    return low + (high - low) * share
