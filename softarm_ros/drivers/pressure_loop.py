"""Motor torques with which cylinders hold pressures: nominal ratio, gain, filter; no device."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from pydantic import Field

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive

Value = TypeVar('Value', float, Array)


class PressureLoopConfig(ConfigBlock):
    """Feedback of measured pressures; a gain of 0 is torque control, as in the paper."""

    gain: NonNegative = 0.0
    filter_s: Positive = Field(default=0.06, description='time constant of the measured error')

    def phase_margin_deg(self, delay_s: float) -> float:
        """
        Return the phase margin of the loop, after all delays and lags.

        The open loop is gain / (1 + filter s) exp(-delay s); small lags of the axis itself count
        as part of the delay. The margin is 180 if the open loop's magnitude never crosses 1.
        """
        if self.gain <= 1.0:
            return 180.0
        crossing = math.sqrt(self.gain**2 - 1.0) / self.filter_s
        lag = math.atan(crossing * self.filter_s) + crossing * delay_s
        return 180.0 - math.degrees(lag)


def filtered_error(error: Value, wanted: Value, measured: Value, keep: float) -> Value:
    """Return the next filtered error [Pa]; `keep` is the share of the old error that remains."""
    now = wanted - measured
    return now + keep * (error - now)


def loop_torque(torque_per_pressure: Value, wanted: Value, error: Value, gain: float) -> Value:
    """Return the torque [N m] for a wanted pressure [Pa] at a filtered error [Pa]."""
    return torque_per_pressure * (wanted + gain * error)


class PressureLoop:
    """
    Control loop from commanded pressures to torques (m,).

    The torque is the nominal one of the commanded pressure plus `gain` times the filtered error of
    the measured pressure. The effect of seal friction and ratio errors shrinks by 1 + gain.

    Parameters
    ----------
    config
        Gain and filter.
    torque_per_pressure : (m,)
        Nominal ratio [N m/Pa].
    pressure_Pa : (m,)
        Initial pressures, at rest.

    Attributes
    ----------
    wanted_Pa, error_Pa : (m,)
        Commanded pressures and filtered errors; always the same arrays.

    """

    def __init__(
        self, config: PressureLoopConfig, torque_per_pressure: Array, pressure_Pa: Array
    ) -> None:
        self.config = config
        self.torque_per_pressure = np.array(torque_per_pressure, dtype=float)
        self.wanted_Pa = np.array(pressure_Pa, dtype=float)
        self.error_Pa = np.zeros_like(self.wanted_Pa)

    def command(self, pressure_Pa: Array) -> None:
        """Set the pressures (m,) [Pa] wanted from now on."""
        self.wanted_Pa[:] = pressure_Pa

    def restart(self, pressure_Pa: Array) -> None:
        """Set the wanted pressures (m,) [Pa] and clear the filtered errors."""
        self.command(pressure_Pa)
        self.error_Pa[:] = 0.0

    def advance(self, reading_Pa: Array, duration_s: float) -> None:
        """Update the filtered errors by pressures (m,) [Pa] that lasted for `duration_s`."""
        keep = math.exp(-duration_s / self.config.filter_s)
        self.error_Pa[:] = filtered_error(self.error_Pa, self.wanted_Pa, reading_Pa, keep)

    @property
    def torque(self) -> Array:
        """Torques (m,) wanted now [N m], without limits."""
        gain = self.config.gain
        return loop_torque(self.torque_per_pressure, self.wanted_Pa, self.error_Pa, gain)
