"""The simulated pneumatic arm: regulators, chambers, body, gripper, cameras, base sensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.drivers.play_compensation import PlayCompensation, PlayCompensationConfig
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.pneumatic.body import PneumaticBody
from softarm_ros.plant.pneumatic.chambers import PlantChambers
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.plant.pneumatic.gripper import GrippedObject, Gripper
from softarm_ros.plant.pneumatic.regulators import Regulators
from softarm_ros.plant.soft_arm import as_actuation
from softarm_ros.plant.stepped_plant import SteppedPlant, require_duration

Array = NDArray[np.float64]
NO_COMPENSATION = PlayCompensationConfig()


class PneumaticPlant(SteppedPlant):
    """
    What stands in for regulators, arm, cameras and force sensor in simulation.

    Meets `Plant`, `ChamberPressures`, `BaseWrench` and `Gripping`. It starts at rest, hanging,
    without pressure.

    Parameters
    ----------
    config
        Everything that the controller does not know.
    gravity_m_s2 : (3,)
        In the base frame.
    seed
        Of every random number.
    in_water
        Whether the arm is immersed.
    tip_load_kg
        Payload in the gripper for good.
    compensation
        What the driver in front of the regulators makes up for.
    names
        Of the chambers, for faults; their numbers without.

    Attributes
    ----------
    time_s
        Simulated time [s], from 0.

    """

    def __init__(
        self,
        config: PneumaticPlantConfig,
        gravity_m_s2: Sequence[float],
        seed: int,
        in_water: bool = False,
        tip_load_kg: float = 0.0,
        compensation: PlayCompensationConfig = NO_COMPENSATION,
        names: Sequence[str] = (),
    ) -> None:
        super().__init__(config, seed)
        self.config = config
        self._names = tuple(names) or tuple(map(str, range(len(config.regulators.gain))))
        self._tight = np.ones(len(config.regulators.gain))  # 0: burst
        self._gravity = np.array(gravity_m_s2, dtype=float)
        self._regulators = Regulators(config.regulators, seed)
        self._compensation = PlayCompensation(compensation, len(config.regulators.gain))
        self._chambers = [PlantChambers(s, config.hysteresis) for s in config.sections]
        self._body = PneumaticBody(config, gravity_m_s2, in_water, tip_load_kg)
        self._gripper = Gripper(config.gripper)
        self._wrench_noise = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        self._body.settle(np.zeros((len(config.sections), 4)))
        self._first_frame()

    # Plant.

    def hold(self) -> None:
        """Let the regulators keep the pressures there are."""
        self._regulators.hold()

    def actuator_state(self) -> ActuatorState:
        """Return measured pressure [Pa], its rate [Pa/s], and the same as effort, each (m,)."""
        measured = self._regulators.measured
        return ActuatorState(measured.copy(), self._regulators.rate.copy(), measured.copy())

    def true_section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every section's tip in the base frame."""
        return self._body.section_tips()

    def true_centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        return self._body.centerline(n)

    # The other way in: what stands at the terminals, in place of commands.

    def drive(
        self, signal_Pa: ArrayLike, gripper_Pa: float, vacuum: bool, duration_s: float
    ) -> None:
        """
        Let time pass under the signals of the regulators, with no driver in between.

        Parameters
        ----------
        signal_Pa : (m,)
            Of the chambers' regulators, as their volts stand for it.
        gripper_Pa
            Of the gripper's regulator.
        vacuum
            Whether the gripper's vacuum valve is open.
        duration_s
            By how much.

        Raises
        ------
        ValueError
            For a wrong shape, values that are not finite or a duration that is not positive.
        PlantError
            If the motion cannot be integrated.

        """
        require_duration(duration_s)
        self._regulators.drive(as_actuation(signal_Pa, self._count, 'signal_Pa'))
        supply = self.config.gripper.vacuum_Pa if vacuum else 0.0
        self._gripper.target_Pa = supply + max(float(gripper_Pa), 0.0)
        self._run(duration_s)

    # Pressure sensors, base sensor, gripper.

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (m,) [Pa]."""
        return self._regulators.measured.copy()

    def true_pressures(self) -> Array:
        """Return the gauge pressures (m,) [Pa] in the chambers."""
        return self._regulators.pressure.copy()

    def base_wrench(self) -> Array:
        """Return the measured load of the arm on its base (6,) [N, N m], about its origin."""
        c = self.config.wrench_sensor
        noise = self._wrench_noise.standard_normal(6)
        noise *= np.repeat([c.force_noise_N, c.moment_noise_N_m], 3)
        most = np.repeat([c.force_range_N, c.moment_range_N_m], 3)
        return np.clip(self.true_base_wrench() + noise, -most, most)

    def true_base_wrench(self) -> Array:
        """Return the load of the arm on its base (6,) [N, N m] without the sensor's noise."""
        return self._body.base_wrench()

    def command_gripper(self, pressure_Pa: float) -> None:
        """Set the gripper's pressure target [Pa gauge]; negative is vacuum."""
        if not math.isfinite(pressure_Pa):
            raise ValueError(f'gripper pressure = {pressure_Pa}; expected a finite number of Pa')
        most = self.config.regulators.max_pressure_Pa
        self._gripper.target_Pa = min(max(float(pressure_Pa), -1e5), most)

    def gripper_pressure(self) -> float:
        """Return the measured pressure of the gripper [Pa gauge]."""
        return self._gripper.pressure_Pa

    def place_object(self, item: GrippedObject | None) -> None:
        """Put an object into the world for the gripper to take; None takes it away."""
        if self._gripper.holds:
            self._body.carry(0.0, 0.0, np.zeros(3))
        self._gripper.place(item)

    @property
    def holds_object(self) -> bool:
        """Whether the gripper holds the object."""
        return self._gripper.holds

    def object_position(self) -> Array | None:
        """Return where the object is (3,) [m], base frame; None without one."""
        return self._gripper.object_position(self._body.fingers())

    def fingers(self) -> Array:
        """Return the true pose (4, 4) of the middle of the fingers, base frame."""
        return self._body.fingers()

    # Studies.

    def tips_at_rest(self, pressures_Pa: ArrayLike) -> Array:
        """
        Return the section tips (sections, 4, 4) long after a first filling; nothing moves.

        `pressures_Pa` (m,): true pressures, behind the regulators.
        """
        pressures = as_actuation(pressures_Pa, self._count, 'pressures_Pa')
        fresh = [PlantChambers(s, self.config.hysteresis) for s in self.config.sections]
        free = [
            chambers.free_strain(chambers.settle(three))
            for chambers, three in zip(fresh, pressures.reshape(-1, 3))
        ]
        return self._body.section_tips_at_rest(np.array(free))

    # Parts.

    @property
    def _count(self) -> int:
        return 3 * len(self.config.sections)

    def _command(self, command: ArrayLike, duration_s: float) -> None:
        target = as_actuation(command, self._count, 'command')
        within = np.clip(target, 0.0, self.config.regulators.max_pressure_Pa)
        self._regulators.command(self._compensation.signal(within))

    def _arm_faults(self) -> Faults:
        return {'chamber burst': InjectedFault((actuator_word(self._names),), self._burst)}

    def _burst(self, chamber: int) -> None:
        """Let a chamber hold no pressure; its regulator, at the valve, goes on believing."""
        self._tight[chamber] = 0.0

    def _advance(self, h: float, steps: int) -> None:
        for _ in range(steps):
            self._step_once(h)

    def _step_once(self, h: float) -> None:
        pressures = (self._tight * self._regulators.advance(h)).reshape(-1, 3)
        free = [
            chambers.free_strain(chambers.advance(three, h))
            for chambers, three in zip(self._chambers, pressures)
        ]
        self._body.advance(np.array(free), h)
        if self._gripper.advance(h, self._body.fingers(), self._object_weight()):
            self._reload()

    def _object_weight(self) -> float:
        item = self._gripper.object
        if item is None:
            return 0.0
        heavy = item.mass_kg - self._body.density * item.volume_m3
        return abs(heavy) * float(np.linalg.norm(self._gravity))

    def _reload(self) -> None:
        item = self._gripper.object
        if item is not None and self._gripper.holds:
            self._body.carry(item.mass_kg, item.volume_m3, self._gripper.offset())
        else:
            self._body.carry(0.0, 0.0, np.zeros(3))
