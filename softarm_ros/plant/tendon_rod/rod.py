"""The simulated rod: its arrays, its rest, its shape."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.models.arm_model import Array
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.layout import Loads, allocate_scratch
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.tendon_rod.body import cable_paths, rod_dynamics
from softarm_ros.plant.tendon_rod.config import PlantTendon, TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.kernels import (
    FOLDED,
    MAX_TURN_RAD,
    NOT_SOLVED,
    OK,
    RodMemory,
)


class RodBody:
    """
    A straight rod of constant-strain pieces with its cables' paths, at rest.

    Parameters
    ----------
    config, tendons, gravity_m_s2, tip_load_kg
        As of `TendonRodPlant`.

    Attributes
    ----------
    dynamics
        Its equations of motion.
    loads, memory
        What the kernels work on.
    runs : (n, m)
        1 where a cable runs through a piece.

    """

    def __init__(
        self,
        config: TendonRodPlantConfig,
        tendons: Sequence[PlantTendon],
        gravity_m_s2: ArrayLike,
        tip_load_kg: float,
    ) -> None:
        self.per = config.pieces_per_segment
        self.dynamics: ArmDynamics = rod_dynamics(config, tip_load_kg)
        offset, self.runs = cable_paths(config, tendons)
        self.loads: Loads = self.dynamics.loads(
            tuple(np.asarray(gravity_m_s2, dtype=float)),
            cable_offset_m=offset,
            cable_tension_N=np.zeros_like(self.runs),
        )
        self.memory = _memory(self.dynamics)

    def resting_copy(self, tip_force_N: ArrayLike) -> RodBody:
        """
        Return a rod in the same shape, without motion, under one more dead load on its tip.

        Raises
        ------
        ValueError
            If the load (3,) [N] is not three finite numbers.

        """
        force = np.asarray(tip_force_N, dtype=float)
        if force.shape != (3,) or not np.isfinite(force).all():
            raise ValueError(f'tip_force_N = {tip_force_N!r}: expected 3 finite numbers')
        twin = copy.copy(self)
        twin.memory = _memory(self.dynamics, self.memory.state[0])
        twin.loads = Loads(*(array.copy() for array in self.loads))
        twin.loads.wrench[-1, :3] += force
        return twin

    def section_tips(self) -> Array:
        """Return the true pose (segments, 4, 4) of every connector's end in the base frame."""
        poses = self.dynamics.node_poses(self.memory.state[0])
        return np.ascontiguousarray(poses[self.per :: self.per])

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        if n < 2:
            raise ValueError(f'centreline of {n} points; expected at least 2')
        return self.dynamics.shape(self.memory.state[0]).centerline(n)

    def energy_J(self) -> float:
        """Return kinetic, elastic and weight energy of the rod [J]."""
        strains, rates = self.memory.state[0], self.memory.state[1]
        return self.dynamics.energy(strains, rates, self.loads).total

    def check(self, status: int, segment: int) -> None:
        """Raise `PlantError` unless a kernel's status is OK."""
        if status == OK:
            return
        if status == FOLDED:
            raise PlantError(
                f'segment {segment} has turned by more than {np.rad2deg(MAX_TURN_RAD):.0f} deg: '
                'the arm has folded'
            )
        if status == NOT_SOLVED:
            raise PlantError('the motion of the rod cannot be integrated further')
        raise PlantError('the arm does not come to rest')


def _memory(arm: ArmDynamics, strains: Array | None = None) -> RodMemory:
    """Return a state at rest and its work space."""
    n = arm.segments
    state = np.zeros((5, n, 4))
    state[0] = arm.straight if strains is None else strains
    return RodMemory(
        state,
        np.array([1e-3, -1.0]),
        allocate_scratch(n),
        allocate_scratch(n),
        np.zeros((5, n, 4)),
        np.zeros((n, 6)),
    )
