"""
Memory of past commands, kept by the control loop beside a posture.

A model keeps no memory: its posture is that of a command held for long. A loop keeps a
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

_RIDGE = 1e-9  # of the trace, for directions that no actuator moves


@dataclass(frozen=True)
class Remembered:
    """The states of hysteresis and residual; None for the one an arm does not have."""

    hysteresis: Array | None
    residual: FeatureMemory | None


@dataclass(frozen=True)
class PostureNow:
    """
    A `Posture` of a command, with the tips at their present poses.

    Attributes
    ----------
    back : (dof,), optional
        Commanded configuration minus the present one.
    errors : (sections, 6), optional
        Corrections of the section tips by the residual, [m] and [rad].

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
        """Present tip position (3,) [m], to first order in `back`."""
        tip = self.settled.tip
        if self.back is not None:
            tip = tip - self.settled.tip_jacobian @ self.back
        return tip if self.errors is None else tip + self.errors[-1, :3]

    @cached_property
    def section_tips(self) -> Array:
        """Present poses of all section tips (sections, 4, 4) [m]; solves one more posture."""
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
        """Derivative of the tip by the configuration (3, dof), for a command held for long."""
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
        """Preferred configuration (dof,) of the model."""
        return self.settled.preferred


@dataclass(frozen=True)
class ArmMemory:
    """Hysteresis of the actuators and a residual of past commands; pure functions."""

    hysteresis: Hysteresis | None = None
    residual: Residual | None = None

    def begun(self, command: Array) -> Remembered:
        """Return the memory of an arm just after a step from rest to a command (m,)."""
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
        Return the posture with the tips at their present poses.

        The configuration changes by the least-squares solution for what the actuators lack.
        """
        back = errors = None
        if self.hysteresis is not None and memory.hysteresis is not None:
            lacking = self.hysteresis.lacking_now(memory.hysteresis, posture.actuation)
            # A view of an array would make numba compile the kernel again during a motion.
            jacobian = np.ascontiguousarray(posture.actuation_jacobian)
            back = least_move(jacobian, model.configuration_scale, lacking)
        if self.residual is not None and memory.residual is not None:
            errors = self.residual.beyond_settled(memory.residual, posture.actuation)
        return PostureNow(model, posture, back, errors)


@kernel
def least_move(jacobian: Array, scale: Array, actuation: Array) -> Array:
    """
    Return the configuration change (dof,) that best produces a change of actuation (m,).

    It solves the normal equations in units of the scales, in which they are well conditioned.
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
