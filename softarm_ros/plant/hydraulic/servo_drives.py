"""Servo amplifiers under torque command, with what they make of a commanded pressure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.hydraulic.config import PressureLoopConfig, ServoDriveConfig

Array = NDArray[np.float64]


class ServoDrives:
    """
    Motors (m) whose torque stands for a pressure.

    The reference is the nominal torque of the commanded pressure and, with a pressure loop, of
    `gain` times the filtered error of the measured one: friction of the seals and errors of the
    ratio shrink by 1 + gain. A gain of 0 is pure torque control, as in the paper.

    Parameters
    ----------
    config
        Limit, resolution, lag.
    loop
        Gain and filter of the pressure loop.
    torque_per_pressure : (m,)
        Nominal ratio [N m/Pa].
    pressure_Pa : (m,)
        To start from, at rest.

    """

    def __init__(
        self,
        config: ServoDriveConfig,
        loop: PressureLoopConfig,
        torque_per_pressure: Array,
        pressure_Pa: Array,
    ) -> None:
        self.config, self.loop = config, loop
        self._ratio = torque_per_pressure
        self._command = np.array(pressure_Pa, dtype=float)
        self._error = np.zeros_like(self._command)
        self._held = False
        self._target = self._reference()
        self.torque = self._target.copy()
        self._rate = np.zeros_like(self.torque)

    def command(self, pressure_Pa: Array) -> None:
        """Set the pressures (m,) [Pa] wanted from now on."""
        self._command = pressure_Pa.copy()
        self._held = False

    def hold(self) -> None:
        """Keep the torques of now, whatever the pressures do."""
        self._target = self.torque.copy()
        self._held = True

    def advance(self, reading_Pa: Array, duration_s: float) -> Array:
        """
        Return the mean torques (m,) [N m] of the next moments, and end after them.

        `reading_Pa` (m,) is what the pressure sensors say at their beginning.
        """
        keep = math.exp(-duration_s / self.loop.filter_s)
        wanted = self._command - reading_Pa
        self._error = wanted + keep * (self._error - wanted)
        if not self._held:
            self._target = self._reference()
        lag = self.config.lag_s
        left = math.exp(-duration_s / lag)
        away = self.torque - self._target
        mean = self._target + away * (lag / duration_s) * (1.0 - left)
        before, self.torque = self.torque, self._target + away * left
        self._rate = (self.torque - before) / duration_s
        return np.asarray(mean)

    @property
    def pressure_rate(self) -> Array:
        """Rate (m,) of the pressure that the torques stand for [Pa/s]."""
        return np.asarray(self._rate / self._ratio)

    def _reference(self) -> Array:
        wanted = self._ratio * (self._command + self.loop.gain * self._error)
        step, limit = self.config.torque_step_N_m, self.config.max_torque_N_m
        return np.asarray(np.clip(step * np.round(wanted / step), -limit, limit))
