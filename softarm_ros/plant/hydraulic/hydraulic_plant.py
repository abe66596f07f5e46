"""The simulated water-hydraulic arm: drives, axes, body, water around it, sensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.drivers.pressure_loop import PressureLoop, PressureLoopConfig
from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.axes_kernels import CONDUCTANCE, RELIEF
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.section_config import ChamberConfig, Surroundings
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.hydraulic.body import HydraulicBody
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig
from softarm_ros.plant.hydraulic.holding_brakes import HoldingBrakes
from softarm_ros.plant.hydraulic.pressure_sensors import PressureSensors
from softarm_ros.plant.hydraulic.servo_drives import ServoDrives
from softarm_ros.plant.stepped_plant import SteppedPlant, require_duration

Array = NDArray[np.float64]

_TORN_M3_S_PA = 1e-9  # of a torn hose: 0.1 l/s at 100 kPa


class HydraulicPlant(SteppedPlant):
    """
    What stands in for drives, axes, arm, cameras and pressure sensors in simulation.

    A commanded pressure becomes a motor torque by the nominal ratio and the loop of the drives;
    what pressure that torque makes depends on friction and efficiency of the axis, which the
    controller does not know. Arm
    and water are solved together (`coupled_kernels`).

    It starts at rest with the torques of `preload_Pa`, the seals without friction force.

    Behind emulated drives (`park`, `step_drives`) the driver makes the torques, and the brakes at
    the motors close where a drive is switched off. A fault must not end such a simulation:
    water that would boil, of which the model says nothing, is noted (`boiled_s`), not raised.

    Parameters
    ----------
    config
        Everything that the controller does not know.
    chambers
        One per actuator, in the order of the commands.
    torque_per_pressure : (m,)
        Nominal ratio of the drives [N m/Pa].
    loop
        Of the drives, around the measured pressures.
    preload_Pa : (m,)
        Pressures to start from.
    surroundings
        Gravity in the base frame, fluid, tip load.
    seed
        Of every random number.

    Attributes
    ----------
    time_s
        Simulated time [s], from 0.
    body
        The arm with its water.

    Raises
    ------
    PlantError
        If there is no equilibrium to start from.

    """

    def __init__(
        self,
        config: HydraulicPlantConfig,
        chambers: Sequence[ChamberConfig],
        torque_per_pressure: ArrayLike,
        loop: PressureLoopConfig,
        preload_Pa: ArrayLike,
        surroundings: Surroundings,
        seed: int,
    ) -> None:
        super().__init__(config, seed)
        self.config = config
        self._names = [chamber.name for chamber in chambers]
        self._hydraulics = WaterHydraulics(plant_axes(config, chambers))
        self.body = HydraulicBody(config, chambers, surroundings, self._hydraulics)
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
        self.body.settle(self.piston_forces() / areas)
        self._sensors = PressureSensors(config.pressure_sensor, len(chambers), seed)
        self._sensors.sample(self._pressures())
        self._first_frame()

    def hold(self) -> None:
        """Keep the motor torques of now: the pressures stay, and with them the arm."""
        self._drives.hold()

    def park(self) -> None:
        """Be switched off at rest: no torque, brakes closed on the pressures of now."""
        self._emulated = True
        self._lifted = np.zeros(len(self._names), dtype=bool)
        self._brakes.set(self._lifted)
        self._drives.stop()

    def step_drives(self, torque_N_m: Array, lifted: NDArray[np.bool_], duration_s: float) -> None:
        """
        Advance under what drives put out, within their limit: the motors only add their lag.

        Parameters
        ----------
        torque_N_m : (m,)
            At the shafts.
        lifted : (m,)
            Whether there is current in the brake.
        duration_s
            As for `step`.

        Raises
        ------
        ValueError, PlantError
            As `step`.

        """
        require_duration(duration_s)
        self._drives.follow(self._checked(torque_N_m))
        self._emulated = True
        self._lifted = np.array(lifted, dtype=bool)
        self._run(duration_s)

    def shaft_positions(self) -> Array:
        """Return the angles of the motors (m,) [rad], 0 where the pistons are at 0."""
        return np.asarray(self.piston_positions() / self._leads)

    def shaft_speeds(self) -> Array:
        """Return the speeds of the motors (m,) [rad/s]."""
        velocity = self._hydraulics.piston_velocity(self.body.axes.state)
        return np.asarray(velocity / self._leads)

    @property
    def boiled_s(self) -> Array:
        """How long each axis (m,) was below the vapour pressure behind emulated drives [s]."""
        return self.body.axes.boiled_s.copy()

    def sensor_signals(self) -> Array:
        """Return what the pressure sensors give (m,) [Pa], before any converter."""
        return self._sensors.signal

    def actuator_state(self) -> ActuatorState:
        """Return measured pressure [Pa], rate the drives give it [Pa/s], motor torque [N m]."""
        return ActuatorState(
            self._sensors.reading, self._drives.pressure_rate, self._drives.torque
        )

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (m,) [Pa]."""
        return self._sensors.reading

    def true_pressures(self) -> Array:
        """Return the gauge pressures in the chambers (m,) [Pa]."""
        return self._pressures().copy()

    def piston_positions(self) -> Array:
        """Return where the pistons are (m,) [m]; 0 is the straight arm without pressure."""
        return self._hydraulics.piston_position(self.body.axes.state).copy()

    def true_section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every section's tip in the base frame."""
        return self.body.section_tips()

    def true_centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        return self.body.centerline(n)

    def piston_forces(self) -> Array:
        """Return what the motors press on the pistons with (m,) [N]."""
        return np.asarray(self._hydraulics.force_per_torque * self._drives.torque)

    def _arm_faults(self) -> Faults:
        return {'chamber burst': InjectedFault((actuator_word(self._names),), self._burst)}

    def _burst(self, chamber: int) -> None:
        """Tear a hose at its cylinder: the water leaves, and with it the pressure."""
        self._hydraulics.parameters[chamber, RELIEF] = 0.0
        self._hydraulics.parameters[chamber, CONDUCTANCE] = _TORN_M3_S_PA

    def _command(self, command: ArrayLike, duration_s: float) -> None:
        self._drives.command(self._checked(command))

    def _advance(self, h: float, steps: int) -> None:
        if not self._emulated:
            self._drive(self.time_s, h, steps)
            return
        for k in range(steps):
            self._brakes.advance(self._lifted, h)
            self._drive(self.time_s + k * h, h, 1)

    def _drive(self, now_s: float, h: float, steps: int) -> None:
        drives, sensors = self._drives, self._sensors
        self.body.drive(
            drives.motors, drives.held, sensors.gauges, sensors.deviates(steps), now_s, h,
            self._emulated,
        )  # fmt: skip

    def _pressures(self) -> Array:
        return self._hydraulics.chamber_pressure(self.body.axes.state)

    def _checked(self, command: ArrayLike) -> Array:
        values = np.asarray(command, dtype=float)
        if values.shape != (len(self._names),):
            raise ValueError(
                f'command has shape {values.shape}; expected ({len(self._names)},) '
                f'for {", ".join(self._names)}'
            )
        for name, value in zip(self._names, values):
            if not math.isfinite(value):
                raise ValueError(f'command of {name} = {value}; expected a finite pressure in Pa')
        return values


def plant_axes(
    config: HydraulicPlantConfig, chambers: Sequence[ChamberConfig]
) -> list[HydraulicAxisConfig]:
    """Return one axis per chamber; the stretch of the chamber is the arm's, not the wall's."""
    axes = []
    for chamber, factor in zip(chambers, config.efficiency_factors):
        section = config.sections[chamber.section]
        axes.append(
            config.axis.model_copy(
                update={
                    'name': chamber.name,
                    'transmission_efficiency': factor * config.axis.transmission_efficiency,
                    'chamber_volume_m3': section.chamber_area_m2 * section.length_m,
                }
            )
        )
    return axes
