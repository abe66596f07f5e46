"""The simulated arm: motors, cables, body and motion capture. It never sleeps."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.layout import Array, Loads
from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.plant.packing import motor_count, pack_wiring
from softarm_ros.plant.soft_arm import Equilibrium, SoftArm, as_actuation
from softarm_ros.plant.step_kernels import drive_arm, wind_cables
from softarm_ros.plant.stepped_plant import SteppedPlant, require_duration
from softarm_ros.plant.stepper import Steppers

__all__ = ['ActuatorState', 'ArmPlant', 'Equilibrium', 'PlantError', 'PoseMeasurement']

_EARLY_S = 1e-9  # rounding of the clock must not delay a command by a step
_SNAPPED_M = 10.0  # so much loose cable never becomes taut


class ArmPlant(SteppedPlant):
    """
    What stands in for drivers, arm and cameras in simulation.

    It starts at rest, hanging, with all contractions zero: the cables as long as in the straight,
    unstressed arm (less the steppers' slack), so that they share the arm's weight.

    Parameters
    ----------
    config
        Everything that the controller does not know.
    cables
        One per actuator, in the order of the commands; or both of every pair that a motor winds,
        each naming its motor.
    gravity_m_s2 : (3,)
        In the base frame.
    seed
        Of every random number.
    tip_load_kg
        Payload: its weight on the tip, without inertia.
    names
        Of the motors, for faults; their numbers without.

    Attributes
    ----------
    time_s
        Simulated time [s], from 0.

    """

    def __init__(
        self,
        config: PlantConfig,
        cables: Sequence[PlantCable],
        gravity_m_s2: ArrayLike,
        seed: int,
        tip_load_kg: float = 0.0,
        names: Sequence[str] = (),
    ) -> None:
        super().__init__(config, seed)
        self.config = config
        self._names = tuple(names) or tuple(map(str, range(motor_count(cables))))
        self._arm = SoftArm(config, cables, gravity_m_s2)
        self._wiring = pack_wiring(config, cables)
        self._steppers = Steppers(config.stepper, motor_count(cables))
        self._wound = np.empty(len(cables))
        self._turning = False
        self._under_way: deque[tuple[float, Array]] = deque()  # commands, by when they arrive
        wind_cables(self._wiring, self._steppers.contraction, self._wound)
        self._weight = tip_load_kg * np.asarray(gravity_m_s2, dtype=float)
        self._loads = Loads(self._weight, np.zeros(3))
        self._arm.settle(contraction=self._wound, tip_force=self._weight)
        self._first_frame()

    def turn(self, position: ArrayLike, duration_s: float) -> None:
        """
        Advance the simulation with the motors turned by somebody else, instead of `step`.

        Parameters
        ----------
        position : (m,)
            Where the motors are at the end, as contraction before play and slack [m]; they get
            there evenly. Their limits do not apply: what turns them has limits of its own.
        duration_s
            By how much, as in `step`.

        Raises
        ------
        ValueError
            If the position has the wrong shape or is not finite, or the duration is not positive.
        PlantError
            If the arm leaves the range of the simulation.

        """
        require_duration(duration_s)
        end = as_actuation(position, len(self._steppers.position), 'position')
        self._under_way.clear()
        self._steppers.begin_turn(end, duration_s)
        self._turning = True
        try:
            self._run(duration_s)
        finally:
            self._turning = False
        self._steppers.end_turn(end)

    def hold(self) -> None:
        """Let the motors brake at their limit and stay where they stop; forget commands."""
        self._under_way.clear()
        self._steppers.hold()

    def actuator_state(self) -> ActuatorState:
        """
        Return counted position [m], velocity [m/s] and pull [N] of every motor, each (m,).

        The pull is the tension of the motor's cable, less that of its counterpart in a pair.
        """
        wiring, position = self._wiring, self._steppers.position
        pull = np.bincount(
            wiring.motor, wiring.sign * self._arm.state.tension, minlength=len(position)
        )
        return ActuatorState(position, self._steppers.velocity, pull.astype(np.float64))

    def true_section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every section's tip in the base frame."""
        return self._arm.section_tips()

    def true_centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        return self._arm.centerline(n)

    def static_equilibrium(
        self,
        contraction: ArrayLike | None = None,
        *,
        tension: ArrayLike | None = None,
        tip_force: ArrayLike = (0.0, 0.0, 0.0),
        tip_moment: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Equilibrium:
        """
        Return where the arm would come to rest, leaving the plant itself as it is.

        Parameters
        ----------
        contraction, tension : (cables,)
            Of the cables themselves, behind motors, play and slack [m] or [N]: one of the two;
            with neither, the contractions of now.
        tip_force, tip_moment : (3,)
            Dead load on the tip beside the payload, base frame [N], [N m].

        """
        return self._arm.copy().settle(
            contraction=contraction,
            tension=tension,
            tip_force=self._weight + np.asarray(tip_force, dtype=float),
            tip_moment=tip_moment,
        )

    def _arm_faults(self) -> Faults:
        motor = actuator_word(self._names)
        return {
            'cable snap': InjectedFault((motor,), lambda i: self._let_out(i, _SNAPPED_M)),
            'cable slip': InjectedFault(
                (motor, ('MM', float)), lambda i, length: self._let_out(i, 1e-3 * length)
            ),
        }

    def _let_out(self, motor: int, length_m: float) -> None:
        """Make a motor's cable longer; of a pair the one that the motor pulls in."""
        ours = (self._wiring.motor == motor) & (self._wiring.sign > 0.0)
        self._wiring.offset[ours] -= length_m

    def _command(self, command: ArrayLike, duration_s: float) -> None:
        target = as_actuation(command, len(self._steppers.position), 'command')
        self._under_way.append((self.time_s + self.config.stepper.delay_s, target))
        while self._under_way and self._under_way[0][0] <= self.time_s + _EARLY_S:
            self._steppers.command(self._under_way.popleft()[1])

    def _advance(self, h: float, steps: int) -> None:
        arm = self._arm
        status, joint = drive_arm(
            arm.body,
            arm.cables,
            arm.state,
            self._loads,
            self._steppers.parameters,
            self._steppers.state,
            self._wiring,
            self._wound,
            arm.scratch,
            h,
            steps,
            self._turning,
        )
        arm.check(status, joint)
