"""The tracker: turns the controller's velocity into the next command, within every limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softarm_ros.control.bound_kernels import (
    drawn_in,
    joined_bounds,
    lies_within,
    of_order_one,
)
from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.controller import (
    AnswerError,
    Controller,
    ControlState,
    Motion,
    Outcome,
    TipReference,
    VelocityBounds,
)
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.pretension import Pretension
from softarm_ros.control.quadratic import within_bounds
from softarm_ros.control.winding import Winding
from softarm_ros.geometry.answers import described, has_finite_floats, has_floats, misfit, numbers
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture, described_model
from softarm_ros.models.memory import ArmMemory

_MAX_CORRECTIONS = 4  # of a step, for the curvature of the mechanics
_MAX_SHORTENINGS = 12
_JUST_UNDER = 1.0 - 1e-6
_ROUNDING = 1e-6  # rounding error of velocities
_DRAWN_IN = 1e-5  # margin, as a share of an actuator's speed, for the solver's tolerance
_BRAKES_WITH = 0.95  # share of the largest acceleration; curvature may need the rest
_HELD_BACK = 0.02  # a limit is reported if it removes more than this share of the wanted velocity
_FOLLOWS = 0.2  # share of the wanted velocity that may be missing while the arm still follows


@dataclass(frozen=True)
class TrackerStep:
    """
    Result of one tracker period.

    Attributes
    ----------
    configuration : (dof,)
        New configuration command.
    actuation : (m,)
        Actuator command for that configuration, pretension included.
    velocity_shortfall : float
        |v_wanted - J qdot| [m/s]: the part lost to limits or a singular pose.
    limited : bool
        Whether an actuator or bending limit caused part of the shortfall.

    """

    configuration: Array
    actuation: Array
    velocity_shortfall: float
    limited: bool


class Tracker:
    """
    Holds the configuration command and advances it by the controller's velocity.

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    controller : Controller
        Computes a configuration velocity from state and reference.
    limits : ActuatorLimits
        Limits of the actuator command, pretension included.
    configuration_limits : ConfigurationLimits
        Limits of the configuration command.
    pretension : Pretension
        Wound up while the command moves; it leaves the rest of the limits to the controller.
    memory : ArmMemory, optional
        Hysteresis and lag, stepped with every command. With it, `posture` is where the arm is now,
        and the controller subtracts the drift from the wanted velocity.

    """

    def __init__(
        self,
        model: ArmModel,
        controller: Controller,
        limits: ActuatorLimits,
        configuration_limits: ConfigurationLimits,
        pretension: Pretension | None = None,
        memory: ArmMemory | None = None,
    ) -> None:
        self.model = model
        self.controller = controller
        self.limits = limits
        self.configuration_limits = configuration_limits
        self.pretension = Pretension() if pretension is None else pretension
        self.room = self.pretension.room(limits)  # limits of the model's actuation
        self._winding_room = self.pretension.room(limits, winding=True)
        self._winding = Winding(self.pretension)
        self.memory = memory
        self._scale = np.asarray(model.configuration_scale, dtype=float)
        self.reset(model.rest_configuration)

    def reset(self, configuration: Array) -> None:
        """Start at rest at a configuration (dof,), with memory and controller reset."""
        self._place(configuration)
        self._winding.stop()
        if self.memory is not None:
            self._remembered = self.memory.begun(self._posture.actuation)
            self._now = self.memory.now(self.model, self._posture, self._remembered)
            self._drift = np.zeros(3)

    def _place(self, configuration: Array) -> None:
        posture = self._held_by(self.model.posture_of(configuration))
        self._posture = posture  # kept only if the configuration is within reach
        self._forget_rate()
        self._seen: Posture | None = None  # posture at the last measured configuration
        self.controller.reset()

    def move_to(self, configuration: Array, period_s: float) -> None:
        """Follow a planned move for one period: as `reset`, but keep winding the pretension."""
        self._place(configuration)
        self._remember(period_s)
        self._winding.advance(period_s)

    def stand(self, period_s: float) -> None:
        """Keep the command for one period, and keep winding the pretension."""
        self._forget_rate()
        self._remember(period_s)
        self._winding.advance(period_s)

    def brake(self, period_s: float) -> bool:
        """Slow the command for one period, within the accelerations; return whether it stands."""
        room = self._present_room
        most = _BRAKES_WITH * room.max_acceleration * period_s
        rate = np.abs(self._rate)
        fast = rate > most
        if fast.any():
            velocity = np.max(1.0 - most[fast] / rate[fast]) * self._velocity
            posture = self._at(self._posture.configuration + period_s * velocity, self._posture)
            if room.hold(posture.actuation):
                self._go_to(posture, period_s)
                return False
        self.stand(period_s)
        return True

    @property
    def standing(self) -> bool:
        """Whether the command did not move in the last period."""
        return not self._rate.any()

    def _go_to(self, posture: Posture, period_s: float) -> None:
        """Make a posture the command, one period after the last one."""
        before, self._posture = self._posture, posture
        self._velocity = (posture.configuration - before.configuration) / period_s
        self._rate = (posture.actuation - before.actuation) / period_s
        self._remember(period_s, before)
        self._winding.advance(period_s)

    def _remember(self, period_s: float, before: Posture | None = None) -> None:
        """Step the memory with the command; set the drift of the motion from `before`."""
        if self.memory is None or period_s <= 0.0:
            return
        self._remembered = self.memory.stepped(self._remembered, self._posture.actuation, period_s)
        was, self._now = self._now, self.memory.now(self.model, self._posture, self._remembered)
        if before is None:
            self._drift = np.zeros(3)
            return
        lag_before, lag = was.tip - before.tip, self._now.tip - self._posture.tip
        self._drift = (lag - lag_before) / period_s

    def wait(self, elapsed_s: float) -> None:
        """Let time pass without a command: the arm was held, or cycles were lost."""
        self._remember(elapsed_s)

    def halt(self) -> None:
        """Forget the velocity; keep position and memory: the arm was stopped elsewhere."""
        self._forget_rate()
        self._winding.stop()

    def _forget_rate(self) -> None:
        self._rate = np.zeros(len(self.limits.names))
        self._velocity = np.zeros(len(self._scale))

    def tip(self) -> Array:
        """Return the tip position (3,) [m] that the model gives for the commands so far."""
        return self._of_model(self.posture, 'tip', (3,)).copy()

    @property
    def posture(self) -> Posture:
        """The model's posture at the present command; with a memory, its tips lag and drift."""
        return self._posture if self.memory is None else self._now

    @property
    def settled(self) -> Posture:
        """The model's posture at the present command, as if it had been held for long."""
        return self._posture

    @property
    def configuration(self) -> Array:
        """The present configuration command (dof,)."""
        return self._posture.configuration

    @property
    def actuation(self) -> Array:
        """Actuator command (m,) for the present configuration, pretension included."""
        return self._posture.actuation + self._winding.wound

    def limits_reached(self) -> list[str]:
        """Return a text for each actuator or configuration limit that the command has reached."""
        posture, names = self._posture, self.model.configuration_names
        return [
            *self.room.reached(posture.actuation, self._rate),
            *self.configuration_limits.reached(posture.configuration, names),
        ]

    def measured(self, position: Array) -> Array:
        """Return measured actuators (m,) for the model: without pretension, within limits."""
        actuation = position - self._winding.wound
        low, high = self.room.position_min, self.room.position_max
        return np.minimum(np.maximum(actuation, low), high)

    def step(
        self, velocity: Array, error: Array, period_s: float, measured: Array | None = None
    ) -> TrackerStep:
        """
        Advance the command by one period.

        Parameters
        ----------
        velocity : (3,)
            Feed-forward v_d [m/s], base frame.
        error : (3,)
            e = p_d - p [m]; p measured (closed loop) or from the model (open loop).
        period_s : float
            Time since the last step [s].
        measured : (dof,), optional
            Measured configuration, at which the Jacobian is taken; if None, the commanded one.

        Raises
        ------
        AnswerError
            If the controller or the model returns an array that is not finite or of wrong shape.

        """
        room = self._present_room
        state = ControlState(self._posture, self._jacobian(measured), self._scale)
        bounds = self._bounds(room, period_s)
        reference = TipReference(velocity, error)
        if self.memory is not None:
            reference = TipReference(velocity, error, self._taken_out(velocity))
        motion = self._asked(state, reference, bounds, period_s)
        posture = self._advance(motion.velocity, bounds, room, period_s)
        done = (posture.configuration - self._posture.configuration) / period_s
        wanted = _size(motion.wanted)
        shortfall = _size(motion.wanted - state.jacobian @ done)
        # With more actuators than the tip needs, others can replace one at its bound.
        limited = motion.bounded or self._differ(done, motion.velocity)
        limited = limited and shortfall > _HELD_BACK * wanted
        self.controller.on_outcome(Outcome(shortfall, limited, shortfall <= _FOLLOWS * wanted))
        self._go_to(posture, period_s)
        return TrackerStep(self.configuration, self.actuation, shortfall, limited)

    @property
    def _present_room(self) -> ActuatorLimits:
        """Limits of the model's actuation, less what the winding of the pretension uses."""
        return self.room if self._winding.done else self._winding_room

    def _taken_out(self, velocity: Array) -> Array:
        """
        Return the part of the last period's drift (3,) that the controller compensates.

        The drift depends on the motion that compensates it, so the periods of the loop form a
        fixed-point iteration. It converges if hysteresis removes less than all of a motion. Drift
        faster than the reference is left to the feedback; at rest, all of it.
        """
        size = _size(self._drift)
        most = _size(velocity)
        return self._drift * (most / size) if size > most else self._drift

    def _jacobian(self, measured: Array | None) -> Array:
        """Return the tip's Jacobian (3, dof) at the measured configuration, else the commanded."""
        dof = len(self._scale)
        if measured is None:
            return self._of_model(self._posture, 'tip_jacobian', (3, dof))
        if not has_floats(measured, (dof,)):
            raise AnswerError(
                f'estimated configuration is {described(measured)}; expected {dof} numbers, '
                'float64; the estimator is wrong'
            )
        self._seen = self.model.posture_of(measured, self._seen or self._posture)
        return self._of_model(self._seen, 'tip_jacobian', (3, dof))

    def _bounds(self, room: ActuatorLimits, period_s: float) -> VelocityBounds:
        """Return all limits as bounds on the configuration velocity over this period."""
        posture, shape = self._posture, (len(self._rate), len(self._scale))
        pulls = self._of_model(posture, 'actuation_jacobian', shape)
        low, high = room.rate_bounds(posture.actuation, self._rate, period_s)
        rows, row_low, row_high = self.configuration_limits.velocity_bounds(
            posture.configuration, period_s
        )
        # For a view of an array, the kernel would be compiled again, in mid-motion.
        return VelocityBounds(
            *joined_bounds(
                np.ascontiguousarray(pulls),
                low,
                high,
                rows,
                row_low,
                row_high,
                self._scale,
                room.max_speed,
                room.max_acceleration,
                period_s,
            )
        )

    def _asked(
        self,
        state: ControlState,
        reference: TipReference,
        bounds: VelocityBounds,
        period_s: float,
    ) -> Motion:
        """
        Return the motion that the controller asks for, checked.

        The controller gets the arrays that keep the arm within its limits. If it changes one, the
        old values are restored, as the command would move beyond the limits.
        """
        command = state.command
        lent = {
            'state.command.configuration': command.configuration,
            'state.command.actuation': command.actuation,
            'state.jacobian': state.jacobian,
            'bounds.rows': bounds.rows,
            'bounds.low': bounds.low,
            'bounds.high': bounds.high,
        }
        before = [array.tobytes() for array in lent.values()]  # compared faster than arrays
        changed = ''
        try:
            motion = self.controller.velocity(state, reference, bounds, period_s)
        finally:
            for (name, array), kept in zip(lent.items(), before, strict=True):
                if array.tobytes() != kept:
                    array[...] = np.frombuffer(kept, array.dtype).reshape(array.shape)
                    changed = name
        if changed:
            raise AnswerError(
                f'controller {type(self.controller).__name__} changed {changed}, an array that it '
                'is given; expected the same values afterwards: copy it first'
            )
        return self._checked(motion)

    def _checked(self, motion: Motion) -> Motion:
        """Return a motion after checking its type and what it holds."""
        named = f'controller {type(self.controller).__name__}'
        if not isinstance(motion, Motion):
            raise AnswerError(f'{named} returned {described(motion)}; expected a Motion')
        for name, shape in (('wanted', (3,)), ('velocity', self._scale.shape)):
            if not has_finite_floats(getattr(motion, name), shape):
                text = misfit(named, name, getattr(motion, name), f'{numbers(shape)} finite')
                raise AnswerError(text)
        if not isinstance(motion.bounded, (bool, np.bool_)):
            found = described(motion.bounded)
            raise AnswerError(f'{named} returned bounded {found}; expected true or false')
        return motion

    def _held_by(self, posture: Posture) -> Posture:
        """Return a posture after checking its configuration and actuation."""
        self._of_model(posture, 'configuration', self._scale.shape)
        self._of_model(posture, 'actuation', (len(self.limits.names),))
        return posture

    def _of_model(self, posture: Posture, name: str, shape: tuple[int, ...]) -> Array:
        """Return an array of a posture, checked; called only for arrays that are used."""
        value = getattr(posture, name, None)
        if has_finite_floats(value, shape):
            return np.asarray(value)
        raise AnswerError(
            misfit(described_model(self.model), name, value, f'{numbers(shape)} finite')
        )

    def _differ(self, done: Array, asked: Array) -> bool:
        """Return whether velocities (dof,) differ by more than rounding."""
        asked_for = _size(asked / self._scale)
        away = _size((done - asked) / self._scale)
        return away > _ROUNDING * max(asked_for, 1e-3)

    def _advance(
        self, q_rate: Array, bounds: VelocityBounds, room: ActuatorLimits, period_s: float
    ) -> Posture:
        """
        Integrate (eq. 37) within every limit of the actuators.

        Curvature makes a step move the actuators differently than the derivative predicts. The
        bounds are shifted by the difference and the nearest velocity within them is taken, until
        the actual motion of the actuators stays within their bounds.
        """
        m = len(self._rate)
        asked = of_order_one(q_rate, self._scale, bounds.rows, m)
        velocity, bend = asked, np.zeros(m)
        for _ in range(_MAX_CORRECTIONS):
            moved = _moved(bounds, bend)
            velocity = asked
            if not _within(moved.rows @ asked, moved):
                found = within_bounds(_identity(len(asked)), -asked, moved)
                velocity = asked if found is None else found
            posture = self._integrated(velocity, period_s)
            rate = self._rate_to(posture, room, period_s)
            if _within(rate, bounds) and room.hold(posture.actuation):
                return posture
            bend = rate - bounds.rows[:m] @ velocity
        return self._shortened(velocity, room, period_s)

    def _rate_to(self, posture: Posture, room: ActuatorLimits, period_s: float) -> Array:
        """Return the actuators' rates (m,) that lead to a posture, as shares of their limits."""
        change = posture.actuation - self._posture.actuation
        return np.asarray(change / (period_s * room.max_speed))

    def _integrated(self, velocity: Array, period_s: float) -> Posture:
        """Return the posture after one period at a velocity (dof,) in units of the scales."""
        present = self._posture
        return self._at(present.configuration + period_s * self._scale * velocity, present)

    def _at(self, configuration: Array, near: Posture) -> Posture:
        """Return the posture at a configuration (dof,), clipped to its limits."""
        clipped = self.configuration_limits.clipped(configuration)
        return self._held_by(self.model.posture_of(clipped, near))

    def _shortened(self, velocity: Array, room: ActuatorLimits, period_s: float) -> Posture:
        """Return the posture after the longest part of a step within range and speed."""
        reach = room.max_speed * period_s * (1.0 + _ROUNDING) + 1e-3 * room.rounding
        present = self._posture
        share = 1.0
        for _ in range(_MAX_SHORTENINGS):
            posture = self._integrated(share * velocity, period_s)
            if not room.hold(posture.actuation):
                # Tangential to a limit: curvature alone leads outside. Slide along it.
                posture = self._pulled_inside(posture)
            change = np.abs(posture.actuation - present.actuation)
            inside, excess = room.hold(posture.actuation), float(np.max(change / reach))
            if inside and excess <= 1.0:
                return posture
            # Curvature makes a step a little too long; halving it would be a jolt.
            share *= max(0.5, _JUST_UNDER / excess) if inside else 0.5
        return present

    def _pulled_inside(self, posture: Posture) -> Posture:
        """Return the nearest posture whose actuation is within range, to first order."""
        low, high = self.room.position_min, self.room.position_max
        excess = posture.actuation - np.clip(posture.actuation, low, high)
        A = posture.actuation_jacobian * self._scale
        change = np.linalg.lstsq(A, excess, rcond=None)[0] * self._scale
        return self._at(posture.configuration - change, posture)


def _size(vector: Array) -> float:
    return math.sqrt(vector @ vector)


def _within(values: Array, bounds: VelocityBounds) -> bool:
    """Return whether values (k,) of the first k rows are within their bounds."""
    return lies_within(values, bounds.low, bounds.high, _slack(len(values)))


@lru_cache
def _identity(n: int) -> Array:
    return np.eye(n)


@lru_cache
def _slack(n: int) -> Array:
    return np.full(n, _ROUNDING)


def _moved(bounds: VelocityBounds, bend: Array) -> VelocityBounds:
    """Return bounds less the motion `bend` (m,), drawn in by the solver's tolerance."""
    return VelocityBounds(bounds.rows, *drawn_in(bounds.low, bounds.high, bend, _DRAWN_IN))
