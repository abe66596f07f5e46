"""Base class of controllers: configuration velocity, within bounds, from state and reference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Posture


class AnswerError(ValueError):
    """The answer of a part of the control loop cannot be followed; the message contains it."""


@dataclass(frozen=True)
class ControlState:
    """
    State of the arm that a controller uses.

    Attributes
    ----------
    command : Posture
        Commanded posture, by the model.
    jacobian : (3, dof)
        Derivative of the tip position with respect to the configuration [m per unit], at the
        measured configuration, or at the commanded one if none is measured.
    scale : (dof,)
        Large value of each coordinate, in its unit (`ArmModel.configuration_scale`).

    """

    command: Posture
    jacobian: Array
    scale: Array


@dataclass(frozen=True)
class TipReference:
    """
    Motion that the tip is to follow.

    Attributes
    ----------
    velocity : (3,)
        Velocity of the reference [m/s], base frame.
    error : (3,)
        From the tip to the reference [m]; measured tip (closed loop) or model tip (open loop).
    drift : (3,)
        Velocity of the tip [m/s] that the Jacobian does not predict from the command: hysteresis
        and lag. The controller subtracts it from the tip velocity it asks of the Jacobian.

    """

    velocity: Array
    error: Array
    drift: Array = field(default_factory=lambda: np.zeros(3))


@dataclass(frozen=True)
class VelocityBounds:
    """
    All limits of the arm, as bounds on the configuration velocity over one period.

    low <= rows @ (velocity / scale) <= high, with the scale of `ControlState`. Rows of actuators
    (range, speed, acceleration) are in units of the actuator's largest speed. Rows of the
    configuration (range, bending) are in the configuration's own units.

    Attributes
    ----------
    rows : (r, dof)
    low, high : (r,)

    """

    rows: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Motion:
    """
    A controller's answer.

    Attributes
    ----------
    velocity : (dof,)
        Configuration velocity within the bounds, in configuration units per second.
    wanted : (3,)
        Tip velocity [m/s] that the controller wants, before bounds and singular poses reduce it.
    bounded : bool
        Whether the velocity lies on a bound.

    """

    velocity: Array
    wanted: Array
    bounded: bool


@dataclass(frozen=True)
class Outcome:
    """
    How much of the wanted tip velocity a motion achieved.

    Attributes
    ----------
    shortfall_m_s : float
        |wanted - J velocity| [m/s]: the part lost to limits or a singular pose.
    limited : bool
        Whether a limit caused a noticeable part of the shortfall.
    follows : bool
        Whether most of the wanted velocity is achieved.

    """

    shortfall_m_s: float
    limited: bool
    follows: bool


class Controller(ABC):
    """
    Computes, once a period, a configuration velocity within bounds from state and reference.

    The tracker calls it, integrates the velocity and guards the limits. A controller without
    memory implements `velocity` alone.
    """

    @abstractmethod
    def velocity(
        self,
        state: ControlState,
        reference: TipReference,
        bounds: VelocityBounds,
        period_s: float,
    ) -> Motion:
        """Return the motion for the next period [s]."""

    def reset(self) -> None:  # noqa: B027 (nothing to forget, unless a controller says so)
        """Forget everything learnt, for a fresh start of the arm."""

    def on_outcome(self, outcome: Outcome) -> None:  # noqa: B027
        """Take the outcome of the last motion."""
