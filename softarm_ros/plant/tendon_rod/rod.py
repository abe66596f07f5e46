"""The simulated rod: arrays, steps, equilibrium, shape."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import rotation_z
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.failures import require_ok
from softarm_ros.plant.layout import Loads, new_scratch, rest_state
from softarm_ros.plant.settling import SETTLE_S, STILL_RAD_S, calm
from softarm_ros.plant.shape import centerline, section_tips
from softarm_ros.plant.step_damping import split_damping
from softarm_ros.plant.tendon_rod.body import body_of, rod_of, turns_before
from softarm_ros.plant.tendon_rod.config import PlantTendon, TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.kernels import (
    MAX_TURN_RAD,
    TURNED,
    drive_rod,
    load_rod,
    settle_rod,
)
from softarm_ros.plant.tendon_rod.layout import WinchParameters, WinchState


class RodBody:
    """
    A rod of elastic joints with its cables' paths, at rest.

    Parameters
    ----------
    config, tendons, gravity_m_s2, tip_load_kg
        As in `TendonRodPlant`.

    Attributes
    ----------
    rod
        Arrays of the kernels; only the kernels may change the state.

    """

    def __init__(
        self,
        config: TendonRodPlantConfig,
        tendons: Sequence[PlantTendon],
        gravity_m_s2: ArrayLike,
        tip_load_kg: float,
    ) -> None:
        self._per, self._time_step_s = config.pieces_per_segment, config.time_step_s
        gravity = np.array(gravity_m_s2, dtype=np.float64)
        self.rod = rod_of(config, tendons, gravity, tip_load_kg)
        self._config, self._payload_kg = config, tip_load_kg
        self._damping_time = self.rod.body.damping_time.copy()
        self._split_for_s = 0.0
        self._connectors = np.array([s.connector.length_m for s in config.segments])
        turns = enumerate(turns_before(config)[1:])
        self._turned = [(k, rotation_z(turn)) for k, turn in turns if turn != 0.0]

    def drive(
        self, parameters: WinchParameters, winches: WinchState, h: float, steps: int
    ) -> None:
        """
        Advance with winches and cables by steps of h [s].

        Raises
        ------
        PlantError
            If the arm leaves the range of the simulation.

        """
        rod = self.rod
        if h != self._split_for_s:
            # Axial steps stay implicit: axial vibration is too fast to resolve.
            times = rod.body.damping_time[:, 0], rod.solver.damping_time[:, 0]
            split_damping(self._damping_time[:, 0], h, *times)
            self._split_for_s = h
        self._check(*drive_rod(parameters, winches, rod, self._per, h, steps))

    def settle(self, parameters: WinchParameters, winches: WinchState) -> None:
        """Come to rest without friction; raise `PlantError` if that fails."""
        h = self._time_step_s
        quiet = calm(self.rod.body._replace(damping_time=self._damping_time))
        rod = self.rod._replace(body=quiet, solver=quiet)
        self._check(
            *settle_rod(parameters, winches, rod, self._per, h, int(SETTLE_S / h), STILL_RAD_S)
        )

    def hang(self, mass_kg: float) -> None:
        """Carry a mass at the tip in addition to the payload, of the same size."""
        own = self.rod.body
        loaded = body_of(self._config, own.gravity, self._payload_kg + mass_kg)
        own.mass[:], own.centre[:], own.inertia[:] = loaded.mass, loaded.centre, loaded.inertia

    def resting_copy(self, tip_force_N: ArrayLike) -> RodBody:
        """
        Return a copy in the same shape, without motion, with an additional dead load on its tip.

        Raises
        ------
        ValueError
            If the load (3,) [N] is not three finite numbers.

        """
        force = np.asarray(tip_force_N, dtype=float)
        if force.shape != (3,) or not np.isfinite(force).all():
            raise ValueError(f'tip_force_N = {tip_force_N!r}: expected 3 finite numbers')
        n = len(self.rod.body.mass)
        state = rest_state(n, 0, 1)
        state.quaternion[:], state.extension[:] = (
            self.rod.state.quaternion, self.rod.state.extension
        )  # fmt: skip
        twin = copy.copy(self)
        twin.rod = self.rod._replace(
            state=state,
            loads=Loads(self.rod.loads.tip_force + force, self.rod.loads.tip_moment.copy()),
            scratch=new_scratch(n, 0, 1),
            tension=np.zeros_like(self.rod.tension),
            nodes=self.rod.nodes.copy(),
        )
        return twin

    def section_tips(self) -> Array:
        """Return the true pose (segments, 4, 4) of every connector's end in the base frame."""
        rod = self.rod
        tips = section_tips(rod.body, rod.state, rod.scratch, self._connectors)
        for tip, turn in self._turned:
            tips[tip, :3, :3] = tips[tip, :3, :3] @ turn
        return tips

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        return centerline(self.rod.body, self.rod.state, self.rod.scratch, n)

    def energy_J(self) -> float:
        """Return the sum of kinetic, elastic and gravitational energy of the rod [J]."""
        rod = self.rod
        kinetic = load_rod(rod, self._time_step_s)
        strain = rod.scratch.logarithm[:, :3] - rod.rest
        elastic = 0.5 * float(np.einsum('gi,gij,gj->', strain, rod.law, strain))
        elastic += 0.5 * float(rod.body.stiffness[:, 2] @ rod.state.extension**2)
        centres = (
            rod.scratch.origin[1:] + rod.body.centre[:, None] * rod.scratch.rotation[1:, :, 2]
        )
        return float(kinetic) + elastic - float(rod.body.mass @ centres @ rod.body.gravity)

    def _check(self, status: int, joint: int) -> None:
        segment, piece = divmod(joint, self._per)
        if status == TURNED:
            raise PlantError(
                f'segment {segment} has turned by more than {np.rad2deg(MAX_TURN_RAD):.0f} deg: '
                'the arm has folded'
            )
        require_ok(status, f'piece {piece} of segment {segment}')
