"""What motor torques make a cylinder hold a pressure: nominal ratio, gain, filter; no device."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from pydantic import Field

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive

Value = TypeVar('Value', float, Array)


class PressureLoopConfig(ConfigBlock):
    """What the drives make of the measured pressures; gain 0 is torque control as in the paper."""

    gain: NonNegative = 0.0
    filter_s: Positive = Field(default=0.06, description='time constant of the measured error')

    def phase_margin_deg(self, delay_s: float) -> float:
        """
        Return what phase is left where the open loop crosses 1, after all delays and lags.

        The open loop is gain / (1 + filter s) exp(-delay s): an axis whose own lags are small is
        counted with them. 180 where it never crosses.
        """
        if self.gain <= 1.0:
            return 180.0
        crossing = math.sqrt(self.gain**2 - 1.0) / self.filter_s
        lag = math.atan(crossing * self.filter_s) + crossing * delay_s
        return 180.0 - math.degrees(lag)


def filtered_error(error: Value, wanted: Value, measured: Value, keep: float) -> Value:
    """Return the filtered error [Pa] after a time in which `keep` of the old one is left."""
    now = wanted - measured
    return now + keep * (error - now)


def loop_torque(torque_per_pressure: Value, wanted: Value, error: Value, gain: float) -> Value:
    """Return the torque [N m] for a wanted pressure [Pa] at a filtered error [Pa]."""
    return torque_per_pressure * (wanted + gain * error)


class PressureLoop:
    """
    Torques (m,) that stand for commanded pressures.

    The nominal torque of the commanded pressure and, on top, that of `gain` times the filtered
    error of the measured one: friction of the seals and errors of the ratio shrink by 1 + gain.

    Parameters
    ----------
    config
        Gain and filter.
    torque_per_pressure : (m,)
        Nominal ratio [N m/Pa].
    pressure_Pa : (m,)
        To start from, at rest.

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
        """Want these pressures (m,) [Pa], as if they had been there for ever."""
        self.command(pressure_Pa)
        self.error_Pa[:] = 0.0

    def advance(self, reading_Pa: Array, duration_s: float) -> None:
        """Take the measured pressures (m,) [Pa] to have been there for so long."""
        keep = math.exp(-duration_s / self.config.filter_s)
        self.error_Pa[:] = filtered_error(self.error_Pa, self.wanted_Pa, reading_Pa, keep)

    @property
    def torque(self) -> Array:
        """Torques (m,) wanted now [N m], without limits."""
        gain = self.config.gain
        return loop_torque(self.torque_per_pressure, self.wanted_Pa, self.error_Pa, gain)
