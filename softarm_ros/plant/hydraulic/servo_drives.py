"""Servo amplifiers in torque control: resolution, limit and lag of the motor torques."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.hydraulic.config import ServoDriveConfig

Array = NDArray[np.float64]


class ServoDrives:
    """
    Six (m) motors whose torque follows its reference.

    Parameters
    ----------
    config
        Limit, resolution, lag.
    torque_per_pressure : (m,)
        With which a commanded pressure is made a torque reference [N m/Pa].
    pressure_Pa : (m,)
        To start from, at rest.

    """

    def __init__(
        self, config: ServoDriveConfig, torque_per_pressure: Array, pressure_Pa: Array
    ) -> None:
        self.config = config
        self._per_pressure = torque_per_pressure
        self.target = self._reference(pressure_Pa)
        self.torque = self.target.copy()
        self._rate = np.zeros_like(self.torque)

    def command(self, pressure_Pa: Array) -> None:
        """Set the targets (m,) [Pa]."""
        self.target = self._reference(pressure_Pa)

    def hold(self) -> None:
        """Keep the torques of now."""
        self.target = self.torque.copy()

    def advance(self, duration_s: float) -> Array:
        """Return the mean torques (m,) [N m] of the next moments, and end after them."""
        lag = self.config.lag_s
        left = math.exp(-duration_s / lag)
        away = self.torque - self.target
        mean = self.target + away * (lag / duration_s) * (1.0 - left)
        before, self.torque = self.torque, self.target + away * left
        self._rate = (self.torque - before) / duration_s
        return np.asarray(mean)

    @property
    def pressure_rate(self) -> Array:
        """Rate (m,) of the pressure that the torques stand for [Pa/s]."""
        return np.asarray(self._rate / self._per_pressure)

    def _reference(self, pressure_Pa: Array) -> Array:
        wanted = self._per_pressure * pressure_Pa
        step, limit = self.config.torque_step_N_m, self.config.max_torque_N_m
        return np.asarray(np.clip(step * np.round(wanted / step), -limit, limit))
