"""Statics of a cable-driven Cosserat rod arm: equilibrium, derivatives, energy, buckling."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import matrix_from_quaternion, quaternion_from_matrix
from softarm_ros.models.arm_model import ZERO3, ModelError, Vector3
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.cosserat.frame_kernels import matrix_into
from softarm_ros.models.cosserat.grid import build_grid
from softarm_ros.models.cosserat.multiple_shooting import MultipleShooting
from softarm_ros.models.cosserat.relaxation_kernels import MIDDLE, relax
from softarm_ros.models.cosserat.shooting_kernels import shoot
from softarm_ros.models.cosserat.solver_kernels import (
    MAX_SHOTS,
    SINGULAR,
    TOO_MANY_ITERATIONS,
    equilibrate,
    newton,
)
from softarm_ros.models.cosserat.state import RodDerivatives, RodStart, RodState
from softarm_ros.models.cosserat.strain_kernels import CRUSHED, NO_STRAIN, OK, REST, ROUTES
from softarm_ros.models.cosserat.tables import Grid, Loads, Trace, new_trace

COARSE_STEPS = 2
BUCKLING_STEPS = 40
RELAXATION_STEPS = 12
RELAXATION_TRIES = 10
_MIDDLE_STAGE = 5  # stage of the scheme half-way along a step
SNAPPED = 'one of several stable shapes: loading from rest ends at a limit load before it'
BUCKLED = 'buckled: one of several stable shapes under these loads'
UNSTABLE = 'the equilibrium is not stable: the arm would buckle away from it'
_REASONS = {
    CRUSHED: 'the loads crush the rod or a cable path to nothing (singular routing)',
    NO_STRAIN: 'a section cannot carry its wrench',
    SINGULAR: 'the equilibrium is singular: a buckling load',
    TOO_MANY_ITERATIONS: 'no convergence: no equilibrium nearby, or a limit load',
}


class CosseratRod:
    """
    Solver of one arm, with its tables and work space.

    The result of `solve` depends only on its arguments. `equilibrate`, meant for loops, leaves its
    solution in the work space; read `tip_pose`, `derivatives` and `start` before the next call.

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
        self._solved = False
        self._pieces: MultipleShooting | None = None
        self._laws: dict[int, tuple[Array, Array]] = {}
        self._rest_lengths = np.zeros(cables)
        ranges = [cable.tension_range_N for cable in config.cables]
        self._tension_limits = np.array(ranges).reshape(-1, 2).T
        # At rest, the tip rotation is the inverse of the base rotation reached from the identity.
        shoot(self._fine, self._loads, self._tip_rotation, 0, False, True, self._trace)
        x, y, z, w = self._trace.base_rotation
        self._rest_rotation = np.array([-x, -y, -z, w])
        self._rest_lengths = self._trace.cable_lengths.copy()

    @property
    def rest_length_m(self) -> float:
        """Length of the unloaded arm with its connectors [m]."""
        return sum(s.length_m + s.connector.length_m for s in self.config.segments)

    def set_law(self, segment: int, stiffness: Array, rest: Array) -> None:
        """
        Replace the section law of a whole segment, for instance by the tangent of a nonlinear one.

        `stiffness` (6, 6) and strain `rest` (6,) are in the order u, v. States solved before keep
        their shape, but their energy becomes invalid.
        """
        self._laws[segment] = stiffness, rest
        for grid in (self._fine, self._coarse):
            _put_law(grid, segment, stiffness, rest)
        self._pieces = None

    def mean_strain(self, segment: int) -> Array:
        """Return the mean strain (6,) of a segment over its steps, from the work space."""
        own = _steps_of(self._fine, segment)
        return np.asarray(self._trace.strains[own, _MIDDLE_STAGE].mean(axis=0))

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
        # Comparisons with NaN are False, so this finds NaN too.
        least, most = self._tension_limits
        if len(cables) and not ((given >= least).all() and (given <= most).all()):
            for cable, value, low, high in zip(cables, given, least, most):
                if not low <= value <= high:
                    raise ModelError(
                        f'tension of {cable.name} is {value} N, allowed are {low:g} to {high} N'
                    )
        loads.tensions[:] = given
        weight = self.config.gravity_m_s2 if gravity is None else gravity
        if not len(tip_force) == len(tip_moment) == len(weight) == 3:
            raise ValueError(
                f'tip_force {tip_force}, tip_moment {tip_moment}, gravity {weight}: expected 3 '
                'numbers each'
            )
        loads.tip[:3] = tip_force
        loads.tip[3:] = tip_moment
        loads.gravity[:] = weight
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

    def equilibrate(
        self, near: RodStart | None = None, tolerance_rad: float = 1e-7
    ) -> tuple[int, float, bool, int, float]:
        """
        Run the compiled solver under the current loads, from `near` or the arm at rest.

        The result stays in the work space.

        Returns the status (0 if solved), the rotation error at the base [rad] (times the length:
        the error of the tip), whether the equilibrium was stable at the last check, the number of
        shots, and the share of the loads reached.
        """
        if near is not None:
            self.resume(near)
        return self._equilibrate(near is not None, tolerance_rad)

    def _equilibrate(
        self, onward: bool, tolerance_rad: float
    ) -> tuple[int, float, bool, int, float]:
        """Run the compiled solver; `onward` starts from the solution in the work space."""
        result = equilibrate(
            self._fine,
            self._coarse,
            self._loads,
            self._tip_rotation,
            self._rest_rotation,
            onward and self._solved,
            tolerance_rad,
            self._trace,
            self._coarse_trace,
            self._partial,
        )
        self._solved = result[0] == OK
        return result

    def solve(
        self,
        tensions: Array,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
        connector_wrenches: Array | None = None,
        gravity: Vector3 | None = None,
        near: RodState | None = None,
        tolerance_rad: float = 1e-11,
        search: bool = True,
    ) -> RodState:
        """
        Return the equilibrium under tensions and loads.

        If the equilibrium found is unstable, search for a stable one nearby, and say so in its
        message. If there is none, return the unstable one, marked as unstable.

        Parameters
        ----------
        tensions : (cables,)
            Cable tensions [N].
        tip_force, tip_moment : (3,)
            Force and moment at the tip, base frame [N, N m]; they keep their direction.
        connector_wrenches : (segments, 6)
            Forces and moments at the distal faces of the connectors, base frame.
        gravity : (3,)
            Gravity, instead of the configured one [m/s^2].
        near : RodState
            Solution under similar loads to start from; without it, start from the arm at rest.
        tolerance_rad : float
            Tolerance of the rotation at the base (at least 1e-6 if the arm is so long and heavy
            that it needs multiple shooting).
        search : bool
            Search for another stable shape if the first attempt fails; this takes longer.

        """
        self.load(tensions, tip_force, tip_moment, connector_wrenches, gravity)
        start = None if near is None else near.start
        status, error, regular, shots, reached = self.equilibrate(start, tolerance_rad)
        regular = status == OK and self.is_stable()
        message = ''
        if status == OK and not regular:
            message = UNSTABLE
        if status == OK and not regular and search:
            unstable = self._tip_rotation.copy()
            found = self._buckle(tolerance_rad) or self._relax(tolerance_rad)
            if found:
                message, regular, error = BUCKLED, True, found[0]
                shots += found[1]
            else:
                self._tip_rotation[:] = unstable
                self._solved = True
                status, error, _, count, reached = self._equilibrate(True, tolerance_rad)
                shots += count
        elif status != OK and search:
            found = self._shoot_in_pieces(tolerance_rad)
            if not found:
                found = self._relax(tolerance_rad)
                message = SNAPPED if found else ''
            if found:
                regular, status, error = True, OK, found[0]
                shots += found[1]
        self._solved = status == OK
        if status != OK:
            message = _REASONS[status]
            if reached > 0.0:
                message += f'; {100.0 * reached:.1f} % of the loads are carried'
        return self._state(status == OK, status == OK and regular, error, shots, message)

    def _state(
        self, converged: bool, stable: bool, error: float, shots: int, message: str
    ) -> RodState:
        return RodState(
            converged,
            stable,
            error,
            shots,
            message,
            self._loads.tensions.copy(),
            self._tip_rotation.copy(),
            self._rest_lengths,
            self.config,
            self._fine,
            Trace._make(array.copy() for array in self._trace),
        )

    @property
    def start(self) -> RodStart:
        """The solution in the work space, as a start for a search under similar loads."""
        return RodStart(self._tip_rotation.copy(), self._trace.strains.copy())

    def resume(self, start: RodStart) -> None:
        """Put a solution of this arm back into the work space, without its loads."""
        self._tip_rotation[:] = start.tip_rotation
        self._trace.strains[:] = start.strains
        self._solved = True

    def resumed(self, start: RodStart) -> RodState:
        """Return the state of a solution that was found under the current loads."""
        self.resume(start)
        stable = self.is_stable()  # writes positions and attitudes along the rod
        return self._state(True, stable, 0.0, 1, '' if stable else UNSTABLE)

    def is_stable(self) -> bool:
        """Tell whether the solution is stable; also converge its strains to rounding."""
        _, regular = shoot(
            self._fine, self._loads, self._tip_rotation, 3, False, False, self._trace
        )
        return bool(regular)

    def _buckle(self, tolerance_rad: float) -> tuple[float, int] | None:
        """
        Search for a stable neighbour of an unstable equilibrium: push sideways, load, release.

        Returns error and shots, or None if none is found.
        """
        loads = self._loads
        push = 0.02 * (
            float(np.abs(loads.tip[:3]).sum() + np.abs(loads.connectors[:, :3]).sum())
            + float(self._fine.segment_mass.sum() * np.abs(loads.gravity).sum())
            + float(np.abs(loads.tip[3:]).sum() + np.abs(loads.tensions).sum() * 0.1)
            / self.rest_length_m
        )
        full = [array.copy() for array in loads]
        for axis in (0, 1):
            self._solved = False
            for share in np.linspace(0.0, 1.0, BUCKLING_STEPS + 1):
                for array, whole in zip(loads, full):
                    array[:] = share * whole
                loads.tip[axis] += push
                if self._equilibrate(True, tolerance_rad)[0] != OK:
                    break
            for array, whole in zip(loads, full):
                array[:] = whole
            status, error, _, shots, _ = self._equilibrate(True, tolerance_rad)
            if status == OK and self.is_stable():
                return error, shots
        return None

    def _polish(self, tip_rotation: Array, tolerance_rad: float) -> tuple[float, int] | None:
        """Refine a tip quaternion (4,) by shots; return error and shots if stable, else None."""
        self._tip_rotation[:] = tip_rotation
        status, error, _, shots = newton(
            self._fine,
            self._loads,
            self._tip_rotation,
            tolerance_rad,
            MAX_SHOTS,
            True,
            self._trace,
        )
        self._solved = status == OK
        return (error, shots) if self._solved and self.is_stable() else None

    def _shoot_in_pieces(self, tolerance_rad: float) -> tuple[float, int] | None:
        """Solve by multiple shooting; return error and shots of the whole arm if stable."""
        if self._pieces is None:
            self._pieces = MultipleShooting(self._fine)
        found = self._pieces.tip_rotation(self._loads, self._rest_rotation)
        # In arms that need this, rounding at the tip grows towards the base.
        return None if found is None else self._polish(found, max(tolerance_rad, 1e-6))

    def _relax(self, tolerance_rad: float) -> tuple[float, int] | None:
        """Relax from the arm at rest; return error and shots if this leads to a stable shape."""
        grid = build_grid(self.config, max(self.config.steps, RELAXATION_STEPS))
        for segment, law in self._laws.items():
            _put_law(grid, segment, *law)
        rest = grid.table[:, MIDDLE, REST:ROUTES]
        gain = 0.2
        while gain > 1e-3:
            strains = rest.copy()
            strains[:, :2] += 0.01 / self.rest_length_m  # symmetry may be unstable
            size = math.inf
            for _ in range(RELAXATION_TRIES):
                status, size, tip = relax(grid, self._loads, strains, gain, 400, 1e-6)
                if status != OK or not size < 1e6:
                    break
                found = self._polish(quaternion_from_matrix(tip), tolerance_rad)
                if found:
                    return found
                if size < 1e-6:
                    return None
            gain *= 0.3
        return None

    def tip_pose(self) -> Array:
        """Return the tip pose (4, 4) of the solution in the work space."""
        x, y, z, w = self._tip_rotation
        tip = np.eye(4)
        matrix_into(x, y, z, w, tip)
        tip[:3, 3] = -self._trace.base_point
        return tip

    @property
    def path_lengths(self) -> Array:
        """Lengths (cables,) [m] of cables and bores at the solution in the work space."""
        return self._trace.cable_lengths.copy()

    def derivatives(self) -> RodDerivatives:
        """
        Return the derivatives at the solution in the work space.

        Raises
        ------
        ModelError
            If there is no solution, or the equilibrium is singular.

        """
        cables = len(self.config.cables)
        if not self._solved:
            raise ModelError('no derivatives: there is no solution to take them at')
        status, regular = shoot(
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
            twist[:, 6:].copy(), twist[:, :6].copy(), -moved[3:, 6:], -moved[3:, :6], regular
        )


def _put_law(grid: Grid, segment: int, stiffness: Array, rest: Array) -> None:
    own = _steps_of(grid, segment)
    grid.table[own, :, :REST] = stiffness.ravel()
    grid.table[own, :, REST:ROUTES] = rest


def _steps_of(grid: Grid, segment: int) -> slice:
    """Return the steps of a segment, counted from the tip; all segments have equally many."""
    segments = len(grid.n_active)
    each = len(grid.step_length) // segments
    begin = (segments - 1 - segment) * each
    return slice(begin, begin + each)


def _no_loads(segments: int, cables: int) -> Loads:
    return Loads(np.zeros(cables), np.zeros(6), np.zeros(3), np.zeros((segments, 6)))
