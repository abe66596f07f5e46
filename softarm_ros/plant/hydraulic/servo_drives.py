"""Servo motors under torque command, with what the drives make of a commanded pressure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.drivers.pressure_loop import PressureLoop
from softarm_ros.plant.hydraulic.config import ServoDriveConfig

Array = NDArray[np.float64]


class ServoDrives:
    """
    Motors (m) whose torque stands for a pressure.

    Either they follow pressures (`command`, the pressure loop of the driver, then limit and
    resolution), or torques that a drive outside puts out (`follow`, which has limit and
    resolution itself). Both lag.

    Parameters
    ----------
    config
        Limit, resolution, lag.
    loop
        From pressures to torques, at rest.

    """

    def __init__(self, config: ServoDriveConfig, loop: PressureLoop) -> None:
        self.config, self.loop = config, loop
        self._held = False
        self._target = self._reference()
        self.torque = self._target.copy()
        self._rate = np.zeros_like(self.torque)

    def command(self, pressure_Pa: Array) -> None:
        """Set the pressures (m,) [Pa] wanted from now on."""
        self.loop.command(pressure_Pa)
        self._held = False

    def hold(self) -> None:
        """Keep the torques of now, whatever the pressures do."""
        self.follow(self.torque)

    def stop(self) -> None:
        """Put out nothing from now on, without lag."""
        self.torque = np.zeros_like(self.torque)
        self.follow(self.torque)

    def follow(self, torque_N_m: Array) -> None:
        """Put out these torques (m,) [N m], whatever the pressures do."""
        self._target = np.array(torque_N_m, dtype=float)
        self._held = True

    def advance(self, reading_Pa: Array, duration_s: float) -> Array:
        """
        Return the mean torques (m,) [N m] of the next moments, and end after them.

        `reading_Pa` (m,) is what the pressure sensors say at their beginning.
        """
        self.loop.advance(reading_Pa, duration_s)
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
        return np.asarray(self._rate / self.loop.torque_per_pressure)

    def _reference(self) -> Array:
        step, limit = self.config.torque_step_N_m, self.config.max_torque_N_m
        return np.asarray(np.clip(step * np.round(self.loop.torque / step), -limit, limit))
