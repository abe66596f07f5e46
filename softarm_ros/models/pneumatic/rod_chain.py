"""
Sections of air chambers as one Cosserat rod: mounts and arcs of silicone that bend under load.

`sagging_chain` tilts a mount at a point and bends an arc by the moment in its middle. Here both
are pieces of a rod, bent by the moment at every point. Mounts are Yeoh's material as before; their
law is linearised at the mean moment of the mount, which Newton's method finds. The bending
stiffness of an arc follows from its give, E I = L / give, and decreases with its mean stretch. The
other stiffnesses (stretch, shear, torsion) are those of a round incompressible bar of the chamber
radius with this E I. Under pressure and without load an arc has the curvature and the stretch of
the identified curves. Three bores per section produce them, with a thrust proportional to the
stiffness.

The part without chambers before an arc is its mount. It takes its length from the rigid end of the
previous section; the first mount lies behind the base and is clamped there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    MatrixProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
)
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.cosserat.state import RodState
from softarm_ros.models.cosserat.strain_kernels import OK
from softarm_ros.models.pneumatic.angle_correction_kernels import tilt_per_moment
from softarm_ros.models.pneumatic.chambers import CHAMBER_ANGLES_RAD, CHAMBER_DIRECTIONS
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, MountConfig

_TOLERANCE_RAD = 1e-10  # miss of the base by a solution
_SETTLED = 1e-8  # rad: change of a mount's tilt below which its law is not linearised again
_MAX_ROUNDS = 30
_NO_MOUNT = 1e-3  # of the arm's length: a shorter mount is omitted
_THRUST = 1e6  # N: no limit
_STEP = 1e-4  # of finite differences: relative change of the stiffness
_MOMENT_STEP = 1e-4  # of finite differences of a mount's law: of its scale of moments
_STRAIGHT = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
_ROUNDING = 1e-12  # rounding error of a strain
_FINE = 12  # rod points per requested point of a centreline


@dataclass(frozen=True)
class RodPose:
    """
    Pose of the rod in equilibrium.

    Attributes
    ----------
    section_tips : (sections, 4, 4)
        Ends of the sections, base frame.
    configuration : (3 sections,)
        Free bends [rad] and lengths [m] of the arcs.
    mounts : (mounts, 2)
        Moment on each mount across the arm [N m], in its own frame.
    force, moment : (3,)
        Load at the tip, base frame [N, N m].
    state : RodState

    """

    section_tips: Array
    configuration: Array
    mounts: Array
    force: Array
    moment: Array
    state: RodState


class RodChain:
    """
    Sections of given free bends and lengths, with compliant mounts and arcs.

    Parameters
    ----------
    sections, mount, fluid_density_kg_m3, tip_mass_kg, tip_offset_m
        As in `PneumaticArm`.
    gravity
        (3,) [m/s^2], base frame.
    steps
        Integration steps along each arc and each mount.

    Raises
    ------
    ModelError
        If an arc is rigid, or there is a mass beyond a tip without a rigid part.

    """

    gives = True

    def __init__(
        self,
        sections: Sequence[ChamberSectionConfig],
        mount: MountConfig,
        gravity: Array,
        fluid_density_kg_m3: float,
        tip_mass_kg: float,
        tip_offset_m: float,
        steps: int,
    ) -> None:
        for section in sections:
            if not section.bend_per_moment_rad_N_m > 0.0:
                raise ModelError(
                    f'{section.name}: bend_per_moment_rad_N_m is 0: an elastic rod needs a value '
                    'above 0; use angle_correction for rigid arcs'
                )
        if tip_mass_kg != 0.0 and tip_offset_m > 0.0 and sections[-1].rigid_length_m == 0.0:
            raise ModelError(
                f'{sections[-1].name}: rigid_length_m is 0: a mass beyond it needs a rigid part'
            )
        self._sections = tuple(sections)
        self._material = np.array(
            [mount.diameter_m, mount.deforming_length_m, mount.c10_Pa, mount.c20_Pa]
        )
        length = sum(s.bending_length_m + s.rigid_length_m for s in sections)
        soft = mount.deforming_length_m > _NO_MOUNT * length
        solid = 6.0 * mount.c10_Pa * math.pi * (0.5 * mount.diameter_m) ** 4 / 4.0
        self._mount_stiffness = _round_bar(solid, 0.5 * mount.diameter_m)
        self._most_give = tilt_per_moment(0.0, self._material)
        self._scale_N_m = 1.0 / self._most_give
        self._rest_lengths = np.array([s.bending_length_m for s in sections])
        self._growths = np.array([s.give_growth for s in sections])
        self._stiffness = [_arc_stiffness(s) for s in sections]
        # Sum of T r is E I times the free curvature; sum of T is -E A times the free stretch.
        self._to_thrusts = [
            np.linalg.inv(np.vstack([s.chamber_radius_m * CHAMBER_DIRECTIONS.T, np.ones(3)]))
            * np.array([law[0, 0], law[0, 0], -law[5, 5]])
            / s.bending_length_m
            for s, law in zip(sections, self._stiffness)
        ]
        segments: list[RodSegmentConfig] = []
        self._arcs, self._mounts, self._mount_lengths = [], [], []
        self._behind_m = mount.deforming_length_m if soft else 0.0
        self._ends: list[int] = []
        rigid_before = self._behind_m
        for k, section in enumerate(sections):
            before = sections[k - 1] if k else None
            within = min(mount.deforming_length_m, rigid_before) if soft else 0.0
            if within > 0.0:
                weight = _mass_per_length(before, fluid_density_kg_m3) if before else 0.0
                self._mounts.append(len(segments))
                self._mount_lengths.append(within)
                profile = MatrixProfile(
                    stiffness_matrix=_rows(self._mount_law(np.zeros(2), within)[0]),
                    mass_per_length_kg_m=weight,
                )
                segments.append(
                    RodSegmentConfig(name=f'mount_{k}', length_m=within, profile=profile)
                )
            if k:
                self._ends.append(len(segments) - 1)
            self._arcs.append(len(segments))
            last = k == len(sections) - 1
            following = mount.deforming_length_m if soft and not last else 0.0
            rigid = max(section.rigid_length_m - following, 0.0)
            weight = _mass_per_length(section, fluid_density_kg_m3)
            profile = MatrixProfile(
                stiffness_matrix=_rows(self._stiffness[k]), mass_per_length_kg_m=weight
            )
            connector = _rigid_end(
                weight * rigid, rigid, tip_mass_kg if last else 0.0, tip_offset_m
            )
            segments.append(
                RodSegmentConfig(
                    name=f'arc_{k}',
                    length_m=section.bending_length_m,
                    profile=profile,
                    connector=connector,
                )
            )
            rigid_before = section.rigid_length_m
        self._ends.append(len(segments) - 1)
        bores = [
            RodCableConfig(
                name=f'arc_{k}_{j}',
                routes=(
                    CableRoute(
                        segment=f'arc_{k}', radius_m=s.chamber_radius_m, angle_deg=float(angle)
                    ),
                ),
                max_tension_N=_THRUST,
                bore=True,
            )
            for k, s in enumerate(sections)
            for j, angle in enumerate(np.degrees(CHAMBER_ANGLES_RAD))
        ]
        x, y, z = (float(value) for value in gravity)
        self.rod = CosseratRod(
            CosseratConfig(
                segments=tuple(segments),
                cables=tuple(bores),
                gravity_m_s2=(x, y, z),
                steps=steps,
            )
        )
        self._thrusts = np.zeros(len(bores))

    def pose(
        self, configuration: Array, force: Array, moment: Array, near: RodPose | None = None
    ) -> RodPose:
        """
        Return the pose for free bends and lengths (3 sections,) under tip force and moment (3,).

        Raises
        ------
        ModelError
            If there is no stable equilibrium.

        """
        self._set(configuration, np.ones(len(self._sections)), force, moment)
        rod = self.rod
        moments = np.zeros((len(self._mounts), 2)) if near is None else near.mounts
        start = None if near is None else near.state.start
        for _ in range(_MAX_ROUNDS):
            laws = self._set_mounts(moments)
            status = rod.equilibrate(start, _TOLERANCE_RAD)[0]
            if status != OK:
                state = rod.solve(self._thrusts, force, moment)
                if not state.stable:
                    raise ModelError(
                        f'no equilibrium under tip_force = {force.tolist()} N: {state.message}'
                    )
            start = rod.start
            before, moments = moments, self._mount_moments(laws)
            if float(np.abs(moments - before).max(initial=0.0)) * self._most_give < _SETTLED:
                break
        else:
            raise ModelError('no equilibrium of the mounts found')
        state = rod.resumed(start)
        if not state.stable:
            raise ModelError(
                f'no equilibrium under tip_force = {force.tolist()} N: {state.message}'
            )
        tips = state.segment_tips[self._ends]
        tips[:, 2, 3] -= self._behind_m
        return RodPose(tips, configuration.copy(), moments, force, moment, state)

    def tip_jacobian(self, configuration: Array, pose: RodPose) -> Array:
        """Return d tip / d configuration (3, 3 sections) at a pose."""
        return self.tip_twists(pose)[:3]

    def tip_twists(self, pose: RodPose) -> Array:
        """Return the twist of the tip by configuration (6, 3 sections), linear rows first."""
        count = len(self._sections)
        rod, free = self.rod, pose.configuration
        softness = np.ones(count)
        self._set(free, softness, pose.force, pose.moment)
        self._set_mounts(pose.mounts)
        rod.resume(pose.state.start)
        by_thrust = rod.derivatives().tip_by_tension
        tip, twists = rod.tip_pose(), np.zeros((6, 3 * count))
        _, slopes = self._softening(free)
        for k in range(count):
            three = slice(3 * k, 3 * k + 3)
            twists[:, three] = by_thrust[:, three] @ self._thrusts_by(k, free)
            if slopes[k] != 0.0:
                # A longer arc is softer and sags more, at the same free shape.
                softness[k] = 1.0 + _STEP
                self._set(free, softness, pose.force, pose.moment)
                status = rod.equilibrate(pose.state.start, _TOLERANCE_RAD)[0]
                if status != OK:
                    raise ModelError('no derivative: the equilibrium is singular')
                twists[:, 3 * k + 2] += displacement(tip, rod.tip_pose()) / _STEP * slopes[k]
                softness[k] = 1.0
        return twists

    def centerline(self, state: RodPose, n: int) -> Array:
        """Return (n, 3) points [m] from the start of the first arc to the tip, evenly spaced."""
        points = state.state.centerline(_FINE * n + 1)
        if self._behind_m > 0.0:
            along = np.linspace(0.0, self.rod.rest_length_m, len(points))
            begin = state.state.segment_tips[0, :3, 3]
            points = np.vstack([begin, points[along > self._behind_m]])
            points[:, 2] -= self._behind_m
        at = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))
        wanted = np.linspace(0.0, at[-1], n)
        line = np.stack([np.interp(wanted, at, column) for column in points.T], axis=1)
        line[-1] = state.section_tips[-1, :3, 3]
        return line

    # Loads and laws.

    def _set(self, configuration: Array, softness: Array, force: Array, moment: Array) -> None:
        """Set stiffnesses of the arcs, thrusts of the chambers and tip loads of the rod."""
        factors = self._softening(configuration)[0] / softness
        thrusts = np.empty(3 * len(self._sections))
        for k, (place, stiffness) in enumerate(zip(self._arcs, self._stiffness)):
            self.rod.set_law(place, factors[k] * stiffness, _STRAIGHT)
            three = slice(3 * k, 3 * k + 3)
            free = configuration[three] - (0.0, 0.0, self._rest_lengths[k])
            thrusts[three] = factors[k] * self._to_thrusts[k] @ free
        self._thrusts = thrusts
        self.rod.load(thrusts, force, moment)

    def _softening(self, configuration: Array) -> tuple[Array, Array]:
        """Return stiffness over stiffness at rest (sections,), and d ln give / d length [1/m]."""
        strains = configuration.reshape(-1, 3)[:, 2] / self._rest_lengths - 1.0
        give = 1.0 + self._growths * np.maximum(strains, 0.0)
        # At rest, chambers can only stretch: the slope is that of the stretched side.
        slope = self._growths / self._rest_lengths * (strains > -_ROUNDING) / give
        return 1.0 / give, slope

    def _thrusts_by(self, k: int, configuration: Array) -> Array:
        """Return d thrusts / d configuration (3, 3) of a section at constant stiffness."""
        return np.asarray(self._softening(configuration)[0][k] * self._to_thrusts[k])

    def _mount_law(self, across: Array, length: float) -> tuple[Array, Array]:
        """
        Return stiffness and rest strain of a mount's law, linearised at a moment (2,) [N m].

        A mount of any `length` [m] tilts by alpha(M), like one of `deforming_length_m`.
        """
        moment = math.hypot(across[0], across[1])
        give = tilt_per_moment(moment, self._material)
        stiffness, rest = self._mount_stiffness.copy(), _STRAIGHT.copy()
        stiffness[0, 0] = stiffness[1, 1] = length / give
        if moment > 0.0:
            h = _MOMENT_STEP * self._scale_N_m
            low = max(moment - h, 0.0)
            more, less = (tilt_per_moment(m, self._material) for m in (moment + h, low))
            slope = (more - less) / (moment + h - low)
            x, y = across[0] / moment, across[1] / moment
            change = length / (give + slope * moment) - length / give
            stiffness[0, 0] += change * x * x
            stiffness[0, 1] = stiffness[1, 0] = change * x * y
            stiffness[1, 1] += change * y * y
            rest[:2] = -slope * moment / length * across
        return stiffness, rest

    def _set_mounts(self, moments: Array) -> list[tuple[Array, Array]]:
        """Set and return the laws of the rod's mounts, linearised at moments (mounts, 2)."""
        laws = [self._mount_law(*pair) for pair in zip(moments, self._mount_lengths)]
        for place, law in zip(self._mounts, laws):
            self.rod.set_law(place, *law)
        return laws

    def _mount_moments(self, laws: Sequence[tuple[Array, Array]]) -> Array:
        """Return the mean moment (mounts, 2) [N m] on each mount, by the rod's present laws."""
        found = [
            (stiffness @ (self.rod.mean_strain(place) - rest))[:2]
            for place, (stiffness, rest) in zip(self._mounts, laws)
        ]
        return np.array(found).reshape(-1, 2)


def _arc_stiffness(section: ChamberSectionConfig) -> Array:
    """Return the stiffness (6, 6) of a round incompressible bar with the arc's give and radius."""
    bending = section.bending_length_m / section.bend_per_moment_rad_N_m
    return _round_bar(bending, section.chamber_radius_m)


def _round_bar(bending: float, radius: float) -> Array:
    axial = 4.0 * bending / radius**2
    return np.diag([bending, bending, 2.0 / 3.0 * bending, axial / 3.0, axial / 3.0, axial])


def _rows(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())


def _mass_per_length(section: ChamberSectionConfig, fluid_density_kg_m3: float) -> float:
    """Return the mass per length [kg/m] of a section minus that of the displaced fluid."""
    length = section.bending_length_m + section.rigid_length_m
    lifted = fluid_density_kg_m3 * math.pi * section.chamber_radius_m**2
    return section.mass_kg / length - lifted


def _rigid_end(own: float, length: float, tip_mass: float, tip_offset: float) -> RigidConnector:
    """Return the rigid end of a section, including the mass beyond the tip."""
    if length == 0.0:
        return RigidConnector(mass_kg=own + tip_mass)
    total = own + tip_mass
    first = 0.5 * own * length + tip_mass * (length + tip_offset)
    return RigidConnector(
        length_m=length, mass_kg=total, centre_of_mass_m=first / total if total else None
    )
