"""What a controller is: from state and reference to a configuration velocity, limits inside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Posture


class AnswerError(ValueError):
    """What a part of the loop has answered cannot be followed; the message has the answer."""


@dataclass(frozen=True)
class ControlState:
    """
    Where the arm is, as far as it is known.

    Attributes
    ----------
    command : Posture
        What is commanded, by the model.
    jacobian : (3, dof)
        Derivative of the tip by the configuration [m per unit]: at the measured configuration,
        at the commanded one where none is measured.
    scale : (dof,)
        Magnitude that is large for each coordinate, in its unit (`ArmModel.configuration_scale`).

    """

    command: Posture
    jacobian: Array
    scale: Array


@dataclass(frozen=True)
class TipReference:
    """
    What the tip is to do.

    Attributes
    ----------
    velocity : (3,)
        Of the reference [m/s], base frame.
    error : (3,)
        From the tip to the reference [m]; tip measured (closed loop) or by the model (open loop).
    drift : (3,)
        Velocity of the tip [m/s] besides what the Jacobian makes of the command: hysteresis and
        lag. To be taken away from what is asked of the Jacobian.

    """

    velocity: Array
    error: Array
    drift: Array = field(default_factory=lambda: np.zeros(3))


@dataclass(frozen=True)
class VelocityBounds:
    """
    Every limit of the arm as bounds on the configuration velocity of one period.

    low <= rows @ (velocity / scale) <= high, with the scale of `ControlState`. Rows of actuators
    (range, speed, acceleration) are in units of the actuator's largest speed, those of the
    configuration (range, bending) in its own.

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
        Of the configuration, in its units per second, within the bounds.
    wanted : (3,)
        Tip velocity [m/s] it would bring about without bounds and singular poses.
    bounded : bool
        Some bound is reached.

    """

    velocity: Array
    wanted: Array
    bounded: bool


@dataclass(frozen=True)
class Outcome:
    """
    What came of a motion.

    Attributes
    ----------
    shortfall_m_s : float
        |wanted - J velocity| [m/s]: what limits or a singular pose took away.
    limited : bool
        A limit took a noticeable share of it away.
    follows : bool
        Most of it is left.

    """

    shortfall_m_s: float
    limited: bool
    follows: bool


class Controller(ABC):
    """
    From state and reference to a configuration velocity within bounds, once a period.

    The tracker around it reads, integrates and guards the limits; a controller that keeps nothing
    between periods has `velocity` alone.
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
        """Forget what was learnt: the arm begins anew."""

    def on_outcome(self, outcome: Outcome) -> None:  # noqa: B027
        """Take what came of the last motion."""
