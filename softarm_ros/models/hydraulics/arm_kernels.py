"""
Compiled step of an arm and its water-hydraulic axes as one system.

The unknowns of an implicit stage are the strain rates v (n, 4). An axis responds to the volume
rate Q = A_d dl/dt of its chamber with a pressure P(Q). One sweep of its chain gives P(Q) exactly,
with friction, end stops and losses (`axes_kernels`). So the hydraulics are eliminated from the
stage, and the arm sees a drive  map P(map' L v)  with the slope -Z <= 0: a damper, which keeps the
stage as stable as the arm alone. The Newton matrix is the arm's, factorised in linear time, plus
m columns (Woodbury).

The method is that of the hydraulics (SDIRK 2, L-stable; implicit Euler where an axis changes
branch). Arm and water share the stages, so their coupling creates no energy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import solve_small
from softarm_ros.models.dynamics.articulated_kernels import factorise, solve
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch
from softarm_ros.models.dynamics.recursion_kernels import place_arm, residual
from softarm_ros.models.hydraulics.axes_kernels import (
    CELLS,
    CONDUCTANCE,
    GAMMA,
    P0,
    RELIEF,
    X_MAX,
    X_MIN,
    V,
    X,
    is_smooth,
    stage_into,
)

ITERATION_LIMIT = 60
# Newton iterations after which the slopes of the axes are averaged with the previous ones.
BRANCH_ITERATIONS = 8
# Newton corrections stop below this displacement of the arm [m].
CORRECTION_M = 1e-10


@kernel
def _stage(
    body: Body,
    loads: Loads,
    volume: Array,
    par: Array,
    h: float,
    forces: Array,
    base_q: Array,
    base_v: Array,
    base_y: Array,
    stuck: NDArray[np.bool_],
    q: Array,
    v: Array,
    y: Array,
    scratch: Scratch,
    frozen: Scratch,
    chain: Array,
    columns: Array,
    small: Array,
    work: Array,
) -> bool:
    """
    Solve q = base_q + h v, v = base_v + h v', y = base_y + h y' for (q, v, y); guess in v and y.

    `volume` (m, n, 4) is the chamber volume per strain; `columns` (m, n, 4), `small` (m, m + 3)
    and `work` (3, n, 4) are scratch. Return False if the iterations do not converge.
    """
    n, m = q.shape[0], forces.shape[0]
    a, r, delta = work[0], work[1], work[2]
    arm_length = 0.0
    for k in range(n):
        arm_length += body.length[k]
    for k in range(n):
        for j in range(4):
            q[k, j] = base_q[k, j] + h * v[k, j]
            a[k, j] = (v[k, j] - base_v[k, j]) / h
    for iteration in range(ITERATION_LIMIT):
        place_arm(body, q, scratch)
        residual(body, loads, q, v, a, scratch, r)
        if iteration % 10 == 0:
            place_arm(body, q, frozen)
            if not factorise(body, loads, h, h, h * h, frozen):
                return False
            for i in range(m):
                solve(body, frozen, volume[i], columns[i])
        for i in range(m):
            flow = 0.0
            for k in range(n):
                for j in range(4):
                    flow += volume[i, k, j] * v[k, j]
            slope, solved = stage_into(
                base_y[i], h, forces[i], flow, stuck[i], par[i], chain, y[i]
            )
            if not solved:
                return False
            # If iterates alternate between branches of an axis, an averaged slope converges.
            settling = iteration >= BRANCH_ITERATIONS
            small[i, m] = 0.5 * (small[i, m] - slope) if settling else -slope
            pressure = y[i, P0 + 2 * int(par[i, CELLS])]
            for k in range(n):
                for j in range(4):
                    r[k, j] -= volume[i, k, j] * pressure
        solve(body, frozen, r, delta)
        # Woodbury: (K + h V' Z V)^-1 r = K^-1 r - h K^-1 V' (1 + h Z V K^-1 V')^-1 Z V K^-1 r.
        for i in range(m):
            along = 0.0
            for k in range(n):
                for j in range(4):
                    along += volume[i, k, j] * delta[k, j]
            small[i, m + 1] = small[i, m] * along
            for c in range(m):
                value = 0.0
                for k in range(n):
                    for j in range(4):
                        value += volume[i, k, j] * columns[c, k, j]
                small[i, c] = h * small[i, m] * value + (1.0 if i == c else 0.0)
        solve_small(small[:, :m], small[:, m + 1])
        moved = 0.0
        for k in range(n):
            for j in range(4):
                for i in range(m):
                    delta[k, j] -= h * columns[i, k, j] * small[i, m + 1]
                a[k, j] -= delta[k, j]
                v[k, j] -= h * delta[k, j]
                q[k, j] -= h * h * delta[k, j]
                scale = body.length[k] if j == 0 else body.length[k] * arm_length
                shift = scale * h * h * abs(delta[k, j])
                if not shift <= moved:  # written so that NaN propagates
                    moved = shift
        if not math.isfinite(moved):
            return False
        if moved <= CORRECTION_M:
            for i in range(m):  # solve the axes again, for the final rates
                flow = 0.0
                for k in range(n):
                    for j in range(4):
                        flow += volume[i, k, j] * v[k, j]
                _, solved = stage_into(
                    base_y[i], h, forces[i], flow, stuck[i], par[i], chain, y[i]
                )
                if not solved:
                    return False
            return True
    return False


@kernel
def coupled_step_into(
    body: Body,
    loads: Loads,
    volume: Array,
    par: Array,
    h: float,
    forces: Array,
    q: Array,
    v: Array,
    y: Array,
    scratch: Scratch,
    frozen: Scratch,
    strains: Array,
    axes: Array,
    chain: Array,
    columns: Array,
    small: Array,
    work: Array,
    relieved: Array,
) -> bool:
    """
    Advance strains q, rates v (n, 4) and axes y (m, width) in place by h [s].

    Return False, with q, v and y unchanged, if the step fails. The piston forces (m,) [N] and the
    loads are constant. `strains` (6, n, 4) and `axes` (3, m, width) are scratch; `relieved` (m,)
    receives the water [m^3] released by the relief valves.
    """
    n, m = q.shape[0], forces.shape[0]
    g = GAMMA * h
    ratio = (1.0 - GAMMA) / GAMMA
    base_q, base_v, q1, v1, q2, v2 = (
        strains[0], strains[1], strains[2], strains[3], strains[4], strains[5],
    )  # fmt: skip
    base_y, y1, y2 = axes[0], axes[1], axes[2]
    stuck = np.zeros(m, np.bool_)
    for i in range(m):
        stuck[i] = y[i, V] == 0.0
    v1[:] = v
    y1[:] = y
    good = _stage(
        body, loads, volume, par, g, forces, q, v, y, stuck, q1, v1, y1,
        scratch, frozen, chain, columns, small, work,
    )  # fmt: skip
    if good:
        for k in range(n):
            for j in range(4):
                base_q[k, j] = q[k, j] + ratio * (q1[k, j] - q[k, j])
                base_v[k, j] = v[k, j] + ratio * (v1[k, j] - v[k, j])
        v2[:] = v1
        still = np.zeros(m, np.bool_)
        for i in range(m):
            still[i] = stuck[i] and y1[i, V] == 0.0
            for j in range(y.shape[1]):
                base_y[i, j] = y[i, j] + ratio * (y1[i, j] - y[i, j])
                y2[i, j] = y1[i, j]
        good = _stage(
            body, loads, volume, par, g, forces, base_q, base_v, base_y, still, q2, v2, y2,
            scratch, frozen, chain, columns, small, work,
        )  # fmt: skip
    smooth = good
    for i in range(m):
        if good and not is_smooth(y[i], y1[i], y2[i], par[i]):
            smooth = False
        over = (1.0 - GAMMA) * max(y1[i, P0] - par[i, RELIEF], 0.0)
        over += GAMMA * max(y2[i, P0] - par[i, RELIEF], 0.0)
        relieved[i] = h * par[i, CONDUCTANCE] * over if over > 0.0 else 0.0
    if not smooth:
        v2[:] = v
        y2[:] = y
        if not _stage(
            body, loads, volume, par, h, forces, q, v, y, stuck, q2, v2, y2,
            scratch, frozen, chain, columns, small, work,
        ):  # fmt: skip
            return False
        for i in range(m):
            over = y2[i, P0] - par[i, RELIEF]
            relieved[i] = h * par[i, CONDUCTANCE] * over if over > 0.0 else 0.0
            at_low, at_high = y2[i, X] <= par[i, X_MIN], y2[i, X] >= par[i, X_MAX]
            if (at_low and y2[i, V] < 0.0) or (at_high and y2[i, V] > 0.0):
                y2[i, V] = 0.0
    q[:] = q2
    v[:] = v2
    y[:] = y2
    return True
