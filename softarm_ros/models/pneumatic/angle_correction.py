"""Pneumatic arm of constant-curvature sections whose mounts sag (Gong et al. 2018)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from softarm_ros.geometry.arrays import Array, all_finite, finite_array, real_array
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.pneumatic.chambers import (
    CHAMBER_DIRECTIONS,
    bend_of_chambers,
    chambers_of_bend,
    passive_length,
)
from softarm_ros.models.pneumatic.common_softening import curves_of
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, MountConfig
from softarm_ros.models.pneumatic.sagging_chain import SaggedPose, SaggingChain


class PneumaticArm:
    """
    Sections of three chambers in series, with or without sag of their mounts.

    `ChamberArm` makes it an `ArmModel`. Actuation: gauge pressure of each chamber [Pa], three per
    section from the base. Configuration: per section the bending vector (b_x, b_y) [rad] and the
    length of the centre line [m]. The identified curve of each chamber connects the two.

    Parameters
    ----------
    sections
        From base to tip.
    mount
        Soft mount of every section, or None for rigid mounts: constant curvature without
        correction.
    gravity
        (3,) [m/s^2], base frame; (0, 0, 9.81) for a hanging arm.
    fluid_density_kg_m3
        Density of the surrounding fluid; buoyancy acts on cylinders of the chamber radius.
    tip_mass_kg, tip_offset_m
        Gripper: mass and distance of its centre of mass beyond the tip.

    """

    def __init__(
        self,
        sections: Sequence[ChamberSectionConfig],
        mount: MountConfig | None = None,
        gravity: Vector3 = (0.0, 0.0, 9.81),
        fluid_density_kg_m3: float = 0.0,
        tip_mass_kg: float = 0.0,
        tip_offset_m: float = 0.0,
    ) -> None:
        self.sections = tuple(sections)
        if not self.sections:
            raise ValueError('sections is empty: an arm needs at least one section')
        names = [section.name for section in self.sections]
        if len(set(names)) != len(names):
            raise ValueError(f'section names repeat: {", ".join(names)}')
        self.gravity = finite_array(gravity, (3,), 'gravity')
        for what, value in (
            ('fluid_density_kg_m3', fluid_density_kg_m3),
            ('tip_mass_kg', tip_mass_kg),
        ):
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f'{what} = {value}: must be at least 0')
        self._chain = SaggingChain(
            self.sections, mount, self.gravity, fluid_density_kg_m3, tip_mass_kg, tip_offset_m
        )
        self.gives = self._chain.gives
        self.name = 'angle_correction' if self.gives else 'constant_curvature_chambers'
        self.mount = mount
        self.curves = [curves_of(section) for section in self.sections]
        self._largest_m = [c.largest_extensions(c.max_pressure_Pa) for c in self.curves]

    # Names and sizes.

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the chambers, in the order of every actuation."""
        return tuple(f'{s.name}_chamber_{j}' for s in self.sections for j in (1, 2, 3))

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of bending components and lengths, in the order of every configuration."""
        return tuple(
            f'{s.name}_{what}' for s in self.sections for what in ('bend_x', 'bend_y', 'length')
        )

    @property
    def rest_length_m(self) -> float:
        """Length of the straight arm without pressure [m]."""
        return float(sum(s.bending_length_m + s.rigid_length_m for s in self.sections))

    # Pressure <-> configuration.

    def configuration_of(self, actuation: Array) -> Array:
        """
        Return the configuration (3 sections,) under pressures (3 sections,) [Pa].

        Raises
        ------
        ModelError
            For a pressure outside the identified curve; the message names the chamber.

        """
        pressures = self.checked_pressures(actuation)
        configuration = np.empty(pressures.size)
        for k, (section, curve) in enumerate(zip(self.sections, self.curves)):
            three = slice(3 * k, 3 * k + 3)
            bent = bend_of_chambers(
                section.bending_length_m + curve.extensions(pressures[three]),
                section.chamber_radius_m,
            )
            configuration[three] = [*bent.bend, bent.length_m]
        return configuration

    def actuation_of(self, configuration: Array) -> Array:
        """
        Return the pressures (3 sections,) [Pa] for a configuration (3 sections,).

        Raises
        ------
        ModelError
            For a chamber shorter than at rest or longer than identified; the message names it.

        """
        values = self._checked_configuration(configuration)
        pressures = np.empty(values.size)
        for k, curve in enumerate(self.curves):
            extensions = self.extensions(k, values)
            largest = self._largest_m[k]
            for j, (extension, most) in enumerate(zip(extensions.tolist(), largest.tolist())):
                if not -1e-9 <= extension <= most + 1e-9:
                    name = self.actuator_names[3 * k + j]
                    raise ModelError(
                        f'{name}: extension {1e3 * extension:.3f} mm is outside 0 to '
                        f'{1e3 * most:g} mm'
                    )
            within = np.minimum(np.maximum(extensions, 0.0), largest)
            pressures[3 * k : 3 * k + 3] = curve.pressures(within)
        return pressures

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d pressure / d configuration (3 sections, 3 sections)."""
        pressures = self.actuation_of(configuration)
        jacobian = np.zeros((pressures.size, pressures.size))
        for k, (section, curve) in enumerate(zip(self.sections, self.curves)):
            three = slice(3 * k, 3 * k + 3)
            by_length = np.column_stack(
                [-section.chamber_radius_m * CHAMBER_DIRECTIONS, np.ones(3)]
            )
            jacobian[three, three] = curve.pressures_by(pressures[three], by_length)
        return jacobian

    def two_chamber_configuration(self, bends: Array) -> Array:
        """Return the configuration for bends (2 sections,), one chamber per section at rest."""
        bends = np.asarray(bends, dtype=np.float64).reshape(-1, 2)
        lengths = [
            passive_length(bend, s.bending_length_m, s.chamber_radius_m)
            for bend, s in zip(bends, self.sections)
        ]
        return np.column_stack([bends, lengths]).ravel()

    # Configuration <-> shape.

    def sagged_pose(
        self, configuration: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> SaggedPose:
        """
        Return the pose with every mount in equilibrium with weight and tip load.

        Raises
        ------
        ModelError
            If the arm tips over before it carries its full weight and load, or its mounts tilt
            beyond the validity of the model.

        """
        values = self._checked_configuration(configuration)
        if tip_force is ZERO3 and tip_moment is ZERO3:
            return self._chain.pose(values)
        force = finite_array(tip_force, (3,), 'tip_force')
        return self._chain.pose(values, force, finite_array(tip_moment, (3,), 'tip_moment'))

    def tip_jacobian(self, pose: SaggedPose) -> Array:
        """Return the derivative (3, 3 sections) of the tip by the configuration, without load."""
        return self._chain.tip_twists(pose)[:3]

    def section_tips_under(
        self, configuration: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Array:
        """Return the section tips (sections, 4, 4) of `sagged_pose`, under weight and load."""
        return self.sagged_pose(configuration, tip_force, tip_moment).section_tips

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape of a configuration (3 sections,) under its own weight."""
        return self.shape_under(self._checked_configuration(configuration), ZERO3, ZERO3)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under pressures (3 sections,) [Pa] and a load at the tip [N, N m].

        Raises
        ------
        ModelError
            As `configuration_of` and `sagged_pose`; for any load if the mounts are rigid.

        """
        self.check_loads(tip_force, tip_moment)
        return self.shape_under(self.configuration_of(actuation), tip_force, tip_moment)

    def check_loads(self, tip_force: Vector3, tip_moment: Vector3 = ZERO3) -> None:
        """Raise ModelError for a load [N, N m] if nothing gives, and ValueError if not finite."""
        for what, load in (('tip_force', tip_force), ('tip_moment', tip_moment)):
            if np.any(finite_array(load, (3,), what)) and not self.gives:
                raise ModelError(
                    f'{what} = {np.asarray(load).tolist()}: without the angle correction the '
                    f'model does not support loads'
                )

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, 3 sections) by configuration."""
        pose = self.sagged_pose(configuration)
        return pose.section_tips[-1, :3, 3].copy(), self.tip_jacobian(pose)

    def jacobian(self, actuation: Array, tip_force: Vector3 = ZERO3) -> Array:
        """Return the tip twist per pressure (6, 3 sections), base frame, linear rows first."""
        pressures = self.checked_pressures(actuation)
        configuration = self.configuration_of(pressures)
        twists = self.tip_twists(configuration, tip_force)
        jacobian = np.empty((6, pressures.size))
        for k, (section, curve) in enumerate(zip(self.sections, self.curves)):
            three = slice(3 * k, 3 * k + 3)
            by_length = np.vstack(
                [-2.0 / (3.0 * section.chamber_radius_m) * CHAMBER_DIRECTIONS.T, np.full(3, 1 / 3)]
            )
            jacobian[:, three] = curve.by_pressures(pressures[three], twists[:, three] @ by_length)
        return jacobian

    def extensions(self, k: int, configuration: Array) -> Array:
        """Return the extensions (3,) [m] of the chambers of section k."""
        section = self.sections[k]
        bend, length = configuration[3 * k : 3 * k + 2], configuration[3 * k + 2]
        lengths = chambers_of_bend(bend, length, section.chamber_radius_m)
        return lengths - section.bending_length_m

    def tip_twists(self, configuration: Array, tip_force: Vector3 = ZERO3) -> Array:
        """Return the tip twist (6, dof) per configuration, under a force at the tip."""
        force = finite_array(tip_force, (3,), 'tip_force')
        return self._chain.tip_twists(self.sagged_pose(configuration, force), force)

    def shape_under(
        self, configuration: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """Return the shape of a configuration (3 sections,) under weight and a load at the tip."""
        state = self.sagged_pose(configuration, tip_force, tip_moment)
        return Shape(
            state.section_tips[-1].copy(),
            state.section_tips,
            configuration,
            partial(self._chain.centerline, state),
        )

    def checked_pressures(self, actuation: Array) -> Array:
        """Return pressures (m,) [Pa] as an array; ValueError for a wrong shape or value."""
        pressures = real_array(actuation, 'actuation')
        names = self.actuator_names
        if pressures.shape != (len(names),):
            raise ValueError(f'actuation has shape {pressures.shape}, expected ({len(names)},)')
        for i, (name, value) in enumerate(zip(names, pressures)):
            high = float(self.curves[i // 3].max_pressure_Pa[i % 3])
            if not math.isfinite(value):
                raise ValueError(f'{name}: pressure is {value}, expected a finite number')
            if not 0.0 <= value <= high:
                raise ModelError(f'{name}: pressure {value:.6g} Pa is outside 0 to {high:.6g} Pa')
        return pressures

    def _checked_configuration(self, configuration: Array) -> Array:
        values = real_array(configuration, 'configuration')
        if values.shape != (3 * len(self.sections),):
            raise ValueError(
                f'configuration has shape {values.shape}, expected ({3 * len(self.sections)},)'
            )
        if not all_finite(values):
            raise ValueError(f'configuration {values.tolist()} is not finite')
        if not all(length > 0.0 for length in values[2::3].tolist()):
            raise ValueError(f'lengths {values[2::3].tolist()} m: must be positive')
        return values
