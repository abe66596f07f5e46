"""
Sections of water chambers as one extensible Cosserat rod, whose chambers are bores that push.

A chamber with pressure p and cross-section A has the energy -p V. Its volume V is A times the
length of its line, measured along the normals of the cross-sections. The lengths of the three
chambers of a section are linear in its bends and elongation. So a configuration is held by the
pressures that produce these lengths: there are as many unknowns as conditions, and the derivative
of length by thrust is the rod's symmetric one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    MatrixProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
)
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.cosserat.state import RodStart, RodState
from softarm_ros.models.hydraulics.held_sections import HeldSections, turned_centerline
from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.models.hydraulics.sections import chamber_levers

_TOLERANCE_RAD = 1e-10  # miss of the base by a solution
_HELD = 1e-8  # m and rad: tolerance of a held configuration
_LARGEST_THRUST = 20.0  # times the thrust at the largest pressure: limit during a search
_SHEAR_SHARE = 1.0 / 3.0  # of the axial stiffness: G A of an incompressible section
_MAX_STEP = 0.3  # rad
_MAX_ITERATIONS, _HALVINGS = 25, 3


@dataclass(frozen=True)
class RodBalance:
    """
    Equilibrium of the rod under pressures and a load at its tip.

    Attributes
    ----------
    pressures : (m,)
        Pressures of the chambers [Pa].
    force, moment : (3,)
        Load at the tip, in the frame of the mount [N, N m].
    configuration : (3 s,)
        Bends [rad] and elongations [m] of the sections.
    tip : (4, 4)
        Pose of the tip in the frame of the mount [m].
    twists_by_pressure : (6, m)
        Twist of the tip per pressure, in the frame of the mount, linear rows first
        [m/Pa, rad/Pa].
    configuration_by_pressure : (3 s, m)
    start : RodStart
        Start of a search for a similar balance.

    """

    pressures: Array
    force: Array
    moment: Array
    configuration: Array
    tip: Array
    twists_by_pressure: Array
    configuration_by_pressure: Array
    start: RodStart

    @cached_property
    def pressure_by_configuration(self) -> Array:
        """Derivative of the pressures by the configuration (m, 3 s) [Pa/rad, Pa/m]."""
        return np.asarray(np.linalg.inv(self.configuration_by_pressure))


class WaterRod(HeldSections[RodBalance]):
    """
    Cosserat rod model of an arm of sections with three water chambers each.

    Only stable shapes are returned: a configuration that is unstable under its pressures has no
    balance. Results depend on the arguments alone; a nearby solution shortens the search, and the
    result has the same accuracy.

    Parameters
    ----------
    sections, chambers, surroundings, pressure_min_Pa, pressure_max_Pa, preload_Pa
        As in `HeldSections`.
    steps : int
        Integration steps along each section.

    """

    NEAR: ClassVar[float] = 0.6

    def __init__(
        self,
        sections: Sequence[HydraulicSectionConfig],
        chambers: Sequence[ChamberConfig],
        surroundings: Surroundings,
        pressure_min_Pa: Array,
        pressure_max_Pa: Array,
        preload_Pa: float,
        steps: int,
    ) -> None:
        super().__init__(
            sections,
            chambers,
            surroundings,
            pressure_min_Pa,
            pressure_max_Pa,
            preload_Pa,
            'cosserat',
        )
        turn = self._mount[:3, :3]
        gravity = np.asarray(surroundings.gravity_m_s2, dtype=float)
        payload = surroundings.payload()
        self._weight = (payload.mass_kg - payload.displaced_fluid_kg) * gravity
        self.config = rod_of_sections(
            sections, chambers, surroundings, self.pressure_max, gravity @ turn, steps
        )
        self.rod = CosseratRod(self.config)
        owner = [chamber.section for chamber in chambers]
        self._areas = np.array([sections[k].chamber_area_m2 for k in owner])
        self._lengths = np.array([sections[k].length_m for k in owner])
        # Derivatives of the chamber lengths by the configuration, and the inverse.
        self._length_by_configuration = self.pressure_map.T / self._areas[:, None]
        self._configuration_by_length = np.linalg.inv(self._length_by_configuration)
        self._at_rest = self.solved(np.full(len(self.chambers), preload_Pa), ZERO3, ZERO3)
        self._rest = self._at_rest.configuration

    # Configuration -> shape, pressures.

    def balance(
        self, configuration: Array, tip_force: Vector3, near: RodBalance | None
    ) -> RodBalance:
        """Return the balance that holds a configuration (3 s,) under a load at the tip [N]."""
        for start in (near, self._at_rest):
            if start is not None:
                found = self._held(configuration, tip_force, start)
                if found is not None:
                    return found
        raise ModelError(
            'no pressures hold the arm in a stable shape at the configuration '
            f'{np.round(configuration, 4).tolist()}'
        )

    def configuration_of_held(self, held: RodBalance) -> Array:
        """Return the configuration (3 s,) of a balance."""
        return held.configuration

    def is_stable(self, held: RodBalance) -> bool:
        """Return True: `balance` returns stable shapes only."""
        return True

    def tip_of(self, held: RodBalance) -> Array:
        """Return the pose (4, 4) of the tip in the base frame."""
        return np.asarray(self._mount @ held.tip)

    def twists_of(self, held: RodBalance) -> Array:
        """Return the twist of the tip (6, 3 s) by configuration, linear rows first."""
        return self._turned(held.twists_by_pressure @ held.pressure_by_configuration)

    def pressures_of(self, held: RodBalance) -> Array:
        """Return the pressures (m,) [Pa] of a balance."""
        return held.pressures

    def pressure_rates_of(self, held: RodBalance) -> Array:
        """Return d pressures / d configuration (m, 3 s) at a balance."""
        return held.pressure_by_configuration

    def shape_of_held(self, held: RodBalance) -> Shape:
        """Return the shape of a balance."""
        self.rod.load(-self._areas * held.pressures, held.force, held.moment)
        state = self.rod.resumed(held.start)
        return self._shape(state, held.configuration)

    # Pressures -> shape.

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the stable shape under pressures (m,) [Pa] and a load at the tip [N, N m].

        Raises
        ------
        ModelError
            For pressures out of range, no equilibrium, or an unstable one.

        """
        pressures = self._checked_actuation(actuation)
        return self.shape_of_held(self.solved(pressures, tip_force, tip_moment))

    def configuration_of(self, actuation: Array) -> Array:
        """Return the configuration (3 s,) under pressures (m,); errors as `forward`."""
        pressures = self._checked_actuation(actuation)
        return self.solved(pressures, ZERO3, ZERO3).configuration

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per pressure (6, m), base frame, linear rows first."""
        pressures = self._checked_actuation(actuation)
        return self._turned(self.solved(pressures, ZERO3, ZERO3).twists_by_pressure)

    def solved(
        self,
        pressures: Array,
        tip_force: Vector3,
        tip_moment: Vector3,
        near: RodBalance | None = None,
        search: bool = True,
    ) -> RodBalance:
        """
        Return the balance under pressures (m,) [Pa] and a load at the tip, base frame.

        If the first attempt fails, `search` looks for another stable shape, which takes longer.

        Raises
        ------
        ModelError
            If there is no stable equilibrium.

        """
        turn = self._mount[:3, :3]
        force = (finite_array(tip_force, (3,), 'tip_force') + self._weight) @ turn
        moment = finite_array(tip_moment, (3,), 'tip_moment') @ turn
        tensions = -self._areas * pressures
        rod = self.rod
        rod.load(tensions, force, moment)
        start = None if near is None else near.start
        status, _, _, _, _ = rod.equilibrate(start, _TOLERANCE_RAD)
        found = rod.derivatives() if status == 0 else None
        if found is None or not found.stable:
            if not search:
                raise ModelError(f'pressures {np.round(pressures).tolist()} Pa: no stable shape')
            state = rod.solve(tensions, force, moment)
            if not state.stable:
                raise ModelError(f'pressures {np.round(pressures).tolist()} Pa: {state.message}')
            found = rod.derivatives()
        # Tension is minus pressure times area; contraction is minus the gain in length.
        by_pressure = self._configuration_by_length @ found.contraction_by_tension * self._areas
        return RodBalance(
            pressures,
            force,
            moment,
            self._configuration_by_length @ (rod.path_lengths - self._lengths),
            rod.tip_pose(),
            -found.tip_by_tension * self._areas,
            by_pressure,
            rod.start,
        )

    # Inside.

    def _held(self, wanted: Array, tip_force: Vector3, start: RodBalance) -> RodBalance | None:
        """Return the balance of a configuration (3 s,) by Newton; None if it does not converge."""
        balance, size, share = start, np.inf, 1.0
        for _ in range(_MAX_ITERATIONS):
            miss = wanted - balance.configuration
            # Keep the steps small enough for the shooting method to follow.
            fraction = share * min(1.0, _MAX_STEP / max(float(np.abs(miss).max()), _MAX_STEP))
            change = fraction * (balance.pressure_by_configuration @ miss)
            left = np.inf
            try:
                trial = self.solved(
                    balance.pressures + change, tip_force, ZERO3, balance, search=False
                )
            except ModelError:
                pass
            else:
                left = float(np.abs(wanted - trial.configuration).max())
            if left < _HELD:
                return trial
            # The first step also applies the load and may miss by more than the start.
            if left < size:
                balance, size, share = trial, left, 1.0
                continue
            share *= 0.5
            if share < 0.5**_HALVINGS:
                return None
        return None

    def _turned(self, twists: Array) -> Array:
        """Return twists (6, k), given in the frame of the mount, in the base frame."""
        return np.asarray(self._mount[:3, :3] @ twists.reshape(2, 3, -1)).reshape(6, -1)

    def _shape(self, state: RodState, configuration: Array) -> Shape:
        turn = self._mount[:3, :3]
        return Shape(
            tip=self._mount @ state.tip,
            section_tips=self._mount @ state.segment_tips,
            configuration=configuration.copy(),
            sample_centerline=partial(turned_centerline, turn, state.centerline),
        )


def rod_of_sections(
    sections: Sequence[HydraulicSectionConfig],
    chambers: Sequence[ChamberConfig],
    surroundings: Surroundings,
    pressure_max_Pa: Array,
    gravity_m_s2: Array,
    steps: int,
) -> CosseratConfig:
    """
    Return the rod with bores for sections and chambers; gravity (3,) in the frame of the mount.

    The mass along a section is reduced by the fluid it displaces; a plate is at the section's end.
    A section states no shear stiffness, so a third of its axial stiffness is used, as for an
    incompressible solid (0.1 % of shear under the arm's weight).
    """
    segments = []
    for section in sections:
        plate = section.plate_mass_kg or 0.0
        lifted = surroundings.fluid_density_kg_m3 * section.displaced_volume_m3
        axial, bending = section.axial_stiffness_N, section.bending_stiffness_N_m2
        shear = _SHEAR_SHARE * axial
        stiffness = (bending, bending, section.torsion_stiffness_N_m2, shear, shear, axial)
        bend_x, bend_y = np.radians(section.rest_bend_deg) / section.length_m
        segments.append(
            RodSegmentConfig(
                name=section.name,
                length_m=section.length_m,
                profile=MatrixProfile(
                    stiffness_matrix=tuple(map(tuple, np.diag(stiffness).tolist())),
                    mass_per_length_kg_m=(section.mass_kg - plate - lifted) / section.length_m,
                ),
                rest_curvature_1_m=(-float(bend_y), float(bend_x), 0.0),
                connector=RigidConnector(mass_kg=plate),
            )
        )
    bores = []
    for chamber, lever, most in zip(chambers, chamber_levers(sections, chambers), pressure_max_Pa):
        section = sections[chamber.section]
        route = CableRoute(
            segment=section.name, radius_m=float(lever), angle_deg=chamber.angle_deg
        )
        thrust = _LARGEST_THRUST * section.chamber_area_m2 * float(most)
        bores.append(
            RodCableConfig(name=chamber.name, routes=(route,), max_tension_N=thrust, bore=True)
        )
    x, y, z = (float(value) for value in gravity_m_s2)
    return CosseratConfig(
        segments=tuple(segments), cables=tuple(bores), gravity_m_s2=(x, y, z), steps=steps
    )
