"""
Statics of a water-hydraulic arm: chamber pressures <-> bends and elongations of its sections.

Chen et al. (Micromachines 2022, 13, 130), eq. 13 to 25 at rest, with the weight by virtual work
(docs/models_hydraulics.md). The configuration of a section is (b_x, b_y, elongation): three
numbers for three chambers. Torsion is not driven but follows from balance: the weight of a bent
distal section twists the proximal one by some ten degrees.

From a configuration to pressures, only the torsion needs a small Newton search (`held_shape`); a
linear map follows. From pressures to the configuration, the equilibrium is followed from rest; if
it ends (a fold), an error is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.dynamics.layout import Loads
from softarm_ros.models.dynamics.tangents import Equilibrium, equilibrium
from softarm_ros.models.hydraulics.held_sections import HeldSections, turned_centerline
from softarm_ros.models.hydraulics.held_shape import HeldShape, ShapeHolder
from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.models.hydraulics.sections import chamber_drive


class HydraulicStatics(HeldSections[HeldShape]):
    """
    The static model of an arm of sections with three water chambers each.

    Parameters
    ----------
    sections, chambers, surroundings, pressure_min_Pa, pressure_max_Pa, preload_Pa, name
        As in `HeldSections`. Without gravity this is the constant-curvature model.
    segments : int
        Segments of constant strain per section (1 in the paper).

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
        super().__init__(
            sections, chambers, surroundings, pressure_min_Pa, pressure_max_Pa, preload_Pa, name
        )
        self.drive = chamber_drive(sections, chambers, segments, surroundings)
        self.arm = self.drive.arm
        self.loads: Loads = self.arm.loads(surroundings.gravity_m_s2 @ self._mount[:3, :3])
        self.holder = ShapeHolder(self.arm, self.loads)
        self._rest = self.configuration_of(np.full(len(self.chambers), preload_Pa))

    # Configuration -> shape, pressures.

    def balance(
        self, configuration: Array, tip_force: Vector3, near: HeldShape | None
    ) -> HeldShape:
        """Return the balance that holds a configuration (3 s,) under a load at the tip [N]."""
        return self.holder.solve(configuration, self.loaded(tip_force), near)

    def configuration_of_held(self, held: HeldShape) -> Array:
        """Return the configuration (3 s,) of a balance."""
        return self.holder.configuration_of(held.strains)

    def is_stable(self, held: HeldShape) -> bool:
        """Return whether the shape of a balance is stable at constant pressures."""
        return held.stable

    def tip_of(self, held: HeldShape) -> Array:
        """Return the pose (4, 4) of the tip in the base frame."""
        return np.asarray(self._mount @ self.arm.node_poses(held.strains)[-1])

    def twists_of(self, held: HeldShape) -> Array:
        """Return the twist of the tip (6, 3 s) by configuration, linear rows first."""
        return np.asarray(self._tip_twists(held.strains) @ held.strains_by_configuration)

    def pressures_of(self, held: HeldShape) -> Array:
        """Return the pressures (m,) [Pa] of a balance."""
        return np.asarray(self._to_pressure @ held.resultants)

    def pressure_rates_of(self, held: HeldShape) -> Array:
        """Return d pressures / d configuration (m, 3 s) at a balance."""
        return np.asarray(self._to_pressure @ held.resultants_by_configuration)

    def shape_of_held(self, held: HeldShape) -> Shape:
        """Return the shape of a balance."""
        return self._shape(held.strains)

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
        """Return the configuration (3 s,) under pressures (m,); errors as `forward`."""
        return self.holder.configuration_of(self._equilibrium(actuation).strains)

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per pressure (6, m), by the implicit function theorem."""
        rest = self._equilibrium(actuation)
        forces = self.holder.hold @ self.pressure_map
        by_pressure = np.linalg.solve(rest.stiffness, forces)
        return np.asarray(self._tip_twists(rest.strains) @ by_pressure)

    # Inside.

    def loaded(self, tip_force: Vector3, tip_moment: Vector3 = ZERO3) -> Loads:
        """Return the loads: gravity and a load at the tip [N, N m], base frame."""
        if tip_force is ZERO3 and tip_moment is ZERO3:
            return self.loads
        force = finite_array(tip_force, (3,), 'tip_force')
        moment = finite_array(tip_moment, (3,), 'tip_moment')
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

    def _tip_twists(self, strains: Array) -> Array:
        """Return the tip twist per strain rate (6, 4 n), base frame, linear rows first."""
        rows = self.arm.tip_jacobian(strains).reshape(2, 3, -1)
        return np.asarray(self._mount[:3, :3] @ rows).reshape(6, -1)

    def _shape(self, strains: Array) -> Shape:
        shape, turn = self.arm.shape(strains), self._mount[:3, :3]
        return Shape(
            tip=self._mount @ shape.tip,
            section_tips=self._mount @ shape.section_tips,
            configuration=self.holder.configuration_of(strains),
            sample_centerline=partial(turned_centerline, turn, shape.sample_centerline),
        )
