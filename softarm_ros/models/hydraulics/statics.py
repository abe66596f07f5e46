"""
Statics of a water-hydraulic arm: chamber pressures <-> bends and elongations of its sections.

Chen et al. (Micromachines 2022, 13, 130), eq. 13 to 25 at rest, with the weight by virtual work
(docs/models_hydraulics.md). The configuration of a section is (b_x, b_y, elongation): three
numbers, three chambers. Torsion is not driven: it follows from balance. The weight of a bent
distal section twists the proximal one by some ten degrees.

From a configuration to pressures the statics are closed but for the torsion: one small Newton
search (`held_shape`), then a linear map. From pressures to the configuration the equilibrium is
followed from rest; where it ends (a fold) that is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import rotation_x, rotation_y
from softarm_ros.models.arm_model import (
    ZERO3,
    InverseSolution,
    ModelError,
    Posture,
    Shape,
    Vector3,
)
from softarm_ros.models.dynamics.layout import Loads
from softarm_ros.models.dynamics.tangents import Equilibrium, equilibrium
from softarm_ros.models.hydraulics.held_posture import HeldPosture
from softarm_ros.models.hydraulics.held_shape import HeldShape, ShapeHolder
from softarm_ros.models.hydraulics.inverse import HeldShapeProblem
from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.models.hydraulics.sections import chamber_drive
from softarm_ros.models.hydraulics.seen_kernels import seen_configuration
from softarm_ros.models.inverse import find_pose, pose_target

_RANGE_TOLERANCE = 0.01  # of the pressure range, by which an actuation may leave it
_LARGEST_CONDITION = 1e3  # of pressures to resultants, in units of lever and area
_NEAR = 0.15  # rad and m: a balance this near shortens the search


class HydraulicStatics:
    """
    The static model of an arm of sections with three water chambers each.

    Parameters
    ----------
    sections, chambers
        From base to tip; the chambers in the order of every actuation.
    surroundings : Surroundings
        Gravity, fluid, tip load. Without gravity this is the constant-curvature model.
    pressure_min_Pa, pressure_max_Pa : (m,)
        Range of the chambers, gauge.
    preload_Pa : float
        Pressure every chamber has when the arm is switched on; also what the preferred
        configuration leaves in the least filled chamber of a section.
    segments : int
        Pieces of constant strain a section (the paper has 1).
    name : str
        Of the model.

    Raises
    ------
    ModelError
        If a section has not three chambers, or they cannot bend it both ways.

    """

    def __init__(
        self,
        sections: Sequence[HydraulicSectionConfig],
        chambers: Sequence[ChamberConfig],
        surroundings: Surroundings,
        pressure_min_Pa: Array,
        pressure_max_Pa: Array,
        preload_Pa: float,
        segments: int = 1,
        name: str = 'hydraulic_statics',
    ) -> None:
        self.name = name
        self.sections, self.chambers = tuple(sections), tuple(chambers)
        self._section_lengths = np.array([section.length_m for section in sections])
        self.drive = chamber_drive(sections, chambers, segments, surroundings)
        self.arm = self.drive.arm
        tilt_x, tilt_y = np.radians(surroundings.base_tilt_deg)
        self._mount = np.eye(4)
        self._mount[:3, :3] = rotation_x(tilt_x) @ rotation_y(tilt_y)
        self.loads: Loads = self.arm.loads(surroundings.gravity_m_s2 @ self._mount[:3, :3])
        self.holder = ShapeHolder(self.arm, self.loads)
        self.pressure_min = np.asarray(pressure_min_Pa, dtype=float)
        self.pressure_max = np.asarray(pressure_max_Pa, dtype=float)
        self.preload_Pa = preload_Pa
        # Resultants conjugate to the configuration, per pressure (3 s, m) [m^3, m^2].
        firsts = segments * np.arange(len(self.sections))
        rows = self.drive.map[firsts]  # (s, 4, m): force, moments about x, y, z
        self.pressure_map = np.stack([rows[:, 2], -rows[:, 1], rows[:, 0]], axis=1).reshape(
            -1, len(self.chambers)
        )
        levers = [s.chamber_area_m2 * s.chamber_pitch_radius_m for s in self.sections]
        areas = [s.chamber_area_m2 for s in self.sections]
        unit = np.stack([levers, levers, areas], axis=1).reshape(-1, 1)
        if np.linalg.cond(self.pressure_map / unit) > _LARGEST_CONDITION:
            raise ModelError('the chambers of a section lie on one side: they cannot bend it')
        self._to_pressure = np.linalg.inv(self.pressure_map)
        self._rest = self.configuration_of(np.full(len(self.chambers), preload_Pa))

    # Names and sizes.

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the chambers."""
        return tuple(chamber.name for chamber in self.chambers)

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Bending-vector components [rad] and elongation [m] of every section."""
        return tuple(
            f'{section.name}_{part}'
            for section in self.sections
            for part in ('bend_x', 'bend_y', 'elongation')
        )

    @property
    def rest_length_m(self) -> float:
        """Length of the arm without load [m]."""
        return self.arm.rest_length_m

    @property
    def rest_configuration(self) -> Array:
        """Return the configuration (3 s,) under the preload."""
        return self._rest.copy()

    @property
    def configuration_scale(self) -> Array:
        """
        Return (3 s,): one radian, and a tenth of the elongation that takes as much pressure.

        Elongation moves the tip by millimetres; it is there to keep the chambers filled, not to
        track with.
        """
        scale = []
        for section in self.sections:
            lever = section.axial_stiffness_N * section.chamber_pitch_radius_m
            scale += [1.0, 1.0, 0.2 * section.bending_stiffness_N_m2 / lever]
        return np.array(scale)

    # Configuration -> shape, pressures.

    def held(self, configuration: Array, near: HeldShape | None = None) -> HeldShape:
        """
        Return the balance that holds a configuration (3 s,) without load at the tip.

        `near` is that of a similar configuration: the search from there is short.

        Raises
        ------
        ModelError
            For a wrong shape, a number that is not finite, or if there is no balance.

        """
        wanted = self._checked_configuration(configuration)
        if near is not None:
            away = np.abs(self.holder.configuration_of(near.strains) - wanted)
            if float(away.max()) >= _NEAR:
                near = None
        return self.holder.solve(wanted, near=near)

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """Return the posture of a configuration (3 s,), from that of a similar one if given."""
        values = self._checked_configuration(configuration)
        start = near.held if isinstance(near, HeldPosture) else None
        return HeldPosture(self, values, self.held(values, start))

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape of a configuration (3 s,), twisted as the weight twists it."""
        return self.shape_of_held(self.held(configuration))

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] of configurations (n, 3 s)."""
        rows = np.atleast_2d(np.asarray(configurations, dtype=float))
        tips = [self.tip_pose(self.held(row).strains)[:3, 3] for row in rows]
        return np.array(tips).reshape(-1, 3)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, 3 s) by configuration."""
        return self.tip_and_jacobian_of(self.held(configuration))

    def tip_and_jacobian_of(self, held: HeldShape) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, 3 s) at a balance."""
        jacobian = self.tip_twists(held.strains)[:3] @ held.strains_by_configuration
        return self.tip_pose(held.strains)[:3, 3], jacobian

    def tip_pose(self, strains: Array) -> Array:
        """Return the pose (4, 4) of the tip in the base frame."""
        return np.asarray(self._mount @ self.arm.node_poses(strains)[-1])

    def tip_twists(self, strains: Array) -> Array:
        """Return the tip twist per strain rate (6, 4 n), base axes, linear rows first."""
        rows = self.arm.tip_jacobian(strains).reshape(2, 3, -1)
        return np.asarray(self._mount[:3, :3] @ rows).reshape(6, -1)

    def actuation_of(self, configuration: Array) -> Array:
        """Return the pressures (m,) [Pa] that hold a configuration; they may lie out of range."""
        return self.pressures_of(self.held(configuration))

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d pressures / d configuration (m, 3 s)."""
        return self.pressure_rates_of(self.held(configuration))

    def pressures_of(self, held: HeldShape) -> Array:
        """Return the pressures (m,) [Pa] of a balance."""
        return np.asarray(self._to_pressure @ held.resultants)

    def pressure_rates_of(self, held: HeldShape) -> Array:
        """Return d pressures / d configuration (m, 3 s) at a balance."""
        return np.asarray(self._to_pressure @ held.resultants_by_configuration)

    def preferred_configuration(self, configuration: Array) -> Array:
        """
        Return sections bent alike, with the least pressures that keep every chamber filled.

        The least filled chamber of a section gets the preload; less would let it suck air or
        vapour when the arm's motion stretches it.
        """
        values = self._checked_configuration(configuration)
        return self.preferred_from(values, self.held(values))

    def preferred_from(self, configuration: Array, held: HeldShape) -> Array:
        """Return `preferred_configuration` of a balance that is known already."""
        values, pressures = configuration.reshape(-1, 3), self.pressures_of(held)
        wanted = values.copy()
        wanted[:, :2] = values[:, :2].mean(axis=0)
        for k, section in enumerate(self.sections):
            own = [i for i, chamber in enumerate(self.chambers) if chamber.section == k]
            missing = self.preload_Pa - float(pressures[own].min())
            stretch = len(own) * section.chamber_area_m2 / section.axial_stiffness_N
            wanted[k, 2] += missing * stretch * section.length_m
        return wanted.ravel()

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """
        Return the configuration (3 s,) seen in measured tips (s, 4, 4); None if some are missing.

        Each section is treated as a helix: the turn between its ends gives the bend, their
        distance the elongation.
        """
        tips = np.asarray(section_tips, dtype=float)
        if tips.shape != (len(self.sections), 4, 4):
            return None
        if not np.isfinite(tips).all():
            return np.full(3 * len(self.sections), np.nan)
        seen = np.ascontiguousarray(self._mount.T @ tips)  # from the mount on
        return seen_configuration(seen, self._section_lengths)

    # Pressures -> shape.

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under pressures (m,) [Pa] and a load at the tip [N, N m].

        Raises
        ------
        ModelError
            For pressures out of range, or if the loads cannot be followed from rest to a stable
            equilibrium (a fold, a buckling load).

        """
        return self._shape(self._equilibrium(actuation, tip_force, tip_moment).strains)

    def configuration_of(self, actuation: Array) -> Array:
        """Return the configuration (3 s,) of pressures (m,), errors as `forward`."""
        return self.holder.configuration_of(self._equilibrium(actuation).strains)

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per pressure (6, m), by the implicit function theorem."""
        rest = self._equilibrium(actuation)
        forces = self.holder.hold @ self.pressure_map
        by_pressure = np.linalg.solve(rest.stiffness, forces)
        return np.asarray(self.tip_twists(rest.strains) @ by_pressure)

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return pressures (m,) within their range that put the tip at a position [m].

        `orientation` (3, 3) may be given as well; `guess` are pressures to start from. The search
        prefers sections bent alike (see `preferred_configuration`).
        """
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else self.configuration_of(guess)
        problem = HeldShapeProblem(self, tip_force, target.with_orientation)
        return find_pose(problem, target, start)

    # Inside.

    def shape_of_held(self, held: HeldShape) -> Shape:
        """Return the shape of a balance."""
        return self._shape(held.strains)

    def loaded(self, tip_force: Vector3, tip_moment: Vector3 = ZERO3) -> Loads:
        """Return gravity with a load at the tip."""
        force, moment = np.asarray(tip_force, float), np.asarray(tip_moment, float)
        if not (force.any() or moment.any()):
            return self.loads
        turn = self._mount[:3, :3]
        return self.arm.loads(self.loads.gravity, tip_force=force @ turn, tip_moment=moment @ turn)

    def _equilibrium(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Equilibrium:
        pressures = self._checked_actuation(actuation)
        loads = self.loaded(tip_force, tip_moment)
        loads = loads._replace(drive=self.drive.drive(pressures))
        rest = equilibrium(self.arm, loads)
        if not (rest.converged and rest.stable):
            raise ModelError(
                f'no equilibrium at {np.round(pressures).tolist()} Pa: {rest.message}'
            )
        return rest

    def _checked_actuation(self, actuation: Array) -> Array:
        pressures = np.asarray(actuation, dtype=float)
        if pressures.shape != (len(self.chambers),):
            raise ModelError(
                f'actuation has shape {pressures.shape}; expected ({len(self.chambers)},)'
            )
        slack = _RANGE_TOLERANCE * (self.pressure_max - self.pressure_min)
        for chamber, value, low, high, more in zip(
            self.chambers, pressures, self.pressure_min, self.pressure_max, slack
        ):
            if not math.isfinite(value):
                raise ModelError(f'{chamber.name} = {value}: expected a finite pressure in Pa')
            if not low - more <= value <= high + more:
                raise ModelError(
                    f'{chamber.name} = {value:.6g} Pa outside [{low:.6g}, {high:.6g}] Pa'
                )
        return pressures

    def _checked_configuration(self, configuration: Array) -> Array:
        values = np.array(configuration, dtype=float)
        names = self.configuration_names
        if values.shape != (len(names),):
            raise ModelError(
                f'configuration has shape {values.shape}; expected ({len(names)},) '
                f'for {", ".join(names)}'
            )
        for name, value in zip(names, values):
            if not math.isfinite(value):
                raise ModelError(f'{name} = {value}: expected a finite number')
        return values

    def _shape(self, strains: Array) -> Shape:
        shape, turn = self.arm.shape(strains), self._mount[:3, :3]
        return Shape(
            tip=self._mount @ shape.tip,
            section_tips=self._mount @ shape.section_tips,
            configuration=self.holder.configuration_of(strains),
            sample_centerline=lambda n: shape.sample_centerline(n) @ turn.T,
        )
