"""
Compiled relaxation: slow, but descends to a stable shape from any start.

Shooting finds stable and unstable equilibria, and none if it starts far from them. Here, every
step of the arm has one strain. The shape of these strains gives the wrench at every cut; the
wrench gives the strain it would cause; the strains move towards that strain like a damped pendulum
(heavy ball). Only minima of the energy attract them. The scheme is second order in the step, so
its result serves as a start for shots.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import exp_so3_into
from softarm_ros.models.cosserat.strain_kernels import (
    CABLES,
    OK,
    REST,
    STRAIN,
    WRENCH,
    local_strain,
)
from softarm_ros.models.cosserat.tables import Grid, Loads

MIDDLE = 2  # node of the scheme half-way along a step
MOMENTUM = 0.9


@kernel
def lay_out(grid: Grid, strains: Array, points: Array, rotations: Array, ends: Array) -> Array:
    """
    Write the shape of strains (steps, 6); return the rotation (3, 3) of the tip.

    `points` (steps, 3) and `rotations` (steps, 3, 3) are at the middle of each step; `ends`
    (segments, 2, 3) are the proximal and distal face of each connector.
    """
    steps = grid.step_length.shape[0]
    rotation, turn = np.eye(3), np.empty((3, 3))
    point = np.zeros(3)
    for j in range(steps - 1, -1, -1):
        h = grid.step_length[j]
        u = strains[j]
        exp_so3_into(0.5 * h * u[0], 0.5 * h * u[1], 0.5 * h * u[2], turn)
        middle = rotation @ turn
        velocity = middle @ u[3:]
        rotations[j] = middle
        points[j] = point + 0.5 * h * velocity
        point = point + h * velocity
        rotation = middle @ turn
        segment = grid.segment_of_step[j]
        if j == 0 or grid.segment_of_step[j - 1] != segment:
            ends[segment, 0] = point
            point = point + grid.connectors[segment, 1] * rotation[:, 2]
            ends[segment, 1] = point
            rotation = rotation @ grid.connectors[segment, 2:11].copy().reshape(3, 3)
    return rotation


@kernel
def _carry(moment: Array, force: Array, start: Array, to: Array) -> None:
    """Move the reference point of the moment from `start` to `to`."""
    a0, a1, a2 = start[0] - to[0], start[1] - to[1], start[2] - to[2]
    moment[0] += a1 * force[2] - a2 * force[1]
    moment[1] += a2 * force[0] - a0 * force[2]
    moment[2] += a0 * force[1] - a1 * force[0]


@kernel
def relax(
    grid: Grid, loads: Loads, strains: Array, gain: float, rounds: int, tolerance: float
) -> tuple[int, float, Array]:
    """
    Move `strains` (steps, 6) towards balance, in place, at most `rounds` times.

    Returns the status of the local law, the largest difference between a strain and the strain
    that its wrench causes (curvature times arm length), and the rotation (3, 3) of the tip.
    """
    steps = grid.step_length.shape[0]
    segments = grid.n_active.shape[0]
    cables = loads.tensions.shape[0]
    points, rotations = np.empty((steps, 3)), np.empty((steps, 3, 3))
    ends = np.empty((segments, 2, 3))
    work = np.zeros(CABLES + 5 * cables)
    before = strains.copy()
    at = np.empty(3)
    tip = np.eye(3)
    size = np.inf
    for _ in range(rounds):
        tip = lay_out(grid, strains, points, rotations, ends)
        moment, force = loads.tip[3:].copy(), loads.tip[:3].copy()
        at[:] = ends[segments - 1, 1]
        size = 0.0
        for j in range(steps):
            segment = grid.segment_of_step[j]
            if j == 0 or grid.segment_of_step[j - 1] != segment:
                connector = grid.connectors[segment]
                for i in range(3):
                    force[i] += loads.connectors[segment, i]
                    moment[i] += loads.connectors[segment, 3 + i]
                share = connector[15] / connector[1] if connector[1] > 0.0 else 0.0
                centre = ends[segment, 0] + share * (ends[segment, 1] - ends[segment, 0])
                _carry(moment, force, at, centre)
                force += connector[0] * loads.gravity
                _carry(moment, force, centre, ends[segment, 0])
                at[:] = ends[segment, 0]
                for a in range(grid.n_active[segment]):
                    work[CABLES + 5 * a] = loads.tensions[grid.active[segment, a]]
            _carry(moment, force, at, points[j])
            at[:] = points[j]
            mass = grid.mass_beyond[j]
            force += (mass[MIDDLE] - mass[0]) * loads.gravity
            r = rotations[j]
            for i in range(3):
                work[WRENCH + i] = r[0, i] * moment[0] + r[1, i] * moment[1] + r[2, i] * moment[2]
                work[WRENCH + 3 + i] = r[0, i] * force[0] + r[1, i] * force[1] + r[2, i] * force[2]
            for i in range(6):
                work[STRAIN + i] = grid.table[j, MIDDLE, REST + i]
            status = local_strain(
                grid.table[j, MIDDLE],
                work,
                grid.n_active[segment],
                grid.n_strains,
                grid.curvature_scale,
            )
            if status != OK:
                return status, np.inf, tip
            for i in range(6):
                miss = work[STRAIN + i] - strains[j, i]
                size = max(size, abs(miss) * (grid.curvature_scale if i < 3 else 1.0))
                now = strains[j, i]
                strains[j, i] += gain * miss + MOMENTUM * (now - before[j, i])
                before[j, i] = now
            force += (mass[4] - mass[MIDDLE]) * loads.gravity
        if size < tolerance or not size < 1e6:
            break
    return OK, size, tip
