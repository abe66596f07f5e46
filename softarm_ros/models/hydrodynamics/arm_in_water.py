"""Hydrodynamics for the arm dynamics: drag and added mass at the nodes of an arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, Vector3
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.layout import Loads
from softarm_ros.models.hydrodynamics.morison import (
    Hydrodynamics,
    PieceMotion,
    WaterConfig,
    WaterLoads,
    lengths_at_nodes,
)


class ArmInWater:
    """
    Loads of still or steadily moving water on an `ArmDynamics`.

    Each node (far end of a segment) stands for half of the segments next to it. The added mass
    enters the arm's mass matrix. Drag acts at the nodes, linearised about a state that the caller
    updates as the arm moves. Buoyancy is not included: the sections' `displaced_fluid_kg_m` gives
    it.

    Parameters
    ----------
    arm : ArmDynamics
        The arm.
    water : WaterConfig
        Density and coefficients.
    diameter_m : float or (n,)
        Outer diameter at the nodes.

    Raises
    ------
    ModelError
        If a diameter is not positive.

    """

    def __init__(self, arm: ArmDynamics, water: WaterConfig, diameter_m: ArrayLike) -> None:
        self.arm = arm
        self.hydrodynamics = Hydrodynamics(water, lengths_at_nodes(arm.body.length), diameter_m)
        self.added_mass = self.hydrodynamics.added_mass_matrices()

    def water_loads(self, strains: ArrayLike, rates: ArrayLike, current: Vector3) -> WaterLoads:
        """Return the loads on the nodes at a state; added mass without the acceleration part."""
        twists = self.arm.node_twists(strains, rates)
        poses = self.arm.node_poses(strains)[1:]
        motion = PieceMotion(
            position=poses[:, :3, 3],
            tangent=poses[:, :3, 2],
            velocity=twists[:, :3],
            acceleration=np.zeros((self.arm.segments, 3)),
            spin=twists[:, 3:],
        )
        return self.hydrodynamics.loads(motion, current)

    def immersed(
        self, loads: Loads, strains: ArrayLike, rates: ArrayLike, current: Vector3 = ZERO3
    ) -> Loads:
        """
        Return `loads` plus the drag of the water, linearised about a state, and its added mass.

        The drag is linear in the nodes' velocities (wrench and node damping), so an implicit
        integrator can keep it constant over an interval without losing stability. `current` is
        steady and uniform [m/s]. The dynamics include the inertia of the added mass in the arm's
        own motion; Munk's moment of a current past a rotating arm is neglected.
        """
        water = self.water_loads(strains, rates, current)
        velocity = self.arm.node_twists(strains, rates)[:, :3]
        turned = self.arm.node_poses(strains)[1:, :3, :3]
        wrench, damping = loads.wrench.copy(), np.zeros((self.arm.segments, 6, 6))
        wrench[:, :3] += water.drag + np.einsum('kij,kj->ki', water.damping, velocity)
        damping[:, :3, :3] = turned.transpose(0, 2, 1) @ water.damping @ turned
        if len(loads.node_damping):
            damping += loads.node_damping
        return loads._replace(wrench=wrench, added_mass=self.added_mass, node_damping=damping)

    def mass_matrix(self, strains: ArrayLike) -> Array:
        """Return the mass matrix (4 n, 4 n) with the added mass."""
        loads = self.arm.loads(ZERO3, added_mass=self.added_mass)
        return self.arm.mass_matrix(strains, loads)
