"""
What an arm remembers of the commands it was given, carried beside a posture by who commands it.

A model keeps no memory: its posture is that of a command that has stood for long. A loop keeps a
`Remembered`, steps it with each command that it sends, and asks where the arm is *now*: hysteresis
and lag of the actuators move the configuration, a residual moves the section tips.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.arm_model import ArmModel, Posture
from softarm_ros.models.command_features import FeatureMemory
from softarm_ros.models.hysteresis import Hysteresis
from softarm_ros.models.residual import Residual, corrected

_RIDGE = 1e-9  # of the mean square, for directions that no actuator moves


@dataclass(frozen=True)
class Remembered:
    """The states of hysteresis and residual; None of what the arm has not."""

    hysteresis: Array | None
    residual: FeatureMemory | None


@dataclass(frozen=True)
class PostureNow:
    """
    A `Posture` of a command, with the tips where the arm is now.

    Attributes
    ----------
    back : (dof,)
        By how much the configuration lies behind the command.
    errors : (sections, 6), optional
        Of the tips besides, [m] and [rad].

    """

    model: ArmModel
    settled: Posture
    back: Array | None
    errors: Array | None

    @property
    def configuration(self) -> Array:
        """The commanded configuration (dof,)."""
        return self.settled.configuration

    @cached_property
    def tip(self) -> Array:
        """Tip position of now (3,) [m], to first order in what actuators lack."""
        tip = self.settled.tip
        if self.back is not None:
            tip = tip - self.settled.tip_jacobian @ self.back
        return tip if self.errors is None else tip + self.errors[-1, :3]

    @cached_property
    def section_tips(self) -> Array:
        """Poses of all section tips of now (sections, 4, 4) [m]; a posture more, if asked for."""
        place = self.settled
        if self.back is not None:
            place = self.model.posture_of(place.configuration - self.back, place)
        return (
            place.section_tips
            if self.errors is None
            else corrected(place.section_tips, self.errors)
        )

    @property
    def tip_jacobian(self) -> Array:
        """Of a command that stands for long (3, dof)."""
        return self.settled.tip_jacobian

    @property
    def actuation(self) -> Array:
        """The command (m,)."""
        return self.settled.actuation

    @property
    def actuation_jacobian(self) -> Array:
        """Derivative of the command by the configuration (m, dof)."""
        return self.settled.actuation_jacobian

    @property
    def preferred(self) -> Array:
        """As the model prefers (dof,)."""
        return self.settled.preferred


@dataclass(frozen=True)
class ArmMemory:
    """Hysteresis of the actuators and a residual whose features remember; pure functions."""

    hysteresis: Hysteresis | None = None
    residual: Residual | None = None

    def begun(self, command: Array) -> Remembered:
        """Return the memory of an arm that went straight from rest to a command (m,)."""
        return Remembered(
            None if self.hysteresis is None else self.hysteresis.begun(command),
            None if self.residual is None else self.residual.begun(command),
        )

    def stepped(self, before: Remembered, command: Array, elapsed_s: float) -> Remembered:
        """Return the memory after a command (m,) was in effect for a time [s]."""
        h, r = self.hysteresis, self.residual
        return Remembered(
            None
            if h is None or before.hysteresis is None
            else h.stepped(before.hysteresis, command, elapsed_s),
            None
            if r is None or before.residual is None
            else r.stepped(before.residual, command, elapsed_s),
        )

    def now(self, model: ArmModel, posture: Posture, memory: Remembered) -> Posture:
        """
        Return the posture with tips where the arm is now.

        To first order in what the actuators lack: the nearest configuration that they hold then.
        """
        back = errors = None
        if self.hysteresis is not None and memory.hysteresis is not None:
            lacking = self.hysteresis.lacking_now(memory.hysteresis, posture.actuation)
            # For a view of an array the kernel would be compiled once more, in mid-motion.
            jacobian = np.ascontiguousarray(posture.actuation_jacobian)
            back = least_move(jacobian, model.configuration_scale, lacking)
        if self.residual is not None and memory.residual is not None:
            errors = self.residual.beyond_settled(memory.residual, posture.actuation)
        return PostureNow(model, posture, back, errors)


@kernel
def least_move(jacobian: Array, scale: Array, actuation: Array) -> Array:
    """
    Return the configuration change (dof,) that makes nearest a change of actuation (m,).

    By normal equations in units of the scales, in which they are well posed.
    """
    m, dof = jacobian.shape
    gram, right = np.zeros((dof, dof)), np.zeros(dof)
    for i in range(dof):
        for k in range(m):
            right[i] += jacobian[k, i] * scale[i] * actuation[k]
        for j in range(dof):
            for k in range(m):
                gram[i, j] += jacobian[k, i] * scale[i] * jacobian[k, j] * scale[j]
    trace = 0.0
    for i in range(dof):
        trace += gram[i, i]
    for i in range(dof):
        gram[i, i] += _RIDGE * trace
    found: Array = scale * np.linalg.solve(gram, right)
    return found
