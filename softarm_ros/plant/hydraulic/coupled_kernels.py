"""
Compiled step of the chain and its water-hydraulic axes as one system.

A chamber is a straight hose at a fixed place of its section. Its volume increases by
A sum(e + y phi_x - x phi_y) over the joints of the section, with rotation vectors phi and
extensions e, and its pressure acts on the joints through the gradient of that. For a flow Q into
its chamber, an axis has a pressure P(Q) that decreases with Q (`axes_kernels`, implicit Euler).
For pressures P, the linearly implicit chain has flows Q = Q_free + W P. Both are satisfied by a
small system, solved by Newton's method with the axes' exact slopes.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import inlined, kernel
from softarm_ros.geometry.linear_kernels import solve_small
from softarm_ros.models.hydraulics.axes import ATMOSPHERE_PA, VAPOUR_PA
from softarm_ros.models.hydraulics.axes_kernels import CELLS, P0, X_MAX, X_MIN, V, X, stage_into
from softarm_ros.plant.body_kernels import accelerate, factorise, load_bodies, place_bodies
from softarm_ros.plant.coupling_kernels import couple_chain
from softarm_ros.plant.hydraulic.drive_kernels import advance_motors, read_gauge
from softarm_ros.plant.hydraulic.fabric_kernels import follow_bends, section_bends_into
from softarm_ros.plant.hydraulic.layout import Axes, Chambers, Gauges, Motors, Stops
from softarm_ros.plant.joint_kernels import conjugate_moment, log_of_quaternion
from softarm_ros.plant.layout import ArmState, BodyParameters, Loads, Medium, Scratch
from softarm_ros.plant.medium_kernels import immerse
from softarm_ros.plant.step_kernels import OK, UNSETTLED, calmed, move_joints
from softarm_ros.plant.water_kernels import Water, wet

NOT_SOLVED = 10
BOILING = 11

_ITERATIONS = 60
# Newton iterations after which slopes are averaged with the previous ones: pressures that
# alternate between branches of an axis then converge.
_BRANCH_ITERATIONS = 8
_RESIDUAL_M3 = 1e-15  # of a chamber's volume in one step: 10 picometres of its length
_HALVINGS = 8


@kernel(allocates=False)
def gained_volumes_into(chambers: Chambers, state: ArmState, per: int, volume: Array) -> None:
    """Write the increase in volume (m,) [m^3] of each chamber over the straight arm."""
    for i in range(chambers.area.shape[0]):
        volume[i] = 0.0
        x, y = chambers.place[i, 0], chambers.place[i, 1]
        for g in range(per * chambers.section[i], per * (chambers.section[i] + 1)):
            phi_x, phi_y, _, _ = log_of_quaternion(state.quaternion[g])
            volume[i] += chambers.area[i] * (state.extension[g] + y * phi_x - x * phi_y)


@kernel(allocates=False)
def _chamber_gradients(chambers: Chambers, per: int, logarithm: Array, gradient: Array) -> None:
    """Write the gradients (m, n, 4) of the volumes by the joint coordinates."""
    for i in range(chambers.area.shape[0]):
        area = chambers.area[i]
        mx, my = area * chambers.place[i, 1], -area * chambers.place[i, 0]
        for g in range(per * chambers.section[i], per * (chambers.section[i] + 1)):
            row = gradient[i, g]
            row[0], row[1], row[2] = conjugate_moment(logarithm[g], mx, my, 0.0)
            row[3] = area


@kernel(allocates=False)
def _prepare(
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    still: Medium,
    medium: Medium,
    water: Water,
    chambers: Chambers,
    scratch: Scratch,
    h: float,
) -> float:
    """Load and factorise the chain for a step with the chambers; return the kinetic energy [J]."""
    per = body.mass.shape[0] // chambers.moment.shape[0]
    place_bodies(body, state, scratch)
    energy = load_bodies(body, state, loads, scratch, h)
    for g in range(body.mass.shape[0]):
        m = chambers.moment[g // per]
        x, y, z = conjugate_moment(scratch.logarithm[g], m[0], m[1], m[2])
        scratch.load[g, 0] += x
        scratch.load[g, 1] += y
        scratch.load[g, 2] += z
    if water.length.shape[0] > 0:
        wet(scratch, water, still, medium)
        immerse(body, medium, scratch, h)
    else:
        immerse(body, still, scratch, h)
    _chamber_gradients(chambers, per, scratch.logarithm, scratch.gradient)
    factorise(body, scratch, h, chambers.area.shape[0])
    return energy


@kernel(allocates=False)
def _meet(axes: Axes, scratch: Scratch, h: float) -> bool:
    """
    Find the pressures at which arm and axes have equal flows; write them, negative, as tensions.

    Writes the state of the axes after the step to `axes.moved`. False if no solution is found.
    """
    m = axes.force.shape[0]
    parameters, state, moved = axes.parameters, axes.state, axes.moved
    flow, slope, miss, pressure, matrix = (
        axes.flow, axes.slope, axes.miss, axes.pressure, axes.matrix
    )  # fmt: skip
    _copy(state, moved)
    for i in range(m):
        slope[i] = 0.0
        flow[i] = scratch.gap[i] / h
        for j in range(m):
            last = P0 + 2 * int(parameters[j, CELLS])
            flow[i] += scratch.compliance[i, j] * state[j, last] / h
    for iteration in range(_ITERATIONS):
        for i in range(m):
            rate, solved = stage_into(
                state[i], h, axes.force[i], flow[i], state[i, V] == 0.0, parameters[i],
                axes.chain, moved[i],
            )  # fmt: skip
            if not solved:
                return False
            slope[i] = 0.5 * (slope[i] + rate) if iteration >= _BRANCH_ITERATIONS else rate
            pressure[i] = moved[i, P0 + 2 * int(parameters[i, CELLS])]
        worst = 0.0
        for i in range(m):
            miss[i] = h * flow[i] - scratch.gap[i]
            for j in range(m):
                miss[i] -= scratch.compliance[i, j] * pressure[j]
                matrix[i, j] = -scratch.compliance[i, j] * slope[j]
            matrix[i, i] += h
            if not abs(miss[i]) <= worst:  # also if miss is NaN
                worst = abs(miss[i])
        if not np.isfinite(worst):
            return False
        if worst <= _RESIDUAL_M3:
            for i in range(m):
                scratch.solution[i] = -pressure[i]
                at_low = moved[i, X] <= parameters[i, X_MIN] and moved[i, V] < 0.0
                at_high = moved[i, X] >= parameters[i, X_MAX] and moved[i, V] > 0.0
                if at_low or at_high:
                    moved[i, V] = 0.0
            return True
        solve_small(matrix, miss)
        for i in range(m):
            flow[i] -= miss[i]
    return False


@kernel(allocates=False)
def _copy(rows: Array, copies: Array) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            copies[i, j] = rows[i, j]


@inlined
def step_arm_and_water(
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    still: Medium,
    medium: Medium,
    water: Water,
    chambers: Chambers,
    axes: Axes,
    scratch: Scratch,
    h: float,
) -> tuple[int, int]:
    """
    Advance arm and axes by h [s] under the piston forces.

    Returns
    -------
    tuple
        Status (`step_kernels`, or NOT_SOLVED: nothing has changed) and the joint concerned.

    """
    _prepare(body, state, loads, still, medium, water, chambers, scratch, h)
    scratch.compliance[:] = 0.0
    scratch.gap[:] = 0.0
    couple_chain(state.velocity, chambers.reach, scratch, h)
    if not _meet(axes, scratch, h):
        return NOT_SOLVED, 0
    _copy(axes.moved, axes.state)
    for i in range(scratch.solution.shape[0]):
        state.tension[i] = scratch.solution[i]
    accelerate(scratch, state.tension, h, state.velocity)
    return move_joints(body, state, h)


@kernel(allocates=False)
def advance_arm_and_water(
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    still: Medium,
    medium: Medium,
    water: Water,
    chambers: Chambers,
    axes: Axes,
    scratch: Scratch,
    h: float,
    longest: float,
) -> tuple[int, int]:
    """
    Advance as `step_arm_and_water`, in equal parts no longer than `longest` [s].

    A part without a solution is halved. `axes.boiling` is written at the end.
    """
    least = 0
    while h > longest * 2**least and least < _HALVINGS:
        least += 1
    done, level, whole = 0, least, 2**_HALVINGS
    while done < whole:
        size = whole >> level
        status, joint = step_arm_and_water(
            body, state, loads, still, medium, water, chambers, axes, scratch, h * size / whole
        )
        if status == NOT_SOLVED and level < _HALVINGS:
            level += 1
            continue
        if status != OK:
            return status, joint
        done += size
        while level > least and done % (whole >> (level - 1)) == 0:
            level -= 1
    for i in range(axes.force.shape[0]):
        axes.boiling[i] = False
        for k in range(int(axes.parameters[i, CELLS]) + 1):
            if axes.state[i, P0 + 2 * k] + ATMOSPHERE_PA < VAPOUR_PA:
                axes.boiling[i] = True
    return OK, 0


@kernel(allocates=False)
def drive_arm_and_water(
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    still: Medium,
    medium: Medium,
    water: Water,
    chambers: Chambers,
    stops: Stops,
    axes: Axes,
    motors: Motors,
    held: bool,
    gauges: Gauges,
    deviates: Array,
    bends: Array,
    scratch: Scratch,
    h: float,
    longest: float,
    may_boil: bool,
) -> tuple[int, int, int]:
    """
    Advance motors, axes, arm and sensors together by steps of h [s], one per row of `deviates`.

    `deviates` (steps, m) is the noise of the sensors in standard deviations, `bends` (sections, 2)
    working memory. `held` as in `advance_motors`, `longest` as in `advance_arm_and_water`. If
    `may_boil`, time below the vapour pressure is added to `axes.boiled_s`; else it ends the run.

    Returns
    -------
    tuple
        Status (`step_kernels`, NOT_SOLVED, BOILING), the joint concerned, the steps done.

    """
    m = axes.force.shape[0]
    for step in range(deviates.shape[0]):
        if stops.weight.shape[0] > 0:
            section_bends_into(state, body.mass.shape[0] // chambers.moment.shape[0], bends)
            follow_bends(stops, bends, chambers.moment)
        advance_motors(motors, held, gauges.reading, h)
        for i in range(m):
            axes.force[i] = motors.force_per_torque[i] * motors.mean[i]
        status, joint = advance_arm_and_water(
            body, state, loads, still, medium, water, chambers, axes, scratch, h, longest
        )
        if status != OK:
            return status, joint, step
        for i in range(m):
            if axes.boiling[i] and not may_boil:
                return BOILING, 0, step
            if axes.boiling[i]:
                axes.boiled_s[i] += h
            last = P0 + 2 * int(axes.parameters[i, CELLS])
            read_gauge(gauges, i, axes.state[i, last], deviates[step, i])
    return OK, 0, deviates.shape[0]


@kernel
def settle_arm(
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    still: Medium,
    medium: Medium,
    water: Water,
    chambers: Chambers,
    pressure: Array,
    scratch: Scratch,
    h: float,
    max_steps: int,
    tolerance: float,
) -> tuple[int, int]:
    """Advance under constant pressures (m,) [Pa] until all is still; return status and joint."""
    memory = np.zeros(3)
    for i in range(pressure.shape[0]):
        state.tension[i] = -pressure[i]
    for _ in range(max_steps):
        energy = _prepare(body, state, loads, still, medium, water, chambers, scratch, h)
        accelerate(scratch, state.tension, h, state.velocity)
        status, joint = move_joints(body, state, h)
        if status != OK:
            return status, joint
        if calmed(body, state, energy, tolerance, memory):
            return OK, 0
    return UNSETTLED, 0
