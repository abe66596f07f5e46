"""Pneumatic arm of constant-curvature sections whose mounts sag (Gong et al. 2018)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ZERO3, InverseSolution, ModelError, Shape, Vector3
from softarm_ros.models.inverse import find_pose, pose_target
from softarm_ros.models.pneumatic.angle_correction_kernels import frames_into, solve_give
from softarm_ros.models.pneumatic.chambers import (
    CHAMBER_DIRECTIONS,
    ChamberCurves,
    bend_of_chambers,
    chambers_of_bend,
    finite_vector,
    passive_length,
)
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, MountConfig
from softarm_ros.models.pneumatic.sag_sensitivity_kernels import tip_derivative
from softarm_ros.models.pneumatic.two_chamber_problem import TwoChamberProblem

_STEP = 1e-5  # of differences, rad and (times the length) m
_LOAD_STEPS = 20
_MAX_GIVE_RAD = math.radians(60.0)


@dataclass(frozen=True)
class SaggedPose:
    """
    Pose of an arm with its mounts in equilibrium.

    Attributes
    ----------
    section_tips, mounts : (sections, 4, 4)
        Ends of the sections; mount frames before their tilt; base frame.
    bends : (sections, 3)
        Bending vectors [rad] and lengths [m] of the arcs under load.
    tilts : (sections, 2)
        Turn of each mount about its x and y axes [rad].
    moments : (sections, 3)
        Moment on each mount [N m], base frame.
    residual : float
        Largest difference [rad] between a tilt and that of the moment it leads to.

    """

    section_tips: Array
    mounts: Array
    bends: Array
    tilts: Array
    moments: Array
    residual: float


class PneumaticArm:
    """
    Sections of three chambers in series, with or without sag of their mounts.

    Implements `ArmModel`. Actuation: gauge pressure of each chamber [Pa], three per section from
    the base. Configuration: per section the bending vector (b_x, b_y) [rad] and the length of the
    centre line [m]; both are connected chamber by chamber through the identified curves.

    Parameters
    ----------
    sections
        From base to tip.
    mount
        Soft mount of every section, or None for rigid ones: constant curvature without correction.
    gravity
        (3,) [m/s^2], base frame; (0, 0, 9.81) for a hanging arm.
    fluid_density_kg_m3
        Of the surroundings; buoyancy acts on cylinders of the chamber radius.
    tip_mass_kg, tip_offset_m
        Gripper: mass and distance of its centre beyond the tip.

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
        for what, value in (
            ('fluid_density_kg_m3', fluid_density_kg_m3),
            ('tip_mass_kg', tip_mass_kg),
        ):
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f'{what} = {value}: must be at least 0')
        soft = any(s.bend_per_moment_rad_N_m > 0.0 for s in self.sections)
        self.gives = mount is not None or soft
        self.name = 'angle_correction' if self.gives else 'constant_curvature_chambers'
        self.mount = mount
        self.gravity = finite_vector(gravity, 'gravity')
        self.curves = [ChamberCurves(section) for section in self.sections]
        self._rigid = np.array([s.rigid_length_m for s in self.sections])
        self._weights = np.array(
            [
                (s.mass_kg - fluid_density_kg_m3 * _volume_m3(s)) * self.gravity
                for s in self.sections
            ]
        )
        self._tip_weight = np.append(tip_mass_kg * self.gravity, tip_offset_m)
        self._materials = np.array([_material(mount) for _ in self.sections])
        self._compliances = np.array([s.bend_per_moment_rad_N_m for s in self.sections])
        self._growths = np.array([s.give_growth for s in self.sections])
        self._rest_lengths = np.array([s.bending_length_m for s in self.sections])

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
            For a pressure beyond the identified curve; names the chamber.

        """
        pressures = self._checked_pressures(actuation)
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
        Return the pressures (3 sections,) [Pa] of a configuration (3 sections,).

        Raises
        ------
        ModelError
            For a chamber shorter than at rest or longer than identified; names it.

        """
        values = self._checked_configuration(configuration)
        pressures = np.empty(values.size)
        for k, curve in enumerate(self.curves):
            extensions = self.extensions(k, values)
            most = curve.max_extension_m
            for j in range(3):
                if not -1e-9 <= extensions[j] <= most[j] + 1e-9:
                    name = self.actuator_names[3 * k + j]
                    raise ModelError(
                        f'{name}: extension {1e3 * extensions[j]:.3f} mm is outside 0 to '
                        f'{1e3 * most[j]:g} mm'
                    )
            pressures[3 * k : 3 * k + 3] = curve.pressures(np.clip(extensions, 0.0, most))
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
            jacobian[three, three] = by_length / curve.slopes(pressures[three])[:, None]
        return jacobian

    def two_chamber_configuration(self, bends: Array) -> Array:
        """Return the configuration for bends (2 sections,), a chamber of each section at rest."""
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
            If the arm tips over before it carries all of its weight and load, or its mounts tilt
            further than the model means.

        """
        bends = self._checked_configuration(configuration).reshape(-1, 3)
        count = len(self.sections)
        force = finite_vector(tip_force, 'tip_force')
        moment = finite_vector(tip_moment, 'tip_moment')
        pose = SaggedPose(
            section_tips=np.zeros((count, 4, 4)),
            mounts=np.zeros((count, 4, 4)),
            bends=bends.copy(),
            tilts=np.zeros((count, 2)),
            moments=np.zeros((count, 3)),
            residual=0.0,
        )
        if not self.gives:
            frames_into(bends, self._rigid, pose.tilts, pose.mounts, pose.section_tips)
            return pose
        # If the first try fails, the load grows in steps from no load, which decides the branch.
        for steps in (1, _LOAD_STEPS):
            give = np.zeros((count, 4))
            for share in np.linspace(0.0, 1.0, steps + 1)[1:]:
                stable, residual = self._solve(bends, share, force, moment, give, pose)
                if not stable:
                    break
            else:
                tilts = np.ascontiguousarray(give[:, :2])
                return replace(pose, tilts=tilts, residual=residual)
        raise ModelError(
            f'the arm finds no stable equilibrium under tip_force = {force.tolist()} N: at '
            f'{100 * share:.0f} % of weight and load it tips over, or gives by more than '
            f'{math.degrees(_MAX_GIVE_RAD):.0f} deg'
        )

    def _solve(
        self,
        bends: Array,
        share: float,
        force: Array,
        moment: Array,
        give: Array,
        pose: SaggedPose,
    ) -> tuple[bool, float]:
        """Solve for the give (sections, 4) under a share of the load; return stable, residual."""
        tip_weight = self._tip_weight * np.array([share, share, share, 1.0])
        jacobian, middles = np.empty((give.size, give.size)), np.empty((len(give), 3))
        try:
            converged, residual = solve_give(
                bends, self._rigid, self._materials, self._compliances_of(bends),
                share * self._weights, tip_weight, share * force, share * moment, give,
                pose.bends, pose.mounts,
                pose.section_tips, pose.moments, middles, jacobian,
            )  # fmt: skip
        except np.linalg.LinAlgError:
            return False, math.inf
        # More give calls for more moment than it causes as long as these are positive.
        stable = converged and bool(np.all(np.linalg.eigvals(jacobian).real > 0.0))
        return stable and float(np.abs(give).max()) <= _MAX_GIVE_RAD, float(residual)

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
        for what, load in (('tip_force', tip_force), ('tip_moment', tip_moment)):
            if not self.gives and np.any(finite_vector(load, what)):
                raise ModelError(
                    f'{what} = {np.asarray(load).tolist()}: without the angle correction the '
                    f'model knows no loads'
                )
        return self.shape_under(self.configuration_of(actuation), tip_force, tip_moment)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, 3 sections) by configuration."""
        values = self._checked_configuration(configuration)
        pose = self.sagged_pose(values)
        bends = values.reshape(-1, 3)
        give = np.hstack([pose.tilts, pose.bends[:, :2] - bends[:, :2]])
        jacobian = tip_derivative(
            bends, self._rigid, self._materials, self._compliances_of(bends),
            self._softenings_of(bends), self._weights, self._tip_weight, np.zeros(3),
            np.zeros(3), give,
        )  # fmt: skip
        return pose.section_tips[-1, :3, 3].copy(), jacobian

    def _compliances_of(self, bends: Array) -> Array:
        """Return L / (E I) (sections,) of arcs (sections, 3): walls thin as they stretch."""
        strains = bends[:, 2] / self._rest_lengths - 1.0
        return np.asarray(self._compliances * (1.0 + self._growths * np.maximum(strains, 0.0)))

    def _softenings_of(self, bends: Array) -> Array:
        """Return the derivative (sections,) of the compliances by the lengths."""
        stretched = bends[:, 2] > self._rest_lengths
        return np.asarray(self._compliances * self._growths / self._rest_lengths * stretched)

    def jacobian(self, actuation: Array, tip_force: Vector3 = ZERO3) -> Array:
        """Return the tip twist per pressure (6, 3 sections), base frame, linear first [m/Pa]."""
        pressures = self._checked_pressures(actuation)
        configuration = self.configuration_of(pressures)
        twists = self._twists(configuration, tip_force)
        jacobian = np.empty((6, pressures.size))
        for k, (section, curve) in enumerate(zip(self.sections, self.curves)):
            three = slice(3 * k, 3 * k + 3)
            by_length = np.vstack(
                [-2.0 / (3.0 * section.chamber_radius_m) * CHAMBER_DIRECTIONS.T, np.full(3, 1 / 3)]
            )
            jacobian[:, three] = twists[:, three] @ by_length * curve.slopes(pressures[three])
        return jacobian

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the pressures that bring the tip to a position [m] and, if given, an attitude.

        At most two chambers of a section carry pressure, as in the paper (eq. 10): two bends per
        section are free. Bends stay within `max_bending_angle_deg`. Without a guess several
        deterministic starts are tried and the least bent solution is returned; an attitude is met
        as far as these freedoms allow, and `converged` says whether it is.
        """
        target = pose_target(position, orientation, self.rest_length_m)
        start = None
        if guess is not None:
            start = self.configuration_of(guess).reshape(-1, 3)[:, :2].ravel()
        problem = TwoChamberProblem(self, finite_vector(tip_force, 'tip_force'))
        return find_pose(problem, target, start)

    def extensions(self, k: int, configuration: Array) -> Array:
        """Return the extensions (3,) [m] of the chambers of section k."""
        section = self.sections[k]
        bx, by, length = configuration[3 * k : 3 * k + 3]
        lengths = chambers_of_bend(np.array([bx, by]), length, section.chamber_radius_m)
        return lengths - section.bending_length_m

    def _twists(self, configuration: Array, tip_force: Vector3) -> Array:
        """Return the tip twist (6, dof) per configuration, by central differences of the pose."""
        twists = np.empty((6, configuration.size))
        steps = np.tile([_STEP, _STEP, _STEP * self.rest_length_m], len(self.sections))
        for i, step in enumerate(steps):
            moved = np.zeros(configuration.size)
            moved[i] = step
            after = self.sagged_pose(configuration + moved, tip_force).section_tips[-1]
            before = self.sagged_pose(configuration - moved, tip_force).section_tips[-1]
            twists[:, i] = displacement(before, after) / (2.0 * step)
        return twists

    def shape_under(
        self, configuration: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """Return the shape of a configuration (3 sections,) under weight and a load at the tip."""
        state = self.sagged_pose(configuration, tip_force, tip_moment)

        def sample_centerline(n: int) -> Array:
            return _centerline(state.bends, self._rigid, state, n)

        return Shape(
            state.section_tips[-1].copy(), state.section_tips, configuration, sample_centerline
        )

    def _checked_pressures(self, actuation: Array) -> Array:
        pressures = np.array(actuation, dtype=np.float64)
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
        values = np.array(configuration, dtype=np.float64)
        if values.shape != (3 * len(self.sections),):
            raise ValueError(
                f'configuration has shape {values.shape}, expected ({3 * len(self.sections)},)'
            )
        if not np.isfinite(values).all():
            raise ValueError(f'configuration {values.tolist()} is not finite')
        if not np.all(values[2::3] > 0.0):
            raise ValueError(f'lengths {values[2::3].tolist()} m: must be positive')
        return values


def _centerline(bends: Array, rigid: Array, state: SaggedPose, n: int) -> Array:
    """Return (n, 3) points evenly spaced along arcs and rigid parts."""
    ends = np.cumsum(bends[:, 2] + rigid)
    points = np.empty((n, 3))
    for row, s in enumerate(np.linspace(0.0, ends[-1], n)):
        k = min(int(np.searchsorted(ends, s)), len(ends) - 1)
        length = bends[k, 2]
        along = s - (ends[k] - length - rigid[k])
        if along > length:
            tip = state.section_tips[k]
            points[row] = tip[:3, 3] - (length + rigid[k] - along) * tip[:3, 2]
            continue
        part = np.array([[bends[k, 0] * along / length, bends[k, 1] * along / length, along]])
        mounts, tips = np.zeros((1, 4, 4)), np.zeros((1, 4, 4))
        frames_into(part, np.zeros(1), state.tilts[k : k + 1], mounts, tips)
        points[row] = (state.mounts[k] @ tips[0])[:3, 3]
    return points


def _volume_m3(section: ChamberSectionConfig) -> float:
    length = section.bending_length_m + section.rigid_length_m
    return math.pi * section.chamber_radius_m**2 * length


def _material(mount: MountConfig | None) -> tuple[float, float, float, float]:
    if mount is None:
        return 0.0, 0.0, 0.0, 0.0  # rigid
    return mount.diameter_m, mount.deforming_length_m, mount.c10_Pa, mount.c20_Pa
