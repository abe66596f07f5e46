"""
Base of all cable-driven arms: geometry, names, checks, inverse kinematics.

The models differ only in how they relate contractions and bending vectors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array, real_array, real_rows
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ZERO3, InverseSolution, ModelError, Shape, Vector3
from softarm_ros.models.cable_driven.bending import configuration_of_tips
from softarm_ros.models.cable_driven.constant_curvature_kernels import (
    centerline_into,
    damped_step_into,
    section_tips_into,
    tip_jacobian_into,
    tips_into,
)
from softarm_ros.models.cable_driven.inverse import BendProblem
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.models.inverse import find_pose, pose_target
from softarm_ros.models.posture import PlainPostures

_MOST_BENT_RAD = 1e6  # far beyond any real section, but squares and series stay finite


class BendingArm(PlainPostures, ABC):
    """
    Cable-driven sections in series; implements `ArmModel` except for the cable statics.

    Configuration: the bending vectors (b_x, b_y) = theta (cos phi, sin phi) [rad] of the sections.
    Actuation: contraction of each cable [m], positive when pulled in, in the order of `cables`.

    Parameters
    ----------
    sections
        From base to tip.
    cables
        In any order; at least one for each section.
    within
        Range of the motors; see `ActuationRange`.

    Raises
    ------
    ValueError
        If a cable names no section, a section has no cable, or names repeat.

    """

    name: str

    def __init__(
        self,
        sections: Sequence[SectionConfig],
        cables: Sequence[CableConfig],
        within: ActuationRange | None = None,
    ) -> None:
        self.sections = tuple(sections)
        self.cables = tuple(cables)
        self.within = within
        _check_names(self.sections, self.cables)
        section_index = {section.name: k for k, section in enumerate(self.sections)}
        of_section = [section_index[cable.section] for cable in self.cables]
        self._columns = [
            np.flatnonzero(np.equal(of_section, k)) for k in range(len(self.sections))
        ]
        self._paths = [self._cable_paths(k) for k in range(len(self.sections))]
        self._lengths = np.array([[s.length_m, s.endcap_length_m] for s in self.sections])
        self._rest_length_m = float(np.sum(self._lengths[:, 0] + 2.0 * self._lengths[:, 1]))
        self._bend_problem = BendProblem(self, self._lengths, self._paths)

    def _cable_paths(self, k: int) -> Array:
        """Return the cable paths (m, 3) of section k: a_x, a_y [m] and angle [rad]."""
        angles = np.radians([self.cables[i].angle_deg for i in self._columns[k]])
        radius = self.sections[k].cable_radius_m
        return np.stack([radius * np.cos(angles), radius * np.sin(angles), angles], axis=1)

    # Names and sizes.

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the cables, in the order of every actuation."""
        return tuple(cable.name for cable in self.cables)

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the bending-vector components, in the order of every configuration."""
        return tuple(f'{s.name}_bend_{axis}' for s in self.sections for axis in 'xy')

    @property
    def rest_length_m(self) -> float:
        """Length of the arm from base to tip, endcaps included [m]."""
        return self._rest_length_m

    @property
    def rest_configuration(self) -> Array:
        """The straight arm (dof,) [rad]."""
        return np.zeros(2 * len(self.sections))

    @property
    def configuration_scale(self) -> Array:
        """Ones (dof,) [rad]: one radian of bending moves the tip by about the arm's length."""
        return np.ones(2 * len(self.sections))

    def preferred_configuration(self, configuration: Array) -> Array:
        """Return all sections bent alike (dof,) [rad]: the mean of the bending vectors."""
        bends = self._checked_configuration(configuration).reshape(-1, 2)
        return np.full_like(bends, bends.sum(axis=0) / len(bends)).ravel()

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """Return the bends (dof,) [rad] of measured section tips; None unless all are given."""
        tips = real_array(section_tips, 'section_tips')
        if tips.shape != (len(self.sections), 4, 4):
            return None
        if not np.isfinite(tips).all():
            return np.full(2 * len(self.sections), np.nan)
        return configuration_of_tips(tips)

    # Configuration <-> shape.

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape of a configuration (dof,) [rad]."""
        bend = self._checked_configuration(configuration)
        section_tips = np.empty((len(self.sections), 4, 4))
        section_tips_into(bend, self._lengths, section_tips)
        sample_centerline = partial(_centerline, bend, self._lengths, section_tips)
        return Shape(section_tips[-1].copy(), section_tips, bend, sample_centerline)

    def tips_of(self, configurations: Array) -> Array:
        """
        Return the tip positions (n, 3) [m] of many configurations (n, dof) [rad] at once.

        Raises
        ------
        ValueError
            If the shape is wrong or a value is not finite (names the row).

        """
        bends = real_rows(configurations, 'configurations', len(self.configuration_names))
        if not np.isfinite(bends).all():
            row = int(np.flatnonzero(~np.isfinite(bends).all(axis=1))[0])
            raise ValueError(f'configurations[{row}] = {bends[row].tolist()}: expected finite rad')
        tips = np.empty((len(bends), 3))
        tips_into(bends, self._lengths, tips)
        return tips

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, dof) [m/rad]."""
        bend = self._checked_configuration(configuration)
        tip, jacobian = np.empty(3), np.empty((3, bend.size))
        tip_jacobian_into(bend, self._lengths, 3, tip, jacobian)
        return tip, jacobian

    def twist_jacobian(self, configuration: Array) -> Array:
        """Return the tip twist per configuration rate (6, dof), base frame, linear first."""
        bend = self._checked_configuration(configuration)
        tip, jacobian = np.empty(3), np.empty((6, bend.size))
        tip_jacobian_into(bend, self._lengths, 6, tip, jacobian)
        return jacobian

    def damped_step(self, configuration: Array, target: Vector3, damping: float) -> Array:
        """
        Return J^T (J J^T + damping I)^-1 (target - tip) (dof,) [rad] (eq. 34-35).

        `target` (3,) [m] in the base frame, `damping` > 0 [m^2].
        """
        if not damping > 0.0:
            raise ValueError(f'damping = {damping}: must be positive')
        bend = self._checked_configuration(configuration)
        goal = finite_array(target, (3,), 'target')
        tip, jacobian, step = np.empty(3), np.empty((3, bend.size)), np.empty(bend.size)
        damped_step_into(bend, self._lengths, goal, damping, tip, jacobian, step)
        return step

    # Actuation <-> configuration.

    @abstractmethod
    def actuation_of(self, configuration: Array) -> Array:
        """Return the contractions (m,) [m] that hold a configuration (dof,) [rad]."""

    @abstractmethod
    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d actuation / d configuration (m, dof) [m/rad]."""

    @abstractmethod
    def configuration_of(self, actuation: Array) -> Array:
        """
        Return the configuration (dof,) [rad] under contractions (m,) [m].

        Raises
        ------
        ModelError
            If the model does not admit the contractions.

        """

    @abstractmethod
    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per contraction (6, m), base frame, linear first [m/m, rad/m]."""

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape of the unloaded arm under contractions (m,) [m].

        Raises
        ------
        ValueError
            If the actuation has a wrong shape or is not finite (names the actuator).
        ModelError
            As for `configuration_of`; if a contraction is out of range (names the motor); for any
            tip load, as these models do not support it.

        """
        self._refuse_load('tip_force', tip_force)
        self._refuse_load('tip_moment', tip_moment)
        return self.shape_of(self.configuration_of(self._commanded(actuation)))

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the actuation that brings the tip to a position, and to an orientation if given.

        Sections bend up to their `max_bending_angle_deg`. Without a guess, the search tries
        several deterministic starts and returns the least bent solution.

        Parameters
        ----------
        position
            Tip position (3,) in the base frame [m].
        orientation
            Rotation base -> tip (3, 3), approached together with the position as closely as the
            arm can.
        guess
            Actuation (m,) [m] to start from, such as the solution for a neighbouring target. A
            guess that the model does not admit is ignored.
        tip_force
            Must be zero: these models do not support tip loads.

        Returns
        -------
        InverseSolution
            See `models.inverse`; the closest approach if not converged.

        """
        self._refuse_load('tip_force', tip_force)
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else self._start_of(guess)
        return find_pose(self._bend_problem, target, start, self.within)

    def _start_of(self, guess: Array) -> Array | None:
        """Return the configuration (dof,) of a guess, or None if the model does not admit it."""
        contraction = self._checked_actuation(guess, 'guess')
        try:
            return self.configuration_of(contraction)
        except ModelError:
            return None

    # Checks.

    def _commanded(self, actuation: Array) -> Array:
        """Return a copy of an actuation (m,) [m]; check its shape, values and motor range."""
        contraction = self._checked_actuation(actuation)
        if self.within is not None:
            self.within.check(contraction)
        return contraction

    def _checked_actuation(self, actuation: Array, what: str = 'actuation') -> Array:
        values = real_array(actuation, what)
        names = self.actuator_names
        if values.shape != (len(names),):
            raise ValueError(
                f'{what} has shape {values.shape}, expected ({len(names)},): '
                f'the contraction [m] of {", ".join(names)}'
            )
        _require_finite(values, names, what)
        return values

    def _checked_configuration(self, value: Array) -> Array:
        """Check a configuration; return a writable contiguous copy, as the kernels require."""
        bend = real_array(value, 'configuration')
        if bend.shape != (2 * len(self.sections),):
            names = self.configuration_names
            raise ValueError(
                f'configuration has shape {bend.shape}, expected ({len(names)},): '
                f'{", ".join(names)} [rad]'
            )
        if not np.abs(bend).max() <= _MOST_BENT_RAD:  # also true of NaN
            _require_finite(bend, self.configuration_names, 'configuration')
            most = int(np.argmax(np.abs(bend)))
            raise ModelError(
                f'configuration of {self.configuration_names[most]} is {bend[most]:.4g} rad, '
                f'expected at most {_MOST_BENT_RAD:g} rad to either side'
            )
        return bend

    def _refuse_load(self, what: str, load: Vector3) -> None:
        if np.any(finite_array(load, (3,), what) != 0.0):
            raise ModelError(
                f'{what} = {tuple(float(value) for value in load)}: '
                f'the model {self.name} does not account for tip loads; cosserat does'
            )


def _check_names(sections: Sequence[SectionConfig], cables: Sequence[CableConfig]) -> None:
    names = [section.name for section in sections]
    if not names:
        raise ValueError('an arm needs at least one section')
    for what, used in (('section', names), ('cable', [cable.name for cable in cables])):
        repeated = sorted({name for name in used if used.count(name) > 1})
        if repeated:
            raise ValueError(f'{what} names repeat: {", ".join(repeated)}')
    for cable in cables:
        if cable.section not in names:
            raise ValueError(
                f'cable {cable.name}: section {cable.section!r} does not exist; '
                f'there are {", ".join(names)}'
            )
    for name in names:
        if all(cable.section != name for cable in cables):
            raise ValueError(f'section {name!r} has no cable')


def _require_finite(values: Array, names: Sequence[str], what: str) -> None:
    for name, value in zip(names, values):
        if not math.isfinite(value):
            raise ValueError(f'{what} of {name} is {value}, expected a finite number')


def _centerline(bend: Array, lengths: Array, section_tips: Array, n: int) -> Array:
    points = np.empty((n, 3))
    centerline_into(bend, lengths, section_tips, points)
    return points
