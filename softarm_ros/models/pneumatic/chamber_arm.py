"""The pneumatic arm with the extensions of its chambers as a configuration for the tracker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from softarm_ros.geometry.arrays import Array, all_finite, finite_array, real_array, real_rows
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ZERO3, InverseSolution, Posture, Shape, Vector3
from softarm_ros.models.inverse import find_pose, pose_target
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.chambers import CHAMBER_DIRECTIONS
from softarm_ros.models.pneumatic.extension_problem import ExtensionProblem
from softarm_ros.models.pneumatic.sagging_chain import SaggedPose
from softarm_ros.models.posture import PlainPosture

_SCALE_RADIANS = 2.0  # bend that moves the tip by about the length of the arm
_EYE3 = np.eye(3)


@dataclass(frozen=True)
class ExtensionPosture(PlainPosture):
    """A `PlainPosture` of extensions; its `section_tips` come from one pose, solved once."""

    model: ChamberArm

    @cached_property
    def bends(self) -> Array:
        """Bends [rad] and lengths [m] of the arcs without load (3 sections,)."""
        return self.model.bends_and_lengths(self.configuration)

    @cached_property
    def tip(self) -> Array:
        """Tip position (3,) [m]."""
        return self.section_tips[-1, :3, 3].copy()

    @cached_property
    def actuation(self) -> Array:
        """Pressures (m,) [Pa] that hold the extensions."""
        return self.model.arm.actuation_of(self.bends)

    @cached_property
    def actuation_jacobian(self) -> Array:
        """Derivative of the pressures by the extensions (m, dof) [Pa/m]."""
        return self.model.pressure_rates_at(self.actuation)


@dataclass(frozen=True)
class ChamberPosture(ExtensionPosture):
    """An `ExtensionPosture` that solves the sag of its mounts."""

    @cached_property
    def pose(self) -> SaggedPose:
        """Pose under the arm's own weight."""
        return self.model.arm.sagged_pose(self.bends)

    @property
    def section_tips(self) -> Array:
        """Poses of all section tips (sections, 4, 4) [m]."""
        return self.pose.section_tips

    @cached_property
    def tip_jacobian(self) -> Array:
        """Derivative of the tip by the extensions (3, dof)."""
        return self.model.by_extensions(self.model.arm.tip_jacobian(self.pose))


class ChamberArm:
    """
    A `PneumaticArm` whose configuration is the extension of every chamber [m].

    Implements `ArmModel` and `SetByBends`. Actuation: gauge pressure of each chamber [Pa], three
    per section. Each coordinate belongs to one chamber and starts at 0. Bends and lengths are
    linear in the coordinates, so nothing has a kink.

    The paper (Gong et al. 2018, eq. 10) fills at most two chambers of a section. Then the tip
    reaches only a thin shell, with a fold where the sections bend alike and a crease where the
    passive chamber changes. Here the least extensions that hold the tip are preferred; the third
    chamber is filled where two do not suffice. `of_bends` follows the paper's rule.

    Parameters
    ----------
    arm
        The mechanics: curves, mounts, weights.
    name
        Name of the model.
    within
        Range of the pressures that `forward`, `jacobian` and `inverse` keep to; up to the ends of
        the identified curves if None.

    Attributes
    ----------
    max_pressure_Pa : (m,)
        End of that range.
    max_extension_m : (dof,)
        Largest extension of each chamber within that range.

    """

    def __init__(
        self, arm: PneumaticArm, name: str | None = None, within: ActuationRange | None = None
    ) -> None:
        self.arm, self.within = arm, within
        self.name = name or arm.name
        self._sections = len(arm.sections)
        ends = np.concatenate([curve.max_pressure_Pa for curve in arm.curves])
        self.max_pressure_Pa = ends if within is None else np.minimum(within.high, ends)
        self.max_extension_m = np.concatenate(
            [
                curve.largest_extensions(most)
                for curve, most in zip(arm.curves, self.max_pressure_Pa.reshape(-1, 3))
            ]
        )
        rest, to_bends = np.zeros(3 * self._sections), np.zeros((3 * self._sections,) * 2)
        for k, section in enumerate(arm.sections):
            three = slice(3 * k, 3 * k + 3)
            rest[3 * k + 2] = section.bending_length_m
            # Eq. 1-3: bend = -2/(3 d) sum of l_j u_j, length = mean of l_j.
            rows = -2.0 / (3.0 * section.chamber_radius_m) * CHAMBER_DIRECTIONS.T
            to_bends[three, three] = np.vstack([rows, np.full(3, 1.0 / 3.0)])
        self._rest, self._to_bends = rest, to_bends

    # Names and sizes.

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the chambers, in the order of every actuation."""
        return self.arm.actuator_names

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the extensions, in the order of every configuration."""
        return tuple(f'{name}_extension' for name in self.arm.actuator_names)

    @property
    def rest_length_m(self) -> float:
        """Length of the straight arm without pressure [m]."""
        return self.arm.rest_length_m

    @property
    def rest_configuration(self) -> Array:
        """Zero extensions (dof,): straight, without pressure."""
        return np.zeros(3 * self._sections)

    @property
    def configuration_scale(self) -> Array:
        """Extension (dof,) [m] of one chamber that bends its section by two radians."""
        radii = [section.chamber_radius_m for section in self.arm.sections]
        return np.repeat(1.5 * _SCALE_RADIANS * np.array(radii), 3)

    def preferred_configuration(self, configuration: Array) -> Array:
        """Return zero extensions (dof,): the least extensions are the easiest to hold."""
        return np.zeros(3 * self._sections)

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """
        Return None: measured points do not determine the extensions.

        Cameras give positions, which do not separate the bend of a section from the sag of its
        mount.
        """
        return None

    # Pressure <-> extension.

    def configuration_of(self, actuation: Array) -> Array:
        """
        Return the extensions (dof,) [m] under pressures (m,) [Pa].

        Raises
        ------
        ModelError
            For a pressure outside the identified curve; the message names the chamber.

        """
        return self.extensions_of(self.arm.configuration_of(actuation))

    def actuation_of(self, configuration: Array) -> Array:
        """
        Return the pressures (m,) [Pa] for extensions (dof,) [m].

        Raises
        ------
        ModelError
            For a chamber shorter than at rest or longer than identified; the message names it.

        """
        return self.arm.actuation_of(self.bends_and_lengths(configuration))

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d pressure / d extension (m, dof) [Pa/m]; block diagonal by section."""
        return self.pressure_rates_at(self.actuation_of(configuration))

    def pressure_rates_at(self, pressures: Array) -> Array:
        """Return d pressure / d extension (m, dof) [Pa/m] at pressures (m,) [Pa]."""
        jacobian = np.zeros((len(pressures), len(pressures)))
        for k, curve in enumerate(self.arm.curves):
            three = slice(3 * k, 3 * k + 3)
            jacobian[three, three] = curve.pressures_by(pressures[three], _EYE3)
        return jacobian

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """Return the posture of extensions (dof,) [m]; `near` is not used."""
        return ChamberPosture(self, real_array(configuration, 'configuration'))

    # Extension <-> bends.

    def bends_and_lengths(self, configuration: Array) -> Array:
        """Return (b_x, b_y) [rad] and length [m] of every section (3 sections,)."""
        values = real_array(configuration, 'configuration')
        if values.shape != (3 * self._sections,):
            raise ValueError(
                f'configuration has shape {values.shape}, expected ({3 * self._sections},)'
            )
        if not all_finite(values):
            raise ValueError(f'configuration {values.tolist()} is not finite')
        return np.asarray(self._rest + self._to_bends @ values)

    def extensions_of(self, bends_and_lengths: Array) -> Array:
        """Return the extensions (dof,) [m] for bends and lengths (3 sections,)."""
        return np.concatenate(
            [self.arm.extensions(k, bends_and_lengths) for k in range(self._sections)]
        )

    def of_bends(self, bends: Array) -> Array:
        """
        Return the extensions (dof,) [m] for bends (2 sections,) [rad] by the paper's rule.

        `bends` are theta (cos phi, sin phi) of each section; one chamber per section stays at
        rest.
        """
        return self.extensions_of(self.arm.two_chamber_configuration(bends))

    # Configuration <-> shape.

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape for extensions (dof,) [m] under the arm's own weight."""
        shape = self.arm.shape_of(self.bends_and_lengths(configuration))
        return replace(shape, configuration=np.array(configuration, dtype=float))

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] of many configurations (n, dof)."""
        rows = real_rows(configurations, 'configurations', 3 * self._sections)
        tips = [self.arm.section_tips_under(self.bends_and_lengths(row))[-1] for row in rows]
        return np.array([tip[:3, 3] for tip in tips]).reshape(-1, 3)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, dof) by the extensions."""
        tip, jacobian = self.arm.tip_and_jacobian(self.bends_and_lengths(configuration))
        return tip, self.by_extensions(jacobian)

    def by_extensions(self, by_bends: Array) -> Array:
        """Convert a derivative by bends and lengths (r, dof) to one by extensions (r, dof)."""
        return np.asarray(by_bends @ self._to_bends)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under pressures (m,) [Pa] and a load at the tip [N, N m].

        Raises
        ------
        ModelError
            As `PneumaticArm.forward`, and for a pressure out of range (names the chamber).

        """
        shape = self.arm.forward(self._commanded(actuation), tip_force, tip_moment)
        return replace(shape, configuration=self.extensions_of(shape.configuration))

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per pressure (6, m), base frame, linear rows first."""
        return self.arm.jacobian(self._commanded(actuation))

    def _commanded(self, actuation: Array) -> Array:
        values = self.arm.checked_pressures(actuation)
        if self.within is not None:
            self.within.check(values)
        return values

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the pressures for a tip position (3,) [m] and optional orientation (3, 3).

        The search finds the least extensions that reach a position, near the guess or from
        several starts. With an orientation, the pose alone determines the extensions of two
        sections.
        """
        self.arm.check_loads(tip_force)
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else self.configuration_of(guess)
        force = finite_array(tip_force, (3,), 'tip_force')
        problem = ExtensionProblem(self, force, target.with_orientation)
        return find_pose(problem, target, start, self.within)
