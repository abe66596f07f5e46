"""
Compiled step of water-hydraulic axes: an implicit method with set-valued friction.

State of an axis (3 + 2 n): piston velocity v, position x, cylinder pressure p_0, then flow and
pressure of n line cells, Q_1, p_1, ... Q_n, p_n, where p_n is the chamber pressure. All pressures
are gauge.

    m v'    = F - A_c p_0 - d v - friction           eq. (32), (33) of Chen et al. 2022, corrected
    C_0 p_0' = A_c v - Q_1 - relief(p_0)             eq. (35)
    I Q_k'  = p_(k-1) - p_k - loss(Q_k)              I = 0 and n = 1: eq. (34), Poiseuille
    C_k p_k' = Q_k - Q_(k+1),  C_n p_n' = Q_n - A_d dl/dt

The equations form a chain. So an implicit stage is one sweep from the chamber to the piston, with
each pressure as a linear function of the inflow, and one sweep back. At the piston one scalar
inclusion remains,  w v + friction(v) = f  with w > 0. It is solved exactly: a stuck piston has
v = 0 to the last bit. Loss and relief are linearised about the last iterate until they agree
(Newton).

Method: SDIRK, two stages, gamma = 1 - 1/sqrt(2) (Alexander 1977): L-stable, order 2. A step in
which the piston stops, starts, reverses or reaches its end, or the pressure crosses the relief
pressure, is taken by the implicit Euler method instead. Its local error is O(h^2) at finitely many
steps, so the order stays 2, and no stage is extrapolated across the kink.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.hydraulics.pipe_loss_kernels import pipe_loss

GAMMA = 1.0 - 1.0 / math.sqrt(2.0)
NEWTON_LIMIT = 40
# Two iterates of the line flows agree if they differ by less than this share of the largest flow.
NEWTON_TOLERANCE = 1e-11
# A piston with dry friction counts as resting below this speed [m/s]: an overdamped one would
# otherwise approach the edge of the stick band for ever.
REST_SPEED = 1e-9

# Columns of the parameter array.
MASS, DAMPING, AREA, COULOMB, STATIC, X_MIN, X_MAX = 0, 1, 2, 3, 4, 5, 6
C_CYLINDER, C_CELL, C_CHAMBER, INERTANCE, RESISTANCE = 7, 8, 9, 10, 11
REYNOLDS, ROUGHNESS, RELIEF, CONDUCTANCE, CELLS, FORCE = 12, 13, 14, 15, 16, 17
PARAMETERS = 18

V, X, P0 = 0, 1, 2


@kernel(allocates=False)
def friction_velocity(
    weight: float, load: float, coulomb: float, low: float, high: float
) -> tuple[float, float]:
    """
    Return (v, dv/dload) with  load - weight v in coulomb Sgn(v) + normal cone of [low, high].

    It is the minimum of weight v^2 / 2 - load v + coulomb |v| over the interval, with weight > 0:
    a soft threshold, then a clamp (exact for one unknown, where the cost is convex).
    """
    slack = abs(load) - coulomb
    v, slope = 0.0, 0.0
    if slack > 0.0:
        v, slope = math.copysign(slack, load) / weight, 1.0 / weight
        if coulomb > 0.0 and abs(v) < REST_SPEED:
            v, slope = 0.0, 0.0
    if v < low:
        return low, 0.0
    if v > high:
        return high, 0.0
    return v, slope


@kernel(allocates=False)
def stage_into(
    base: Array,
    h: float,
    force: float,
    chamber_flow: float,
    was_stuck: bool,
    par: Array,
    chain: Array,
    out: Array,
) -> tuple[float, bool]:
    """
    Solve  y = base + h f(y)  into `out`; return (d p_chamber / d chamber_flow, solved).

    Parameters
    ----------
    base, out : (3 + 2 n,)
        Must be different arrays; on entry `out` holds the guess of the flows and of p_0.
    h : float
        Step times the stage's weight [s].
    force, chamber_flow : float
        Drive at the piston [N]; volume rate of the chamber due to the arm's motion [m^3/s].
    was_stuck : bool
        Whether the piston sticks at the start; then static friction holds it.
    par : (PARAMETERS,)
        Constants of the axis, in the order of the column names above.
    chain : (n + 1, 6)
        Scratch: value, slope and derivative of p as a function of the inflow at each node, then
        those of Q.

    """
    n = int(par[CELLS])
    last = P0 + 2 * n
    mass, area = par[MASS], par[AREA]
    for _ in range(NEWTON_LIMIT):
        # Chamber: p = alpha + beta Q; rate is d alpha / d chamber_flow.
        beta = h / par[C_CHAMBER]
        alpha = base[last] - beta * chamber_flow
        rate = -beta
        chain[n, 0], chain[n, 1], chain[n, 2] = alpha, beta, rate
        for k in range(n, 0, -1):
            flow = out[P0 + 2 * k - 1]
            loss, slope = pipe_loss(flow, par[RESISTANCE], par[REYNOLDS], par[ROUGHNESS])
            inert = par[INERTANCE] / h
            conductance = 1.0 / (inert + slope + beta)
            offset = conductance * (
                inert * base[P0 + 2 * k - 1] - loss + slope * flow - alpha
            )  # Q = offset + conductance p_(k-1)
            turn = -conductance * rate
            chain[k, 3], chain[k, 4], chain[k, 5] = offset, conductance, turn
            capacity = (par[C_CYLINDER] if k == 1 else par[C_CELL]) / h
            held = capacity * base[P0 + 2 * k - 2] - offset
            yielding = capacity + conductance
            if k == 1 and out[P0] > par[RELIEF]:
                held += par[CONDUCTANCE] * par[RELIEF]
                yielding += par[CONDUCTANCE]
            beta = 1.0 / yielding
            alpha = held * beta
            rate = -turn * beta
            chain[k - 1, 0], chain[k - 1, 1], chain[k - 1, 2] = alpha, beta, rate
        weight = mass / h + par[DAMPING] + area * area * beta
        load = mass / h * base[V] + force - area * alpha
        low, high = (par[X_MIN] - base[X]) / h, (par[X_MAX] - base[X]) / h
        if was_stuck and abs(load) <= par[STATIC]:
            v, v_slope = min(max(0.0, low), high), 0.0
        else:
            v, v_slope = friction_velocity(weight, load, par[COULOMB], low, high)
        v_rate = -v_slope * area * rate
        inflow, inflow_rate = area * v, area * v_rate
        before = out[P0]
        pressure = alpha + beta * inflow
        pressure_rate = rate + beta * inflow_rate
        out[V], out[X], out[P0] = v, base[X] + h * v, pressure
        if v == low:
            out[X] = par[X_MIN]
        elif v == high:
            out[X] = par[X_MAX]
        change, largest = 0.0, 1e-15
        for k in range(1, n + 1):
            flow = chain[k, 3] + chain[k, 4] * pressure
            flow_rate = chain[k, 5] + chain[k, 4] * pressure_rate
            change = max(change, abs(flow - out[P0 + 2 * k - 1]))
            largest = max(largest, abs(flow))
            pressure = chain[k, 0] + chain[k, 1] * flow
            pressure_rate = chain[k, 2] + chain[k, 1] * flow_rate
            out[P0 + 2 * k - 1], out[P0 + 2 * k] = flow, pressure
        if not math.isfinite(pressure):
            return pressure_rate, False
        linear = par[REYNOLDS] <= 0.0
        same_side = (before > par[RELIEF]) == (out[P0] > par[RELIEF])
        if same_side and (linear or change <= NEWTON_TOLERANCE * largest):
            return pressure_rate, True
    return pressure_rate, False


@kernel(allocates=False)
def is_smooth(before: Array, middle: Array, after: Array, par: Array) -> bool:
    """Return whether a step stayed on one branch of friction, end stops and relief valve."""
    if par[COULOMB] > 0.0 or par[STATIC] > 0.0:
        s = np.sign(before[V])
        if np.sign(middle[V]) != s or np.sign(after[V]) != s:
            return False
    for y in (middle, after):
        if y[X] <= par[X_MIN] or y[X] >= par[X_MAX]:
            return False
    over = before[P0] > par[RELIEF]
    return (middle[P0] > par[RELIEF]) == over and (after[P0] > par[RELIEF]) == over


@kernel(allocates=False)
def axis_step_into(
    state: Array,
    h: float,
    force: float,
    chamber_flow: float,
    par: Array,
    work: Array,
    chain: Array,
) -> tuple[float, bool]:
    """
    Advance one axis (3 + 2 n,) in place by h [s] with constant force and chamber flow.

    Return (water released by the relief valve [m^3], solved); an unsolved step does not change the
    state. `work` is (3, 3 + 2 n) scratch.
    """
    size = P0 + 2 * int(par[CELLS]) + 1
    base, middle, after = work[0], work[1], work[2]
    stuck = state[V] == 0.0
    for i in range(size):
        middle[i] = state[i]
    _, solved = stage_into(state, GAMMA * h, force, chamber_flow, stuck, par, chain, middle)
    if solved:
        for i in range(size):
            base[i] = state[i] + (1.0 - GAMMA) / GAMMA * (middle[i] - state[i])
            after[i] = middle[i]
        still = stuck and middle[V] == 0.0
        _, solved = stage_into(base, GAMMA * h, force, chamber_flow, still, par, chain, after)
    relief = (1.0 - GAMMA) * max(middle[P0] - par[RELIEF], 0.0)
    relief += GAMMA * max(after[P0] - par[RELIEF], 0.0)
    if not solved or not is_smooth(state, middle, after, par):
        for i in range(size):
            after[i] = state[i]
        _, solved = stage_into(state, h, force, chamber_flow, stuck, par, chain, after)
        if not solved:
            return 0.0, False
        relief = max(after[P0] - par[RELIEF], 0.0)
        # The impact on an end stop removes the velocity; the position is already at the stop.
        at_low, at_high = after[X] <= par[X_MIN], after[X] >= par[X_MAX]
        if (at_low and after[V] < 0.0) or (at_high and after[V] > 0.0):
            after[V] = 0.0
    for i in range(size):
        state[i] = after[i]
    return h * par[CONDUCTANCE] * relief if relief > 0.0 else 0.0, True


@kernel(allocates=False)
def axes_step_into(
    states: Array,
    h: float,
    forces: Array,
    chamber_flows: Array,
    par: Array,
    work: Array,
    chain: Array,
    relieved: Array,
) -> int:
    """Advance all axes (m, width) in place; return the first unsolved axis, or -1."""
    for i in range(states.shape[0]):
        relieved[i], solved = axis_step_into(
            states[i], h, forces[i], chamber_flows[i], par[i], work, chain
        )
        if not solved:
            return i
    return -1
