"""Servo drives, brakes and pressure sensors of the simulated water-hydraulic arm."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.drivers.pressure_loop import PressureLoop, PressureLoopConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.hydraulics.axes_kernels import CONDUCTANCE, RELIEF
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.hydraulic.body import HydraulicBody
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig
from softarm_ros.plant.hydraulic.holding_brakes import HoldingBrakes
from softarm_ros.plant.hydraulic.pressure_sensors import PressureSensors
from softarm_ros.plant.hydraulic.servo_drives import ServoDrives

_TORN_M3_S_PA = 1e-9  # conductance of a torn hose: 0.1 l/s at 100 kPa


class HydraulicDrives:
    """
    Motors on the cylinders of all chambers; they bring the arm to rest under its preload.

    The nominal ratio and the loop of the drives turn a commanded pressure into a motor torque. The
    pressure that results depends on friction and efficiency of the axis, which the controller does
    not know. At the start the torques are those of the preload, and the seals have no friction
    force.

    With emulated drives (`park`, `follow`), the driver sets the torques, and the brakes at the
    motors close when a drive is switched off. A fault must not end such a simulation: boiling
    water, which the model does not cover, is recorded (`boiled_s`) and raises no error.

    Parameters
    ----------
    config, torque_per_pressure, loop, preload_Pa, seed
        As in `HydraulicPlant`.
    body
        The body that they move.

    """

    def __init__(
        self,
        config: HydraulicPlantConfig,
        torque_per_pressure: ArrayLike,
        loop: PressureLoopConfig,
        preload_Pa: ArrayLike,
        body: HydraulicBody,
        seed: int,
    ) -> None:
        self._body, self._hydraulics = body, body.hydraulics
        self._names = list(self._hydraulics.axis_names)
        self._leads = np.array([axis.lead_m_per_rad for axis in self._hydraulics.axes])
        start = np.asarray(preload_Pa, dtype=float)
        ratio = np.asarray(torque_per_pressure, dtype=float)
        self._drives = ServoDrives(
            config.drive, PressureLoop(loop, ratio, start), self._hydraulics.force_per_torque
        )
        self._brakes = HoldingBrakes(config.drive.brake, self._hydraulics)
        self._lifted = self._brakes.open.copy()
        self._emulated = False
        areas = np.array([axis.piston_area_m2 for axis in self._hydraulics.axes])
        body.settle(self.piston_forces() / areas)
        self._sensors = PressureSensors(config.pressure_sensor, len(start), seed)
        self._sensors.sample(self.true_pressures())

    def command(self, target: ArrayLike, now_s: float, duration_s: float) -> None:
        """Set the target pressures (m,) [Pa]; see `Drives`."""
        self._drives.command(self._checked(target, 'command', 'pressure in Pa'))

    def hold(self, now_s: float) -> None:
        """Keep the present motor torques: the pressures stay, and so does the arm."""
        self._drives.hold()

    def park(self) -> None:
        """Switch off at rest: no torque, brakes closed at the present pressures."""
        self._emulated = True
        self._lifted = np.zeros(len(self._names), dtype=bool)
        self._brakes.set(self._lifted)
        self._drives.stop()

    def follow(self, torque_N_m: ArrayLike, lifted: NDArray[np.bool_]) -> None:
        """
        Set the torques of emulated drives, within their limit: the motors only add their lag.

        Parameters
        ----------
        torque_N_m : (m,)
            At the shafts.
        lifted : (m,)
            Whether the brake has current.

        Raises
        ------
        ValueError
            If the torques have the wrong shape or are not finite; names the chamber.

        """
        self._drives.follow(self._checked(torque_N_m, 'torque', 'number of N m'))
        self._emulated = True
        self._lifted = np.array(lifted, dtype=bool)

    def advance(self, now_s: float, h: float, steps: int) -> None:
        """Advance motors, water and arm together; see `Drives`."""
        if not self._emulated:
            self._drive(now_s, h, steps)
            return
        for k in range(steps):
            self._brakes.advance(self._lifted, h)
            self._drive(now_s + k * h, h, 1)

    def _drive(self, now_s: float, h: float, steps: int) -> None:
        drives, sensors = self._drives, self._sensors
        self._body.drive(
            drives.motors, drives.held, sensors.gauges, sensors.deviates(steps), now_s, h,
            self._emulated,
        )  # fmt: skip

    def state(self) -> ActuatorState:
        """Return measured pressure [Pa], its rate by the drives [Pa/s], motor torque [N m]."""
        return ActuatorState(
            self._sensors.reading, self._drives.pressure_rate, self._drives.torque
        )

    def shaft_positions(self) -> Array:
        """Return the angles of the motors (m,) [rad], 0 if the pistons are at 0."""
        return np.asarray(self.piston_positions() / self._leads)

    def shaft_speeds(self) -> Array:
        """Return the speeds of the motors (m,) [rad/s]."""
        velocity = self._hydraulics.piston_velocity(self._body.axes.state)
        return np.asarray(velocity / self._leads)

    @property
    def boiled_s(self) -> Array:
        """Time for which each axis (m,) was below vapour pressure, with emulated drives [s]."""
        return self._body.axes.boiled_s.copy()

    def sensor_signals(self) -> Array:
        """Return the signals of the pressure sensors (m,) [Pa], before any converter."""
        return self._sensors.signal

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (m,) [Pa]."""
        return self._sensors.reading

    def true_pressures(self) -> Array:
        """Return the gauge pressures in the chambers (m,) [Pa]."""
        return self._hydraulics.chamber_pressure(self._body.axes.state)

    def piston_positions(self) -> Array:
        """Return the positions of the pistons (m,) [m]; 0 is the straight arm without pressure."""
        return self._hydraulics.piston_position(self._body.axes.state).copy()

    def piston_forces(self) -> Array:
        """Return the forces of the motors on the pistons (m,) [N]."""
        return np.asarray(self._hydraulics.force_per_torque * self._drives.torque)

    def faults(self) -> Faults:
        """Return the possible faults: hoses of chambers burst."""
        return {'chamber burst': InjectedFault((actuator_word(self._names),), self._burst)}

    def _burst(self, chamber: int) -> None:
        """Tear a hose at its cylinder: the water leaves, and the pressure drops."""
        self._hydraulics.parameters[chamber, RELIEF] = 0.0
        self._hydraulics.parameters[chamber, CONDUCTANCE] = _TORN_M3_S_PA

    def _checked(self, given: ArrayLike, what: str, kind: str) -> Array:
        values = np.asarray(given, dtype=float)
        if values.shape != (len(self._names),):
            raise ValueError(
                f'{what} has shape {values.shape}; expected ({len(self._names)},) '
                f'for {", ".join(self._names)}'
            )
        for name, value in zip(self._names, values):
            if not math.isfinite(value):
                raise ValueError(f'{what} of {name} = {value}; expected a finite {kind}')
        return values
