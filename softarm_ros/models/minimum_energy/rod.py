"""Shape of least energy of a clamped elastic rod with a held tip (Chen et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.models.arm_model import ZERO3, ModelError, Vector3
from softarm_ros.models.minimum_energy.config import BackboneConfig
from softarm_ros.models.minimum_energy.kernels import (
    curvatures_into,
    elastic_energy,
    poses_into,
    positions_into,
)
from softarm_ros.models.minimum_energy.muscle_kernels import NO_SPRINGS
from softarm_ros.models.minimum_energy.newton_kernels import (
    CONVERGED,
    UNSTABLE,
    constrained_newton,
    descend,
)

NO_ANCHORS = np.zeros((0, 3, 3))
_WARM_ITERATIONS, _COLD_ITERATIONS, _DESCENT_ITERATIONS = 12, 20, 80
_OUTER_ITERATIONS = 10
_ASIDE = 1e-2
_NEIGHBOUR_BAND = 5  # sub-diagonals of a chain of 3 x 3 blocks


@dataclass(frozen=True)
class RodEquilibrium:
    """
    Equilibrium of a rod or, if not `converged`, the last iterate of the solver.

    Attributes
    ----------
    quaternions : (n + 1, 4)
        Orientations of the nodes as x, y, z, w, body -> base.
    positions : (n + 1, 3)
        Positions of the nodes [m], base frame, evenly spaced in arc length.
    curvatures : (n, 3)
        Strains w [1/m] in the middle of the intervals, body frame: two bendings and twist.
    tip_wrench : (6,)
        Force [N] and moment [N m], base frame, that hold the tip besides the load.
    elastic_energy_J, residual_m, residual_moment_N_m : float
        Strain energy; distance of the tip from its target; largest unbalanced moment of a node.
    converged, stable : bool
        Whether the equations hold; whether the energy is a minimum along the constraints.

    """

    quaternions: Array
    positions: Array
    curvatures: Array
    tip_wrench: Array
    elastic_energy_J: float
    residual_m: float
    residual_moment_N_m: float
    converged: bool
    stable: bool
    iterations: int
    message: str = ''
    nodes: Array = field(repr=False, default_factory=lambda: np.zeros((0, 4)))
    multipliers: Array = field(repr=False, default_factory=lambda: np.zeros(0))

    @property
    def tip(self) -> Array:
        """Homogeneous transform (4, 4), base -> tip [m]."""
        return node_poses(self.nodes[-1:], self.positions[-1:])[0]

    @property
    def base_curvature(self) -> Array:
        """Strain (3,) [1/m] at the clamp, extrapolated from the first two intervals."""
        return 1.5 * self.curvatures[0] - 0.5 * self.curvatures[1]


class MinimumEnergyRod:
    """
    Constrained minimum of elastic and load energy over quaternion nodes.

    Parameters
    ----------
    backbone
        Geometry and stiffness.
    intervals
        Number n of equal intervals; the error of the shape is proportional to 1/n^2.
    gravity
        (3,) [m/s^2], base frame. z points along the resting arm, so (0, 0, 9.81) is a hanging arm.
    tip_load_kg
        Payload at the tip, added to the `tip_force` of every solution.

    """

    def __init__(
        self,
        backbone: BackboneConfig,
        intervals: int = 40,
        gravity: Vector3 = (0.0, 0.0, 9.81),
        tip_load_kg: float = 0.0,
    ) -> None:
        if intervals < 4:
            raise ValueError(f'intervals = {intervals}: at least 4 are needed')
        self.backbone = backbone
        self.intervals = intervals
        self.ds = backbone.length_m / intervals
        bending = backbone.bending_stiffness_N_m2
        self.stiffness = np.array([bending, bending, backbone.torsional_stiffness_N_m2])
        field = finite_array(gravity, (3,), 'gravity')
        self.weight = backbone.mass_per_length_kg_m * field
        if not (math.isfinite(tip_load_kg) and tip_load_kg >= 0.0):
            raise ValueError(f'tip_load_kg = {tip_load_kg}: expected a number >= 0')
        self.payload = tip_load_kg * field
        self._own_loads = self._loads(ZERO3)

    def loads(self, tip_force: Vector3 = ZERO3) -> Array:
        """Return the force (n, 3) [N] in each interval from all dead loads: eq. 5 corrected."""
        return self._own_loads.copy() if tip_force is ZERO3 else self._loads(tip_force)

    def _loads(self, tip_force: Vector3) -> Array:
        middle = (np.arange(self.intervals) + 0.5) * self.ds
        outboard = self.backbone.length_m - middle
        dead = finite_array(tip_force, (3,), 'tip_force') + self.payload
        return dead + np.outer(outboard, self.weight)

    def reach(
        self,
        position: Vector3,
        orientation: Array | None = None,
        tip_force: Vector3 = ZERO3,
        guess: RodEquilibrium | None = None,
    ) -> RodEquilibrium:
        """
        Return the shape of least energy with the tip at a position and optional orientation.

        Parameters
        ----------
        position
            (3,) [m], base frame.
        orientation
            Rotation (3, 3) of the tip, or None for a free rotation without moment at the tip.
        tip_force
            Load (3,) [N] at the tip; it changes the multipliers but not the shape.
        guess
            Solution of the same rod for a neighbouring target.

        Raises
        ------
        ValueError
            For a wrong shape or a value that is not finite.
        ModelError
            For a position beyond the length of the arm.

        """
        target = finite_array(position, (3,), 'position')
        distance, length = float(np.linalg.norm(target)), self.backbone.length_m
        if distance >= length:
            raise ModelError(
                f'position {target.tolist()} is {distance:.6g} m from the base, beyond the '
                f'length_m = {length} of the arm'
            )
        attitude, rows = np.array([1.0, 0.0, 0.0, 0.0]), 3
        if orientation is not None:
            x, y, z, w = quaternion_from_matrix(orientation)
            attitude, rows = np.array([w, x, y, z]), 6
        loads = self.loads(tip_force)
        used = 0
        if guess is not None:
            nodes, multipliers = self._guess(guess, rows)
            status, used, moment, defect = self._newton(
                nodes, multipliers, loads, target, attitude, _WARM_ITERATIONS
            )
            if status == CONVERGED:
                return self._solution(nodes, multipliers, status, used, moment, defect)
        return self._from_afar(loads, target, attitude, rows, used)

    def _from_afar(
        self, loads: Array, target: Array, attitude: Array, rows: int, used: int
    ) -> RodEquilibrium:
        """Solve by descents with tip springs of growing stiffness, each followed by Newton."""
        nodes = self._leaning(target)
        multipliers, size = np.zeros(rows), 3 * self.intervals
        bending, length = self.stiffness[0], self.backbone.length_m
        spring = np.full(rows, 100.0 * bending / length**3)
        spring[3:] = 10.0 * bending / length
        for _ in range(_OUTER_ITERATIONS):
            _, steps, _ = descend(
                nodes, self.ds, self.stiffness, loads, target, attitude, multipliers, spring,
                NO_ANCHORS, NO_SPRINGS, _NEIGHBOUR_BAND, np.empty(size), 1e-4, _DESCENT_ITERATIONS,
            )  # fmt: skip
            trial, wrench = nodes.copy(), multipliers.copy()
            status, iterations, moment, defect = self._newton(
                trial, wrench, loads, target, attitude, _COLD_ITERATIONS
            )
            used += steps + iterations
            if status == CONVERGED:
                break
            spring *= 4.0
        return self._solution(trial, wrench, status, used, moment, defect)

    def _newton(
        self,
        nodes: Array,
        multipliers: Array,
        loads: Array,
        target: Array,
        attitude: Array,
        iterations: int,
    ) -> tuple[int, int, float, float]:
        size = 3 * self.intervals
        status, used, moment, defect = constrained_newton(
            nodes, self.ds, self.stiffness, loads, target, attitude, multipliers,
            NO_ANCHORS, NO_SPRINGS, np.empty((self.intervals + 1, 3)), NO_ANCHORS,
            np.empty((size, _NEIGHBOUR_BAND + 1)), np.empty((size, 0)), np.empty(size), 0.0,
            iterations,
        )  # fmt: skip
        return status, used, moment, defect

    def _guess(self, guess: RodEquilibrium, rows: int) -> tuple[Array, Array]:
        """Return the nodes and multipliers of a guess as a start."""
        if guess.nodes.shape != (self.intervals + 1, 4):
            raise ValueError(
                f'guess has {len(guess.nodes) - 1} intervals, this rod has {self.intervals}'
            )
        multipliers = np.zeros(rows)
        shared = min(rows, guess.multipliers.size)
        multipliers[:shared] = guess.multipliers[:shared]
        return guess.nodes.copy(), multipliers

    def _leaning(self, target: Array) -> Array:
        """
        Return the nodes of an arc that bends by one radian towards the target, or towards x.

        The arc also bends by 0.01 rad out of this plane. Within the plane of a symmetric problem a
        descent would not find a lower energy outside the plane.
        """
        aside = math.hypot(target[0], target[1])
        x, y = (1.0, 0.0) if aside < 1e-9 else (target[0] / aside, target[1] / aside)
        half = 0.5 * np.linspace(0.0, 1.0, self.intervals + 1)
        turn = np.sin(half)[:, None] * np.array([_ASIDE * x - y, x + _ASIDE * y, 0.0])
        scalar = np.sqrt(1.0 - np.sum(turn * turn, axis=1))
        return np.column_stack([scalar, turn])

    def _solution(
        self,
        nodes: Array,
        multipliers: Array,
        status: int,
        iterations: int,
        moment: float,
        defect: float,
    ) -> RodEquilibrium:
        positions = np.empty((self.intervals + 1, 3))
        positions_into(nodes, self.ds, positions)
        wrench = np.zeros(6)
        wrench[: multipliers.size] = multipliers
        wrench[3:] = node_poses(nodes[-1:], positions[-1:])[0, :3, :3] @ wrench[3:]
        converged = status in (CONVERGED, UNSTABLE)
        message = ''
        if status == UNSTABLE:
            message = 'in equilibrium, but the energy is not a minimum: the shape is not stable'
        elif not converged:
            message = (
                f'no equilibrium within {iterations} iterations: the tip misses by '
                f'{1e3 * defect:.3g} mm or rad/1000, moments by {moment:.3g} N m'
            )
        return RodEquilibrium(
            quaternions=np.ascontiguousarray(nodes[:, [1, 2, 3, 0]]),
            positions=positions,
            curvatures=curvatures_of(nodes, self.ds),
            tip_wrench=wrench,
            elastic_energy_J=elastic_energy(nodes, self.ds, self.stiffness),
            residual_m=defect,
            residual_moment_N_m=moment,
            converged=converged,
            stable=status == CONVERGED,
            iterations=iterations,
            message=message,
            nodes=nodes,
            multipliers=multipliers,
        )


def curvatures_of(nodes: Array, ds: float) -> Array:
    """Return the strains (n, 3) [1/m] between nodes (n + 1, 4), scalar first."""
    curvatures = np.empty((len(nodes) - 1, 3))
    curvatures_into(nodes, ds, curvatures)
    return curvatures


def node_poses(nodes: Array, positions: Array) -> Array:
    """Return the transforms (m, 4, 4) of nodes (m, 4), scalar first, at positions (m, 3)."""
    poses = np.empty((len(nodes), 4, 4))
    # For a view of an array, the kernel would be compiled again, in mid-motion.
    poses_into(np.ascontiguousarray(nodes), np.ascontiguousarray(positions), poses)
    return poses
