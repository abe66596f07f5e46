"""Base of cable-driven arms whose cables hold the bends while the shape settles under weight."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array, real_rows
from softarm_ros.models.arm_model import (
    ZERO3,
    InverseSolution,
    ModelError,
    Posture,
    Shape,
    Vector3,
)
from softarm_ros.models.cable_driven.bending_arm import BendingArm
from softarm_ros.models.cable_driven.held_bends import HeldBends
from softarm_ros.models.inverse import PoseTarget, find_pose, pose_target


class HeldPosture(ABC):
    """`Posture` that keeps the solved rest, for its results and as a start for neighbours."""

    def __init__(self, arm: Any, held: Any) -> None:
        self._arm, self.held = arm, held

    @property
    def configuration(self) -> Array:
        """See `Posture`."""
        return np.asarray(self.held.bend)

    @cached_property
    def section_tips(self) -> Array:
        """See `Posture`."""
        return np.asarray(self._arm.rod.section_tips(self.held))

    @property
    def tip(self) -> Array:
        """See `Posture`."""
        return np.asarray(self.section_tips[-1, :3, 3])

    @cached_property
    def tip_jacobian(self) -> Array:
        """See `Posture`."""
        return np.asarray(self._arm.rod.tip_twist(self.held)[:3])

    @property
    @abstractmethod
    def actuation(self) -> Array:
        """See `Posture`."""

    @property
    @abstractmethod
    def actuation_jacobian(self) -> Array:
        """See `Posture`."""

    @property
    @abstractmethod
    def preferred(self) -> Array:
        """See `Posture`."""


class HeldBendingArm(BendingArm):
    """
    Arm whose body carries weight and load, and is held at its bends by the cables.

    Attributes
    ----------
    rod
        The body, a `HeldBody`. Arguments named `held` are rests of this body.

    """

    rod: Any  # a `HeldBody`
    _tip_weight: Array  # (3,) [N]
    _own_load: Any  # load of the body, with the permanent tip weight

    POSTURE: ClassVar[type[HeldPosture]]  # constructed from the arm and a rest

    # -- supplied by the model

    @abstractmethod
    def contraction_of(self, held: Any) -> Array:
        """Return the contractions (m,) [m] that hold the body at a rest."""

    @abstractmethod
    def _rest_under(self, actuation: Array, tip_force: Vector3, tip_moment: Vector3) -> Any:
        """Return the body at rest under contractions (m,) [m] and a load; see `forward`."""

    # -- configuration -> shape

    def _settled(self, configuration: Array) -> Any:
        return self.rod.settled(self._checked_configuration(configuration), self._own_load)

    def _shape(self, held: Any) -> Shape:
        tips = self.rod.section_tips(held)
        return Shape(tips[-1].copy(), tips, held.bend, partial(self.rod.centerline, held))

    def shape_of(self, configuration: Array) -> Shape:
        """
        Return the shape of a configuration (dof,) [rad] under the arm's own weight.

        Raises
        ------
        ModelError
            If the arm is not stable there, however the cables hold it. All methods that take a
            configuration raise this.

        """
        return self._shape(self._settled(configuration))

    def tips_of(self, configurations: Array) -> Array:
        """Return tip positions (n, 3) [m] of configurations (n, dof) [rad]; NaN if unstable."""
        bends = real_rows(configurations, 'configurations', len(self.configuration_names))
        tips = np.full((len(bends), 3), math.nan)
        for row, bend in enumerate(bends):
            if not np.isfinite(bend).all():
                raise ValueError(f'configurations[{row}] = {bend.tolist()}: expected finite rad')
            try:
                tips[row] = self.rod.section_tips(self._settled(bend))[-1, :3, 3]
            except ModelError:
                continue
        return tips

    def posture_of(self, configuration: Array, near: Posture | None = None) -> HeldPosture:
        """See `ArmModel`."""
        bend = self._checked_configuration(configuration)
        start = near.held if isinstance(near, self.POSTURE) else None
        return self.POSTURE(self, self.rod.settled(bend, self._own_load, start))

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, dof) [m/rad]."""
        posture = self.posture_of(configuration)
        return posture.tip.copy(), posture.tip_jacobian

    def twist_jacobian(self, configuration: Array) -> Array:
        """Return the tip twist per configuration rate (6, dof), base frame, linear first."""
        return self.rod.tip_twist(self._settled(configuration))

    def damped_step(self, configuration: Array, target: Vector3, damping: float) -> Array:
        """Return J^T (J J^T + damping I)^-1 (target - tip) (dof,) [rad] (eq. 34-35)."""
        if not damping > 0.0:
            raise ValueError(f'damping = {damping}: must be positive')
        tip, J = self.tip_and_jacobian(configuration)
        miss = finite_array(target, (3,), 'target') - tip
        return np.asarray(J.T @ np.linalg.solve(J @ J.T + damping * np.eye(3), miss))

    # -- actuation

    @property
    def cable_count(self) -> int:
        """Number of contractions."""
        return len(self.cables)

    def actuation_of(self, configuration: Array) -> Array:
        """Return the contractions (m,) [m] that hold a configuration (dof,) [rad]."""
        return self.contraction_of(self._settled(configuration))

    def configuration_of(self, actuation: Array) -> Array:
        """Return the configuration (dof,) [rad] under contractions (m,) [m]; see `forward`."""
        return np.asarray(self._rest_under(actuation, ZERO3, ZERO3).bend)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under contractions (m,) [m], weight, and a load at the tip [N, N m].

        Raises
        ------
        ValueError
            If the actuation has a wrong shape or is not finite (names the actuator).
        ModelError
            If a contraction is out of range (names the motor), or if no stable rest is found
            for these cable lengths.

        """
        return self._shape(self._rest_under(self._commanded(actuation), tip_force, tip_moment))

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the actuation that brings the tip to a position, and to an orientation if given.

        Works as `BendingArm.inverse`, with `tip_force` (3,) [N] in addition to the weight.
        """
        force = self._tip_weight + finite_array(tip_force, (3,), 'tip_force')
        target = pose_target(position, orientation, self.rest_length_m)
        load = self.rod.load(force, np.zeros(3))
        checked = None if guess is None else self._checked_actuation(guess, 'guess')
        return self._found(target, load, checked, tip_force)

    def _found(
        self, target: PoseTarget, load: Any, guess: Array | None, tip_force: Vector3
    ) -> InverseSolution:
        """Return the solution of least bends for a pose, under a load of the body."""
        start = None
        if guess is not None:
            try:
                start = self._rest_under(guess, tip_force, ZERO3).bend
            except ModelError:
                start = None
        return find_pose(HeldBends(self, self._bend_problem, load), target, start, self.within)
