"""Regulators, chambers and gripper that move the simulated pneumatic arm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.drivers.play_compensation import PlayCompensation, PlayCompensationConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.actuator_values import as_actuation
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.pneumatic.body import PneumaticBody
from softarm_ros.plant.pneumatic.chambers import PlantChambers
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.plant.pneumatic.gripper import GrippedObject, Gripper
from softarm_ros.plant.pneumatic.regulators import Regulators


class PneumaticDrives:
    """
    Regulators of all chambers and of a gripper; they bring the arm to rest without pressure.

    Parameters
    ----------
    config, compensation, names, seed
        As in `PneumaticPlant`.
    body
        The body that they move.
    gripper
        The gripper at its tip, or None.

    """

    def __init__(
        self,
        config: PneumaticPlantConfig,
        compensation: PlayCompensationConfig,
        names: Sequence[str],
        body: PneumaticBody,
        gripper: Gripper | None,
        seed: int,
    ) -> None:
        count = len(config.regulators.gain)
        self._config, self._body = config, body
        self._names = tuple(names) or tuple(map(str, range(count)))
        self._tight = np.ones(count)  # 0: burst
        self._regulators = Regulators(config.regulators, seed)
        self._compensation = PlayCompensation(compensation, count)
        self._chambers = PlantChambers(config.sections, config.hysteresis)
        self._gripper = gripper
        body.settle(np.zeros((len(config.sections), 4)))

    def command(self, target: ArrayLike, now_s: float, duration_s: float) -> None:
        """Set the target pressures (m,) [Pa]; see `Drives`."""
        wanted = as_actuation(target, self._count, 'command', self._names)
        within = np.clip(wanted, 0.0, self._config.regulators.max_pressure_Pa)
        self._regulators.command(self._compensation.signal(within))

    def follow(self, signal_Pa: ArrayLike, gripper_Pa: float, vacuum: bool) -> None:
        """
        Set the signals at the terminals of the regulators, without a simulated driver.

        Parameters
        ----------
        signal_Pa : (m,)
            Signals of the chambers' regulators, converted from volts.
        gripper_Pa
            Signal of the gripper's regulator; ignored without a gripper.
        vacuum
            Whether the gripper's vacuum valve is open.

        Raises
        ------
        ValueError
            If the shape is wrong or a value is not finite.

        """
        self._regulators.drive(as_actuation(signal_Pa, self._count, 'signal_Pa', self._names))
        if self._gripper is not None:
            supply = self._gripper.config.vacuum_Pa if vacuum else 0.0
            self._gripper.target_Pa = supply + max(float(gripper_Pa), 0.0)

    def hold(self, now_s: float) -> None:
        """Make the regulators keep the present pressures."""
        self._regulators.hold()

    def advance(self, now_s: float, h: float, steps: int) -> None:
        """Advance pressures, arm and gripper; see `Drives`."""
        gripper = self._gripper
        if gripper is None or gripper.object is None:
            self._move(h, steps)
            if gripper is not None:
                gripper.fill(h * steps)
            return
        for _ in range(steps):  # the gripper may take or release an object after each step
            self._move(h, 1)
            gripper.fill(h)
            if gripper.handle(self._body.fingers(), self._object_weight(gripper)):
                self._reload(gripper)

    def state(self) -> ActuatorState:
        """Return pressure [Pa], its rate [Pa/s], and pressure as effort; measured, each (m,)."""
        measured = self._regulators.valves.measured
        return ActuatorState(measured.copy(), self._regulators.valves.rate.copy(), measured.copy())

    def faults(self) -> Faults:
        """Return the possible faults: chambers burst."""
        return {'chamber burst': InjectedFault((actuator_word(self._names),), self._burst)}

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (m,) [Pa]."""
        return self._regulators.valves.measured.copy()

    def true_pressures(self) -> Array:
        """Return the gauge pressures (m,) [Pa] in the chambers."""
        return self._regulators.valves.pressure.copy()

    def command_gripper(self, pressure_Pa: float) -> None:
        """Set the gripper's pressure target [Pa gauge]; negative is vacuum."""
        if not math.isfinite(pressure_Pa):
            raise ValueError(f'gripper pressure = {pressure_Pa}; expected a finite number of Pa')
        most = self._config.regulators.max_pressure_Pa
        self._gripping().target_Pa = min(max(float(pressure_Pa), -1e5), most)

    def gripper_pressure(self) -> float:
        """Return the measured pressure of the gripper [Pa gauge]."""
        return self._gripping().pressure_Pa

    def place_object(self, item: GrippedObject | None) -> None:
        """Place an object for the gripper to pick up; None removes it."""
        gripper = self._gripping()
        if gripper.holds:
            self._body.release()
        gripper.place(item)

    @property
    def holds_object(self) -> bool:
        """Whether the gripper holds the object."""
        return self._gripper is not None and self._gripper.holds

    def object_position(self) -> Array | None:
        """Return the position (3,) [m] of the object, base frame; None without an object."""
        if self._gripper is None:
            return None
        return self._gripper.object_position(self._body.fingers())

    def tips_at_rest(self, pressures_Pa: ArrayLike) -> Array:
        """
        Return the section tips (sections, 4, 4) long after a first filling; nothing moves.

        `pressures_Pa` (m,) are true pressures, after the regulators.
        """
        pressures = as_actuation(pressures_Pa, self._count, 'pressures_Pa', self._names)
        fresh = PlantChambers(self._config.sections, self._config.hysteresis)
        fresh.settle(pressures.reshape(-1, 3))
        return self._body.section_tips_at_rest(fresh.free_strains())

    @property
    def _count(self) -> int:
        return 3 * len(self._config.sections)

    def _burst(self, chamber: int) -> None:
        """Burst a chamber; its regulator, at the valve, still measures the pressure."""
        self._tight[chamber] = 0.0

    def _move(self, h: float, steps: int) -> None:
        regulators = self._regulators
        noise = regulators.noise(steps)
        self._body.drive(regulators.valves, self._tight, noise, self._chambers.arrays, h)

    def _gripping(self) -> Gripper:
        if self._gripper is None:
            raise ValueError('plant.gripper: this arm has none')
        return self._gripper

    def _object_weight(self, gripper: Gripper) -> float:
        item = gripper.object
        if item is None:
            return 0.0
        heavy = item.mass_kg - self._body.density * item.volume_m3
        return abs(heavy) * float(np.linalg.norm(self._body.gravity))

    def _reload(self, gripper: Gripper) -> None:
        item = gripper.object
        if item is not None and gripper.holds:
            self._body.carry(item.mass_kg, item.volume_m3, gripper.offset())
        else:
            self._body.release()
