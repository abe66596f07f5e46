"""The tracker: turns what a controller asks for into the next command, within every limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
from softarm_ros.geometry.answers import described, has_finite_floats, has_floats, misfit, numbers
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture
from softarm_ros.models.memory import ArmMemory

_MAX_CORRECTIONS = 4  # of a step, for the curvature of the mechanics
_MAX_SHORTENINGS = 12
_JUST_UNDER = 1.0 - 1e-6
_ROUNDING = 1e-6  # of velocities
_DRAWN_IN = 1e-5  # of an actuator's speed: how far bounds of a solver are exceeded
_HELD_BACK = 0.02  # share of the wanted velocity that a limit must take away to be reported
_FOLLOWS = 0.2  # share of the wanted velocity that may be missing where it is still followed


@dataclass(frozen=True)
class TrackerStep:
    """
    Result of one tracker period.

    Attributes
    ----------
    configuration : (dof,)
        New configuration command.
    actuation : (m,)
        Actuator command that belongs to it, pretension included.
    velocity_shortfall : float
        |v_wanted - J qdot| [m/s]: what limits or a singular pose took away.
    limited : bool
        An actuator or bending limit took some of the velocity away.

    """

    configuration: Array
    actuation: Array
    velocity_shortfall: float
    limited: bool


class Tracker:
    """
    Holds the configuration command and moves it as the controller asks.

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    controller : Controller
        From state and reference to a configuration velocity.
    limits : ActuatorLimits
        Of the actuator command, pretension included.
    configuration_limits : ConfigurationLimits
        Of the configuration command.
    pretension : Pretension
        Wound up while the command moves; the controller has what it leaves of the limits.
    memory : ArmMemory, optional
        Hysteresis and lag, stepped with every command: the tip is where the arm is now, and its
        drift is taken out of what the controller asks for.

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
        self.room = self.pretension.room(limits)  # of what the model asks for
        self._winding_room = self.pretension.room(limits, winding=True)
        self._winding_s = 0.0
        self.memory = memory
        self._scale = np.asarray(model.configuration_scale, dtype=float)
        self.reset(model.rest_configuration)

    def reset(self, configuration: Array) -> None:
        """Start at rest from a configuration (dof,), arm and controller without memory."""
        self._place(configuration)
        if self.memory is not None:
            self._remembered = self.memory.begun(self._posture.actuation)
            self._now = self.memory.now(self.model, self._posture, self._remembered)
            self._drift = np.zeros(3)

    def _place(self, configuration: Array) -> None:
        posture = self._held_by(self.model.posture_of(configuration))
        self._posture = posture  # a configuration out of reach is refused
        self.halt()
        self._seen: Posture | None = None  # where the arm was measured last
        self.controller.reset()

    def move_to(self, configuration: Array, period_s: float) -> None:
        """Follow a planned move for one period: as `reset`, with pretension wound on."""
        self._place(configuration)
        self._remember(period_s)
        self._winding_s += period_s

    def stand(self, period_s: float) -> None:
        """Keep the command for one period, with pretension wound on."""
        self.halt()
        self._remember(period_s)
        self._winding_s += period_s

    def _remember(self, period_s: float, before: Posture | None = None) -> None:
        """Step the memory with the command; its drift is that of a motion from `before`."""
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
        """Let time pass without a command: held, or cycles were lost."""
        self._remember(elapsed_s)

    def halt(self) -> None:
        """Forget velocity, keep position and memory: the arm has been stopped elsewhere."""
        self._rate = np.zeros(len(self.limits.names))

    def tip(self) -> Array:
        """Return the tip position (3,) [m] that the model gives for the commands so far."""
        return self._of_model(self.posture, 'tip', (3,)).copy()

    @property
    def posture(self) -> Posture:
        """The model at the present command; with a memory, its tips are where they are now."""
        return self._posture if self.memory is None else self._now

    @property
    def settled(self) -> Posture:
        """The model at the present command, as if it had stood for long."""
        return self._posture

    @property
    def configuration(self) -> Array:
        """The present configuration command (dof,)."""
        return self._posture.configuration

    @property
    def actuation(self) -> Array:
        """Actuator command (m,) for the present configuration, pretension included."""
        return self._posture.actuation + self.pretension.wound(self._winding_s)

    def limits_reached(self) -> list[str]:
        """Return the limits of actuators and bends that the command is at, in words."""
        posture, names = self._posture, self.model.configuration_names
        return [
            *self.room.reached(posture.actuation, self._rate),
            *self.configuration_limits.reached(posture.configuration, names),
        ]

    def measured(self, position: Array) -> Array:
        """Return measured actuators (m,) as the model has them: no pretension, within limits."""
        actuation = position - self.pretension.wound(self._winding_s)
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
            Measured configuration, where the Jacobian is taken; the commanded one without it.

        Raises
        ------
        AnswerError
            If the controller or the model returns anything but finite numbers, as many as it has.

        """
        winding = self._winding_s < self.pretension.duration_s
        room = self._winding_room if winding else self.room
        state = ControlState(self._posture, self._jacobian(measured), self._scale)
        bounds = self._bounds(room, period_s)
        reference = TipReference(velocity, error)
        if self.memory is not None:
            reference = TipReference(velocity, error, self._taken_out(velocity))
        motion = self.controller.velocity(state, reference, bounds, period_s)
        q_rate = self._checked(motion)
        posture = self._advance(q_rate, bounds, room, period_s)
        done = (posture.configuration - self._posture.configuration) / period_s
        wanted = _size(motion.wanted)
        shortfall = _size(motion.wanted - state.jacobian @ done)
        # Where actuators outnumber the tip's freedoms, others take over from one at its bound.
        limited = motion.bounded or self._differ(done, q_rate)
        limited = limited and shortfall > _HELD_BACK * wanted
        self.controller.on_outcome(Outcome(shortfall, limited, shortfall <= _FOLLOWS * wanted))
        self._rate = (posture.actuation - self._posture.actuation) / period_s
        before, self._posture = self._posture, posture
        self._remember(period_s, before)
        self._winding_s += period_s
        return TrackerStep(self.configuration, self.actuation, shortfall, limited)

    def _taken_out(self, velocity: Array) -> Array:
        """
        Return the drift (3,) of the last period, as far as it is made up for.

        It follows from the motion that makes up for it, so that steps of the loop are steps of a
        fixed-point search, which converges where hysteresis takes away less than all of a motion.
        More than the reference's velocity is left to the feedback: at rest all of it.
        """
        size = _size(self._drift)
        most = _size(velocity)
        return self._drift * (most / size) if size > most else self._drift

    def _jacobian(self, measured: Array | None) -> Array:
        """Return the tip's Jacobian (3, dof) where the arm is, as far as that is known."""
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
        """Return all limits as bounds on the configuration velocity of this period."""
        posture, shape = self._posture, (len(self._rate), len(self._scale))
        pulls = self._of_model(posture, 'actuation_jacobian', shape)
        low, high = room.rate_bounds(posture.actuation, self._rate, period_s)
        rows, row_low, row_high = self.configuration_limits.velocity_bounds(
            posture.configuration, period_s
        )
        # For a view of an array the kernel would be compiled once more, in mid-motion.
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

    def _checked(self, motion: Motion) -> Array:
        """Return the velocity (dof,) of a motion, which is what a motion has to be."""
        named = f'controller {type(self.controller).__name__}'
        if not isinstance(motion, Motion):
            raise AnswerError(f'{named} returned {described(motion)}; expected a Motion')
        for name, shape in (('wanted', (3,)), ('velocity', self._scale.shape)):
            if not has_finite_floats(getattr(motion, name), shape):
                text = misfit(named, name, getattr(motion, name), f'{numbers(shape)} finite')
                raise AnswerError(text)
        return motion.velocity

    def _held_by(self, posture: Posture) -> Posture:
        """Return a posture of which configuration and actuation are what they have to be."""
        self._of_model(posture, 'configuration', self._scale.shape)
        self._of_model(posture, 'actuation', (len(self.limits.names),))
        return posture

    def _of_model(self, posture: Posture, name: str, shape: tuple[int, ...]) -> Array:
        """Return an array of a posture, which is what it has to be; read where it is needed."""
        value = getattr(posture, name, None)
        if has_finite_floats(value, shape):
            return np.asarray(value)
        whose = f'model {self.model.name} ({type(self.model).__name__})'
        raise AnswerError(misfit(whose, name, value, f'{numbers(shape)} finite'))

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

        A step moves them otherwise than the derivative says, by its curvature. The bounds are
        moved by that much, and the nearest velocity within them is taken, until what the
        actuators really do keeps them.
        """
        m = len(self._rate)
        asked = of_order_one(q_rate, self._scale, bounds.rows, m)
        velocity, bend = asked, np.zeros(m)
        for _ in range(_MAX_CORRECTIONS):
            moved = _moved(bounds, bend)
            velocity = asked
            if not _within(moved.rows @ asked, moved):
                found = within_bounds(np.eye(len(asked)), -asked, moved)
                velocity = asked if found is None else found
            posture = self._integrated(velocity, period_s)
            rate = self._rate_to(posture, room, period_s)
            if _within(rate, bounds) and room.hold(posture.actuation):
                return posture
            bend = rate - bounds.rows[:m] @ velocity
        return self._shortened(velocity, room, period_s)

    def _rate_to(self, posture: Posture, room: ActuatorLimits, period_s: float) -> Array:
        """Return the actuators' rates (m,) that lead to a posture, in shares of their limits."""
        change = posture.actuation - self._posture.actuation
        return np.asarray(change / (period_s * room.max_speed))

    def _integrated(self, velocity: Array, period_s: float) -> Posture:
        """Return where a velocity (dof,), in units of the scales, leads within a period."""
        present = self._posture
        return self._at(present.configuration + period_s * self._scale * velocity, present)

    def _at(self, configuration: Array, near: Posture) -> Posture:
        """Return the posture at a configuration (dof,), or where its limits leave it."""
        clipped = self.configuration_limits.clipped(configuration)
        return self._held_by(self.model.posture_of(clipped, near))

    def _shortened(self, velocity: Array, room: ActuatorLimits, period_s: float) -> Posture:
        """Return where the longest part of a step leads that respects range and speed."""
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
    """Return whether values of the first rows (k,) are within their bounds."""
    return lies_within(values, bounds.low, bounds.high, np.full(len(values), _ROUNDING))


def _moved(bounds: VelocityBounds, bend: Array) -> VelocityBounds:
    """Return bounds less what actuators (m,) do besides, drawn in by what a solver rounds."""
    return VelocityBounds(bounds.rows, *drawn_in(bounds.low, bounds.high, bend, _DRAWN_IN))
