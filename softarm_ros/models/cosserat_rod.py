"""Statics of a cable-driven Cosserat rod arm: equilibrium, derivatives, energy, buckling."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import matrix_from_quaternion
from softarm_ros.models.arm_model import ZERO3, Array, ModelError, Vector3
from softarm_ros.models.cosserat_config import CosseratConfig
from softarm_ros.models.cosserat_grid import build_grid
from softarm_ros.models.cosserat_shooting_kernels import (
    NODE_OF_STAGE,
    SINGULAR,
    TOO_MANY_ITERATIONS,
    B,
    Loads,
    new_trace,
    shoot,
)
from softarm_ros.models.cosserat_solver_kernels import equilibrate
from softarm_ros.models.cosserat_strain_kernels import CRUSHED, NO_STRAIN, OK, REST, ROUTES

COARSE_STEPS = 2
_REASONS = {
    CRUSHED: 'the loads crush the rod or a cable path to nothing (singular routing)',
    NO_STRAIN: 'a section carries no such wrench',
    SINGULAR: 'the equilibrium is singular: a buckling load',
    TOO_MANY_ITERATIONS: 'no convergence: no equilibrium near, or a limit load',
}


@dataclass(frozen=True)
class RodState:
    """
    Equilibrium of the arm, or the report that there is none.

    Attributes
    ----------
    converged : bool
        Whether the arm is in equilibrium; if not, poses are NaN.
    stable : bool
        Whether the equilibrium is a strict minimum of the energy (not buckled through).
    residual : float
        Rotation [rad] by which the base is missed.
    tip : (4, 4)
        Pose of the distal face of the last connector, base frame [m].
    segment_tips : (segments, 4, 4)
        Poses of the distal faces of the connectors.
    points, rotations, strains : (nodes, 3), (nodes, 3, 3), (nodes, 6)
        Centreline at both ends of every step from base to tip, with u [1/m] and v.
    node_segments : (nodes,)
        Segment of each node.
    moments, forces : (nodes, 3)
        Wrench over the cut through rod and cables, base frame [N m, N].
    contractions : (cables,)
        Path of each cable, rest minus now [m].
    elastic_energy_J : float
        Energy stored in the rod.
    slack : (cables,) bool
        Cables without tension.
    warm_start : (4,)
        Rotation of the tip, to start a neighbouring solution from.

    """

    converged: bool
    stable: bool
    residual: float
    shots: int
    message: str
    tip: Array
    segment_tips: Array
    points: Array = field(repr=False)
    rotations: Array = field(repr=False)
    strains: Array = field(repr=False)
    node_segments: Array = field(repr=False)
    moments: Array = field(repr=False)
    forces: Array = field(repr=False)
    contractions: Array
    elastic_energy_J: float
    slack: Array
    warm_start: Array = field(repr=False)


@dataclass(frozen=True)
class RodDerivatives:
    """
    First derivatives at an equilibrium; twists of the tip in the base frame, linear first.

    Attributes
    ----------
    tip_by_tension : (6, cables)
        [m/N, rad/N].
    compliance : (6, 6)
        Tip twist by tip force and moment, symmetric.
    contraction_by_tension : (cables, cables)
        [m/N], symmetric.
    contraction_by_wrench : (cables, 6)
        The transpose of `tip_by_tension` (Maxwell-Betti).

    """

    tip_by_tension: Array
    compliance: Array
    contraction_by_tension: Array
    contraction_by_wrench: Array


class CosseratRod:
    """
    Solver of one arm; keeps tables and work space, and the last solution as a warm start.

    Parameters
    ----------
    config
        The arm.

    """

    def __init__(self, config: CosseratConfig) -> None:
        self.config = config
        self._fine = build_grid(config, config.steps)
        self._coarse = build_grid(config, min(COARSE_STEPS, config.steps))
        segments, cables = len(config.segments), len(config.cables)
        self._trace = new_trace(len(self._fine.step_length), segments, cables)
        self._coarse_trace = new_trace(len(self._coarse.step_length), segments, cables)
        self._loads = _no_loads(segments, cables)
        self._partial = _no_loads(segments, cables)
        self._tip_rotation = np.array([0.0, 0.0, 0.0, 1.0])
        self._rest_rotation = self._tip_rotation.copy()
        self._warm = False
        self._rest_lengths = np.zeros(cables)
        self._tension_limits = np.array([cable.max_tension_N for cable in config.cables])
        # At rest the tip rotation is that of the base shot seen from the other end.
        shoot(self._fine, self._loads, self._tip_rotation, 0, False, True, self._trace)
        x, y, z, w = self._trace.base_rotation
        self._rest_rotation = np.array([-x, -y, -z, w])
        self._rest_lengths = self._trace.cable_lengths.copy()

    @property
    def rest_length_m(self) -> float:
        """Length of the unloaded arm with its connectors [m]."""
        return sum(s.length_m + s.connector.length_m for s in self.config.segments)

    def load(
        self,
        tensions: Array,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
        connector_wrenches: Array | None = None,
        gravity: Vector3 | None = None,
    ) -> None:
        """Check and set the loads; see `solve`."""
        loads = self._loads
        cables = self.config.cables
        given = np.asarray(tensions, dtype=np.float64)
        if given.shape != loads.tensions.shape:
            raise ValueError(f'tensions have shape {given.shape}, expected {loads.tensions.shape}')
        # min and max are NaN with any NaN in them, and the comparison then fails.
        if len(cables) and not (given.min() >= 0.0 and (given <= self._tension_limits).all()):
            for cable, value in zip(cables, given):
                if not 0.0 <= value <= cable.max_tension_N:
                    raise ModelError(
                        f'tension of {cable.name} is {value} N, allowed are 0 to '
                        f'{cable.max_tension_N} N'
                    )
        loads.tensions[:] = given
        loads.tip[:3] = tip_force
        loads.tip[3:] = tip_moment
        loads.gravity[:] = self.config.gravity_m_s2 if gravity is None else gravity
        if connector_wrenches is None:
            loads.connectors[:] = 0.0
        else:
            wrenches = np.asarray(connector_wrenches, dtype=np.float64)
            if wrenches.shape != loads.connectors.shape:
                raise ValueError(
                    f'connector_wrenches have shape {wrenches.shape}, expected '
                    f'{loads.connectors.shape}'
                )
            loads.connectors[:] = wrenches
        total = loads.tip.sum() + loads.gravity.sum() + loads.connectors.sum()
        if not math.isfinite(total):
            raise ValueError(
                f'loads are not finite: tip {loads.tip.tolist()}, gravity '
                f'{loads.gravity.tolist()}, connectors {loads.connectors.tolist()}'
            )

    def equilibrate(self, warm: bool = True, tolerance_rad: float = 1e-10) -> tuple[int, float, bool, int, float]:
        """Run the compiled solver on the loads set; the result stays in the work space."""
        result = equilibrate(
            self._fine,
            self._coarse,
            self._loads,
            self._tip_rotation,
            self._rest_rotation,
            warm and self._warm,
            tolerance_rad,
            self._trace,
            self._coarse_trace,
            self._partial,
        )
        self._warm = result[0] == OK
        return result

    def solve(
        self,
        tensions: Array,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
        connector_wrenches: Array | None = None,
        gravity: Vector3 | None = None,
        warm: bool = False,
    ) -> RodState:
        """
        Return the equilibrium under tensions (cables,) [N] and loads.

        Parameters
        ----------
        tip_force, tip_moment : (3,)
            At the tip, base frame [N, N m]; they keep their direction.
        connector_wrenches : (segments, 6)
            Forces and moments at the distal faces of the connectors, base frame.
        gravity : (3,)
            Instead of the configured one [m/s^2].
        warm : bool
            Start from the last solution; else from the arm at rest.

        """
        self.load(tensions, tip_force, tip_moment, connector_wrenches, gravity)
        status, error, regular, shots, reached = self.equilibrate(warm)
        return self._state(status, error, regular, shots, reached)

    def tip_pose(self) -> Array:
        """Return the tip (4, 4) of the solution in the work space."""
        return pose(matrix_from_quaternion(self._tip_rotation), -self._trace.base_point)

    def derivatives(self) -> RodDerivatives:
        """
        Return the derivatives at the last solution.

        Raises
        ------
        ModelError
            If there is no solution, or the equilibrium is singular.

        """
        cables = len(self.config.cables)
        if not self._warm:
            raise ModelError('no derivatives: there is no solution to take them at')
        status, _ = shoot(
            self._fine, self._loads, self._tip_rotation, 9 + cables, True, False, self._trace
        )
        variation = self._trace.variation
        y = variation[:3, :3]
        if status != OK or not np.linalg.cond(y) < 1e13:
            raise ModelError('no derivatives: the equilibrium is singular (a buckling load)')
        turn = -np.linalg.solve(y, variation[:3, 3:])  # of the tip, in its own frame
        moved = variation[6:, 3:] + variation[6:, :3] @ turn
        twist = np.vstack([-moved[:3], matrix_from_quaternion(self._tip_rotation) @ turn])
        return RodDerivatives(
            twist[:, 6:].copy(), twist[:, :6].copy(), -moved[3:, 6:], -moved[3:, :6]
        )

    def _state(
        self, status: int, error: float, regular: bool, shots: int, reached: float
    ) -> RodState:
        trace, grid = self._trace, self._fine
        segments = len(self.config.segments)
        nodes = len(trace.points)
        per_segment = nodes // segments
        slack = self._loads.tensions <= 0.0
        node_segments = np.repeat(np.arange(segments), per_segment)
        if status != OK:
            nothing = np.full((nodes, 3), math.nan)
            message = _REASONS[status]
            if reached > 0.0:
                message += f'; {100.0 * reached:.1f} % of the loads are carried'
            return RodState(
                False,
                False,
                error,
                shots,
                message,
                np.full((4, 4), math.nan),
                np.full((segments, 4, 4), math.nan),
                nothing,
                np.full((nodes, 3, 3), math.nan),
                np.full((nodes, 6), math.nan),
                node_segments,
                nothing,
                nothing,
                np.full(len(slack), math.nan),
                math.nan,
                slack,
                self._rest_rotation.copy(),
            )
        points = trace.points[::-1] - trace.base_point
        rotations = _matrices(trace.quaternions[::-1])
        tips = np.empty((segments, 4, 4))
        for k, segment in enumerate(self.config.segments):
            last = (k + 1) * per_segment - 1
            connector = segment.connector
            relative = grid.connectors[k, 2:11].reshape(3, 3)
            tips[k] = pose(
                rotations[last] @ relative,
                points[last] + rotations[last][:, 2] * connector.length_m,
            )
        rows = grid.table[:, NODE_OF_STAGE]
        stretch = trace.strains - rows[..., REST:ROUTES]
        stiffness = rows[..., :REST].reshape(*rows.shape[:2], 6, 6)
        n = grid.n_strains
        energy = 0.5 * np.einsum(
            'j,s,jsa,jsab,jsb->',
            grid.step_length,
            B,
            stretch[..., :n],
            stiffness[..., :n, :n],
            stretch[..., :n],
            optimize=True,
        )
        return RodState(
            True,
            regular,
            error,
            shots,
            '' if regular else 'the equilibrium is not stable: the arm would buckle away from it',
            self.tip_pose(),
            tips,
            points,
            rotations,
            trace.end_strains[::-1].copy(),
            node_segments,
            trace.moments[::-1].copy(),
            trace.forces[::-1].copy(),
            self._rest_lengths - trace.cable_lengths,
            float(energy),
            slack,
            self._tip_rotation.copy(),
        )


def _no_loads(segments: int, cables: int) -> Loads:
    return Loads(np.zeros(cables), np.zeros(6), np.zeros(3), np.zeros((segments, 6)))


def _matrices(quaternions: Array) -> Array:
    """Return the rotations (n, 3, 3) of unit quaternions (n, 4)."""
    x, y, z, w = quaternions.T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
            np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
            np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )
