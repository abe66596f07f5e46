"""The moving backbone of the simulated muscle arm: its arrays, its rest, its shape."""

from __future__ import annotations

import numpy as np

from softarm_ros.models.minimum_energy.config import ParallelModulesConfig
from softarm_ros.models.minimum_energy.kernels import positions_into
from softarm_ros.models.minimum_energy.muscle_kernels import muscle_vectors_into
from softarm_ros.models.minimum_energy.muscles import check_disks, muscle_anchors
from softarm_ros.models.minimum_energy.newton_kernels import (
    CONVERGED,
    constrained_newton,
    descend,
)
from softarm_ros.models.minimum_energy.rod import node_poses
from softarm_ros.plant.actuator_state import Array
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.pam_arm.config import PamPlantConfig

_NOTHING = np.zeros(0)
_TARGET, _ATTITUDE = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
# Of a moment balance [EI / L]; a thousandth of a millimetre at the tip.
_STEP_TOLERANCE = 1e-6
_DESCENT_ITERATIONS, _NEWTON_ITERATIONS = 400, 20


class MovingBackbone:
    """
    State of the backbone, with everything the compiled step needs.

    Parameters
    ----------
    config
        The simulated arm.
    modules
        How many; three muscles each.
    gravity_m_s2 : (3,)
        In the base frame.
    tip_load_kg
        Payload at the tip.

    Attributes
    ----------
    nodes, positions : (n + 1, 4), (n + 1, 3)
        Quaternions, scalar first, and positions [m].
    velocity, spin : (n, 3)
        Of the nodes beyond the clamp [m/s], [rad/s, body frame].
    lengths : (modules, 3)
        Of the muscles [m].

    """

    def __init__(
        self, config: PamPlantConfig, modules: int, gravity_m_s2: Array, tip_load_kg: float
    ) -> None:
        rod, n = config.backbone, config.intervals
        geometry = ParallelModulesConfig(modules=modules, anchor_radius_m=config.anchor_radius_m)
        check_disks(n, geometry)
        self.anchors = muscle_anchors(geometry)
        self.ds = rod.length_m / n
        bending = rod.bending_stiffness_N_m2
        self.stiffness = np.array([bending, bending, rod.torsional_stiffness_N_m2])
        self.gravity = np.array(gravity_m_s2, dtype=np.float64)
        self.masses = np.full(n, rod.mass_per_length_kg_m * self.ds)
        self.masses[-1] *= 0.5
        self.inertias = self.masses * config.gyration_radius_m**2
        self.masses[-1] += tip_load_kg
        self.tolerance = _STEP_TOLERANCE * bending / rod.length_m
        self.nodes = np.tile(_ATTITUDE, (n + 1, 1))
        self.positions = np.zeros((n + 1, 3))
        self.velocity, self.spin = np.zeros((n, 3)), np.zeros((n, 3))
        self.lengths = np.zeros((modules, 3))
        self._stride = n // modules

    def settle(self, free_lengths: Array, muscle_stiffness: Array) -> None:
        """
        Bring the arm to rest under free lengths and stiffnesses (modules, 3) [m], [N/m].

        Raises
        ------
        PlantError
            If no stable rest is found.

        """
        weights = self.masses[:, None] * self.gravity
        loads = np.ascontiguousarray(np.cumsum(weights[::-1], axis=0)[::-1])
        band = max(5, 3 * self._stride + 2)
        descend(
            self.nodes, self.ds, self.stiffness, loads, _TARGET, _ATTITUDE, _NOTHING, _NOTHING,
            self.anchors, free_lengths, muscle_stiffness, band, 1e-4, _DESCENT_ITERATIONS,
        )  # fmt: skip
        status, used, moment, _ = constrained_newton(
            self.nodes, self.ds, self.stiffness, loads, _TARGET, _ATTITUDE, np.zeros(0),
            self.anchors, free_lengths, muscle_stiffness, band, _NEWTON_ITERATIONS,
        )  # fmt: skip
        if status != CONVERGED:
            raise PlantError(
                f'the simulated arm finds no rest: after {used} iterations {moment:.3g} N m are '
                f'unbalanced (limit of its range, or it would buckle)'
            )
        positions_into(self.nodes, self.ds, self.positions)
        vectors = np.empty(self.anchors.shape)
        muscle_vectors_into(self.nodes, self.positions, self.anchors, vectors)
        self.lengths = np.linalg.norm(vectors, axis=2)
        self.velocity[:], self.spin[:] = 0.0, 0.0

    def tip(self) -> Array:
        """Return the pose (4, 4) of the tip, base frame."""
        return np.asarray(node_poses(self.nodes[-1:], self.positions[-1:])[0])

    def disks(self) -> Array:
        """Return the poses (modules, 4, 4) of the modules' distal disks, base frame."""
        disks = slice(self._stride, None, self._stride)
        return np.asarray(node_poses(self.nodes[disks], self.positions[disks]))

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m], evenly spaced in arc length."""
        if n < 2:
            raise ValueError(f'n = {n}: a centreline needs at least 2 points')
        arc, s = np.linspace(0.0, 1.0, len(self.positions)), np.linspace(0.0, 1.0, n)
        return np.stack([np.interp(s, arc, self.positions[:, k]) for k in range(3)], axis=1)
