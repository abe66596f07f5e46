"""Servo motors under torque command, and the pressure loop of their drives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.drivers.pressure_loop import PressureLoop
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.hydraulic.config import ServoDriveConfig
from softarm_ros.plant.hydraulic.drive_kernels import advance_motors, aim
from softarm_ros.plant.hydraulic.layout import Motors


class ServoDrives:
    """
    Motors (m) whose torques produce pressures.

    They follow either pressures (`command`: the driver's pressure loop, then limit and resolution)
    or the torques of external drives (`follow`: those drives apply limit and resolution). Both
    lag.

    Parameters
    ----------
    config
        Limit, resolution, lag.
    loop
        Pressure loop, at rest.
    force_per_torque : (m,)
        At the pistons [1/m].

    Attributes
    ----------
    motors
        Arrays of the kernels.
    held
        Whether the targets stay constant, and the loop's torque is ignored.

    """

    def __init__(
        self, config: ServoDriveConfig, loop: PressureLoop, force_per_torque: ArrayLike
    ) -> None:
        self._loop = loop
        m = len(loop.wanted_Pa)
        self.held = False
        self.motors = Motors(
            torque_per_pressure=loop.torque_per_pressure,
            wanted=loop.wanted_Pa,
            error=loop.error_Pa,
            target=np.zeros(m),
            torque=np.zeros(m),
            mean=np.zeros(m),
            rate=np.zeros(m),
            force_per_torque=np.array(force_per_torque, dtype=np.float64),
            gain=loop.config.gain,
            filter_s=loop.config.filter_s,
            torque_step=config.torque_step_N_m,
            max_torque=config.max_torque_N_m,
            lag_s=config.lag_s,
        )
        for i in range(m):
            aim(self.motors, i)
        self.motors.torque[:] = self.motors.target

    def command(self, pressure_Pa: Array) -> None:
        """Set the target pressures (m,) [Pa] from now on."""
        self._loop.command(pressure_Pa)
        self.held = False

    def hold(self) -> None:
        """Keep the present torques, whatever the pressures do."""
        self.follow(self.motors.torque)

    def stop(self) -> None:
        """Set the torques to zero, without lag."""
        self.motors.torque[:] = 0.0
        self.hold()

    def follow(self, torque_N_m: Array) -> None:
        """Set the target torques (m,) [N m], whatever the pressures do."""
        self.motors.target[:] = torque_N_m
        self.held = True

    def advance(self, reading_Pa: Array, duration_s: float) -> Array:
        """
        Advance by a duration [s]; return the mean torques (m,) [N m] in it.

        `reading_Pa` (m,) are the readings of the pressure sensors at its beginning.
        """
        advance_motors(self.motors, self.held, reading_Pa, duration_s)
        return self.motors.mean.copy()

    @property
    def torque(self) -> Array:
        """Present torques (m,) [N m]."""
        return self.motors.torque.copy()

    @property
    def pressure_rate(self) -> Array:
        """Rate (m,) of the pressures that correspond to the torques [Pa/s]."""
        return np.asarray(self.motors.rate / self.motors.torque_per_pressure)
