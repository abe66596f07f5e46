"""Steppers, play, pulleys and cables that move the body of a cable-driven arm."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.actuator_values import as_actuation
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word, millimetres
from softarm_ros.plant.layout import Loads
from softarm_ros.plant.packing import motor_count, pack_wiring
from softarm_ros.plant.plant import require_duration
from softarm_ros.plant.soft_arm import Equilibrium, SoftArm
from softarm_ros.plant.step_kernels import drive_arm, wind_cables
from softarm_ros.plant.stepper import Steppers

_EARLY_S = 1e-9  # tolerance: rounding of the clock must not delay a command by a step
_SNAPPED_M = 10.0  # enough added length that the cable never becomes taut


class CableDrives:
    """
    The motors of all cables; the arm is at rest with all contractions zero.

    The cables are then as long as in the straight, unstressed arm (less the steppers' slack), so
    that they share the arm's weight.

    Parameters
    ----------
    config
        Steppers, pretension of pairs.
    cables
        As in `ArmPlant`.
    body
        The body that they move.
    weight_N : (3,)
        Weight of a payload, as a force on the tip without inertia.
    names
        Names of the motors, for faults; by default their numbers.

    """

    def __init__(
        self,
        config: PlantConfig,
        cables: Sequence[PlantCable],
        body: SoftArm,
        weight_N: Array,
        names: Sequence[str] = (),
    ) -> None:
        self._delay_s = config.stepper.delay_s
        self._body, self._weight = body, weight_N
        self._names = tuple(names) or tuple(map(str, range(motor_count(cables))))
        self._wiring = pack_wiring(config, cables)
        self._steppers = Steppers(config.stepper, motor_count(cables))
        self._wound = np.empty(len(cables))
        self._turning = False
        self._under_way: deque[tuple[float, Array]] = deque()  # commands, by time of arrival
        self._loads = Loads(np.array(weight_N, dtype=float), np.zeros(3))
        wind_cables(self._wiring, self._steppers.contraction, self._wound)
        body.settle(contraction=self._wound, tip_force=weight_N)

    @contextmanager
    def turning(self, position: ArrayLike, duration_s: float) -> Iterator[None]:
        """
        Turn the motors from outside while the plant advances by a duration [s].

        Parameters
        ----------
        position : (m,)
            Final position of the motors, as contraction before play and slack [m]; they move
            there at constant speed. The motors' limits do not apply to a motion from outside.
        duration_s
            Time by which the plant advances.

        Raises
        ------
        ValueError
            If the position has the wrong shape or is not finite, or the duration is not positive.

        """
        require_duration(duration_s)
        end = as_actuation(position, len(self._names), 'position', self._names)
        self._under_way.clear()
        self._steppers.begin_turn(end, duration_s)
        self._turning = True
        try:
            yield
        finally:
            self._turning = False
        self._steppers.end_turn(end)

    def command(self, target: ArrayLike, now_s: float, duration_s: float) -> None:
        """Command contractions (m,) [m]; they reach the motors after their delay."""
        wanted = as_actuation(target, len(self._names), 'command', self._names)
        self._under_way.append((now_s + self._delay_s, wanted))
        while self._under_way and self._under_way[0][0] <= now_s + _EARLY_S:
            self._steppers.command(self._under_way.popleft()[1])

    def hold(self, now_s: float) -> None:
        """Brake the motors at their limit and hold them where they stop; drop pending commands."""
        self._under_way.clear()
        self._steppers.hold()

    def advance(self, now_s: float, h: float, steps: int) -> None:
        """Advance motors and arm together; see `Drives`."""
        body = self._body
        status, joint = drive_arm(
            body.body,
            body.cables,
            body.threads,
            body.state,
            self._loads,
            self._steppers.parameters,
            self._steppers.state,
            self._wiring,
            self._wound,
            body.scratch,
            h,
            steps,
            self._turning,
        )
        body.check(status, joint)

    def state(self) -> ActuatorState:
        """
        Return counted position [m], velocity [m/s] and pull [N] of every motor, each (m,).

        The pull is the tension of the motor's cable, less that of its counterpart in a pair.
        """
        wiring, position = self._wiring, self._steppers.position
        pull = np.bincount(
            wiring.motor, wiring.sign * self._body.state.tension, minlength=len(position)
        )
        return ActuatorState(position, self._steppers.velocity, pull.astype(np.float64))

    def hang(self, mass_kg: float) -> None:
        """Hang a mass on the tip: its weight adds to the payload, also without inertia."""
        self._loads.tip_force[:] = self._weight + mass_kg * self._body.body.gravity

    def faults(self) -> Faults:
        """Return the possible faults: cables snap, or slip by some millimetres."""
        motor = actuator_word(self._names)
        return {
            'cable snap': InjectedFault((motor,), lambda i: self._let_out(i, _SNAPPED_M)),
            'cable slip': InjectedFault(
                (motor, ('MM', millimetres)), lambda i, length: self._let_out(i, 1e-3 * length)
            ),
        }

    def _let_out(self, motor: int, length_m: float) -> None:
        """Lengthen a motor's cable; of a pair, the one that the motor winds in."""
        ours = (self._wiring.motor == motor) & (self._wiring.sign > 0.0)
        self._wiring.offset[ours] -= length_m

    def static_equilibrium(
        self,
        contraction: ArrayLike | None = None,
        *,
        tension: ArrayLike | None = None,
        tip_force: ArrayLike = (0.0, 0.0, 0.0),
        tip_moment: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Equilibrium:
        """
        Return the equilibrium of the arm, without changing the plant.

        Parameters
        ----------
        contraction, tension : (cables,)
            Of the cables themselves, after motors, play and slack [m] or [N]: one of the two; with
            neither, the present contractions.
        tip_force, tip_moment : (3,)
            Dead load on the tip in addition to the payload, base frame [N], [N m].

        """
        return self._body.copy().settle(
            contraction=contraction,
            tension=tension,
            tip_force=self._loads.tip_force + np.asarray(tip_force, dtype=float),
            tip_moment=tip_moment,
        )
