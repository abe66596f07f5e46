"""
Multiple shooting, for arms so long and heavy that a single shot from the tip misses the base.

The arm is cut into short pieces. The rotation and the moment at the start of each piece are the
unknowns of one Newton iteration, so no sensitivity grows over more than one piece. The result is a
rotation of the tip; shots over the whole arm then refine it and check its stability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import (
    exp_so3,
    log_so3,
    matrix_from_quaternion,
    quaternion_from_matrix,
)
from softarm_ros.models.cosserat.shooting_kernels import shoot
from softarm_ros.models.cosserat.strain_kernels import OK
from softarm_ros.models.cosserat.tables import Grid, Loads, Trace, new_trace

MAX_TURN_RAD = 0.5
SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class _Piece:
    """One piece of the arm as an arm of its own."""

    grid: Grid
    trace: Trace
    segment: int
    first: bool  # whether the segment's connector is at its distal end


@dataclass(frozen=True)
class _Path:
    """Rotation (3, 3) and moment (3,) [N m] at the start of each piece, ordered from the tip."""

    rotations: list[Array]
    moments: list[Array]


class MultipleShooting:
    """Multiple-shooting solver of one arm; each step of its grid is a piece."""

    def __init__(self, grid: Grid) -> None:
        cables = grid.active.shape[1] if grid.table.shape[2] > 42 else 0
        self._grid = grid
        self._pieces = [_piece(grid, j, cables) for j in range(len(grid.step_length))]
        bending = float(grid.table[:, :, 0].mean())
        self._moment_scale = bending / grid.curvature_scale

    def tip_rotation(self, loads: Loads, rest_rotation: Array) -> Array | None:
        """Return the tip quaternion (4,) in equilibrium, by increasing the loads, or None."""
        path = self._rest(loads, matrix_from_quaternion(rest_rotation))
        reached, step = 0.0, 1.0
        while reached < 1.0:
            share = min(1.0, reached + step)
            found = self._newton(Loads(*(share * array for array in loads)), path)
            if found is None:
                step *= 0.5
                if step < SMALLEST_SHARE:
                    return None
            else:
                path, reached, step = found, share, min(1.0, 2.0 * step)
        return quaternion_from_matrix(path.rotations[0])

    def _rest(self, loads: Loads, tip: Array) -> _Path:
        nothing = Loads(*(0.0 * array for array in loads))
        rotations = [tip]
        for piece in self._pieces[:-1]:
            _shoot_piece(piece, nothing, rotations[-1], np.zeros(3), np.zeros(3))
            rotations.append(matrix_from_quaternion(piece.trace.base_rotation))
        return _Path(rotations, [np.zeros(3) for _ in self._pieces])

    def _forces(self, loads: Loads) -> list[Array]:
        """Return the force (3,) [N] at the start of each piece; it is independent of the shape."""
        force, forces = loads.tip[:3].copy(), []
        for k, piece in enumerate(self._pieces):
            if piece.first and k > 0:
                before = self._pieces[k - 1].segment
                force = force + self._grid.segment_mass[before] * loads.gravity
            forces.append(force)
            if piece.first:
                mass = self._grid.connectors[piece.segment, 0]
                force = force + loads.connectors[piece.segment, :3] + mass * loads.gravity
        return forces

    def _misses(self, loads: Loads, path: _Path) -> tuple[Array, Array] | None:
        """Return the miss (6 pieces - 3,), moments scaled, and its derivative; None if crushed."""
        forces = self._forces(loads)
        n, scale = len(self._pieces), self._moment_scale
        miss, matrix = np.zeros(6 * n), np.zeros((6 * n, 6 * n))
        for k, piece in enumerate(self._pieces):
            if not _shoot_piece(piece, loads, path.rotations[k], forces[k], path.moments[k]):
                return None
            at = 6 * k
            base = matrix_from_quaternion(piece.trace.base_rotation)
            following = path.rotations[k + 1] if k + 1 < n else np.eye(3)
            miss[at : at + 3] = log_so3(following.T @ base)
            columns = piece.trace.variation[:6][:, [0, 1, 2, 6, 7, 8]].copy()
            columns[3:] /= scale
            columns[:, 3:] *= scale
            matrix[at : at + 6, at : at + 6] = columns
            if k + 1 < n:
                miss[at + 3 : at + 6] = (piece.trace.moments[-1] - path.moments[k + 1]) / scale
                matrix[at : at + 6, at + 6 : at + 12] = -np.eye(6)
        # The moment at the tip is given; the moment at the base is free.
        keep = np.r_[0:3, 6 : 6 * n]
        return miss[: 6 * n - 3], matrix[: 6 * n - 3][:, keep]

    def _newton(self, loads: Loads, path: _Path) -> _Path | None:
        path = _Path(path.rotations, [loads.tip[3:].copy(), *path.moments[1:]])
        found = self._misses(loads, path)
        for _ in range(40):
            if found is None:
                return None
            miss, matrix = found
            size = float(np.linalg.norm(miss))
            if size < 1e-9:
                return path
            try:
                step = np.linalg.solve(matrix, -miss)
            except np.linalg.LinAlgError:
                return None
            steps = np.concatenate([step[:3], np.zeros(3), step[3:]]).reshape(-1, 6)
            turn = float(np.linalg.norm(steps[:, :3], axis=1).max())
            fraction = min(1.0, MAX_TURN_RAD / max(turn, 1e-300))
            for _ in range(6):
                trial = _Path(
                    [r @ exp_so3(fraction * s[:3]) for r, s in zip(path.rotations, steps)],
                    [
                        m + fraction * self._moment_scale * s[3:]
                        for m, s in zip(path.moments, steps)
                    ],
                )
                found = self._misses(loads, trial)
                if found is not None and np.linalg.norm(found[0]) < size:
                    break
                fraction *= 0.4
            else:
                # At the level of rounding, no step reduces the miss any further.
                return path if size < 1e-7 else None
            path = trial
        return None


def _piece(grid: Grid, j: int, cables: int) -> _Piece:
    segment = int(grid.segment_of_step[j])
    first = j == 0 or int(grid.segment_of_step[j - 1]) != segment
    one, own = slice(j, j + 1), slice(segment, segment + 1)
    connectors = grid.connectors[own].copy()
    if not first:
        connectors[0] = [0.0, 0.0, *np.eye(3).ravel(), 0.0, 0.0, 0.0, 1.0, 0.0]
    part = grid._replace(
        segment_of_step=np.zeros(1, dtype=np.int64),
        step_length=grid.step_length[one].copy(),
        table=grid.table[one].copy(),
        mass_beyond=grid.mass_beyond[one].copy(),
        active=grid.active[own].copy(),
        n_active=grid.n_active[own].copy(),
        segment_mass=grid.segment_mass[own].copy(),
        connectors=connectors,
    )
    return _Piece(part, new_trace(1, 1, cables), segment, first)


def _shoot_piece(
    piece: _Piece, loads: Loads, rotation: Array, force: Array, moment: Array
) -> bool:
    """Integrate one piece with its derivatives by rotation and moment; False if crushed."""
    row = loads.connectors[piece.segment : piece.segment + 1]
    own = Loads(
        loads.tensions,
        np.concatenate([force, moment]),
        loads.gravity,
        row.copy() if piece.first else np.zeros((1, 6)),
    )
    columns = 9 + len(loads.tensions)
    start = quaternion_from_matrix(rotation)
    status, _ = shoot(piece.grid, own, start, columns, True, True, piece.trace)
    return bool(status == OK)
