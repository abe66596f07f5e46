"""Compiled time step of arm, cables and steppers together."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import inlined, kernel
from softarm_ros.plant.body_kernels import accelerate, factorise, load_bodies, place_bodies
from softarm_ros.plant.cable_kernels import (
    couple_cables,
    cut,
    measure_cables,
    relax_foundation,
)
from softarm_ros.plant.joint_kernels import turn
from softarm_ros.plant.layout import (
    ArmState,
    BodyParameters,
    CableParameters,
    Loads,
    Scratch,
    Wiring,
)
from softarm_ros.plant.stepper_kernels import (
    StepperParameters,
    StepperState,
    step_motors,
    turn_motors,
)
from softarm_ros.plant.tension_kernels import solve_tensions
from softarm_ros.plant.thread_friction import ThreadFriction
from softarm_ros.plant.thread_kernels import hold_threads

OK = 0
NOT_FINITE = 1
FOLDED = 2
CRUSHED = 3
PINCHED = 4
UNSETTLED = 5

MAX_JOINT_RAD = 2.2
MIN_STRETCH = 0.2  # least length of a segment, as a share of its unstretched length
_RESET_STEPS = 8
_STILL_STEPS = 5


@inlined
def step_arm(
    body: BodyParameters,
    cables: CableParameters,
    threads: ThreadFriction,
    state: ArmState,
    loads: Loads,
    target: Array,
    tension_given: bool,
    scratch: Scratch,
    h: float,
) -> tuple[int, int, float]:
    """
    Advance the arm by h [s].

    `target` (m,) holds the contractions at the end of the step [m], or, if `tension_given`, the
    tensions [N].

    Returns
    -------
    tuple
        Status (OK, NOT_FINITE, FOLDED, CRUSHED, PINCHED), the joint concerned, and the kinetic
        energy [J] before the step.

    """
    m = target.shape[0]
    place_bodies(body, state, scratch)
    energy = load_bodies(body, state, loads, scratch, h)
    pinched = measure_cables(body, cables, state, scratch)
    if pinched >= 0:
        return PINCHED, pinched, energy
    hold_threads(cables, state, threads, scratch)
    relax_foundation(cables, state, threads.push, scratch, h)
    factorise(body, scratch, h, m)
    if tension_given:
        for i in range(m):
            state.tension[i] = target[i]
    else:
        couple_cables(body, cables, state, target, scratch, h)
        for i in range(m):
            state.contraction[i] = target[i]
            scratch.taut[i] = state.tension[i] > 0.0
        found = solve_tensions(
            scratch.compliance,
            scratch.gap,
            scratch.taut,
            scratch.factor,
            scratch.solution,
            state.tension,
        )
        if not found:
            return NOT_FINITE, 0, energy
    cut(state, scratch)
    accelerate(scratch, state.tension, h, state.velocity)
    status, joint = move_joints(body, state, h)
    return status, joint, energy


@kernel(allocates=False)
def move_joints(body: BodyParameters, state: ArmState, h: float) -> tuple[int, int]:
    """Move every joint with its velocity for h; report the first one that leaves its range."""
    smallest = math.cos(0.5 * MAX_JOINT_RAD)
    for g in range(body.mass.shape[0]):
        rate = state.velocity[g]
        turn(state.quaternion[g], h * rate[0], h * rate[1], h * rate[2])
        state.extension[g] += h * rate[3]
        if not math.isfinite(state.quaternion[g, 3] + state.extension[g]):
            return NOT_FINITE, g
        if state.quaternion[g, 3] < smallest:
            return FOLDED, g
        if state.extension[g] < (MIN_STRETCH - 1.0) * body.segment_length[g]:
            return CRUSHED, g
    return OK, 0


@kernel(allocates=False)
def advance_arm(
    body: BodyParameters,
    cables: CableParameters,
    threads: ThreadFriction,
    state: ArmState,
    loads: Loads,
    target: Array,
    tension_given: bool,
    scratch: Scratch,
    h: float,
    steps: int,
) -> tuple[int, int]:
    """Advance by `steps` steps with one target; return status and joint."""
    for _ in range(steps):
        status, joint, _ = step_arm(
            body, cables, threads, state, loads, target, tension_given, scratch, h
        )
        if status != OK:
            return status, joint
    return OK, 0


@kernel(allocates=False)
def wind_cables(wiring: Wiring, motors: Array, target: Array) -> None:
    """Write the contractions of the cables (m,) [m] from those of the motors."""
    for i in range(target.shape[0]):
        target[i] = wiring.sign[i] * motors[wiring.motor[i]] + wiring.offset[i]


@kernel(allocates=False)
def drive_arm(
    body: BodyParameters,
    cables: CableParameters,
    threads: ThreadFriction,
    state: ArmState,
    loads: Loads,
    steppers: StepperParameters,
    motors: StepperState,
    wiring: Wiring,
    target: Array,
    scratch: Scratch,
    h: float,
    steps: int,
    turning: bool,
) -> tuple[int, int]:
    """
    Advance motors and arm together by `steps` steps; return status and joint.

    The motors move towards their targets or, if `turning`, continue with their present velocity.
    `target` (m,) is overwritten with the contractions of the cables [m].
    """
    for _ in range(steps):
        if turning:
            turn_motors(steppers, motors, h)
        else:
            step_motors(steppers, motors, h)
        wind_cables(wiring, motors.contraction, target)
        status, joint, _ = step_arm(body, cables, threads, state, loads, target, False, scratch, h)
        if status != OK:
            return status, joint
    return OK, 0


@kernel
def settle_arm(
    body: BodyParameters,
    cables: CableParameters,
    threads: ThreadFriction,
    state: ArmState,
    loads: Loads,
    target: Array,
    tension_given: bool,
    scratch: Scratch,
    h: float,
    max_steps: int,
    tolerance: float,
) -> tuple[int, int]:
    """
    Advance until every joint is still; return status (UNSETTLED after `max_steps`) and joint.

    Kinetic damping: when the kinetic energy has passed a maximum, all velocities are set to zero.
    `tolerance` bounds the angular velocities [rad/s] and strain rates [1/s].
    """
    memory = np.zeros(3)
    for _ in range(max_steps):
        status, joint, energy = step_arm(
            body, cables, threads, state, loads, target, tension_given, scratch, h
        )
        if status != OK:
            return status, joint
        if calmed(body, state, energy, tolerance, memory):
            return OK, 0
    return UNSETTLED, 0


@kernel(allocates=False)
def calmed(
    body: BodyParameters, state: ArmState, energy: float, tolerance: float, memory: Array
) -> bool:
    """
    Zero the velocities after every maximum of the kinetic energy; return whether all is still.

    `energy` [J] is that before the step; `memory` (3,) belongs to this function, zero at first.
    """
    last_energy, since_reset, still = memory[0], memory[1] + 1.0, memory[2]
    still = still + 1.0 if fastest_joint(body, state) < tolerance else 0.0
    if still >= _STILL_STEPS:
        state.velocity[:] = 0.0
        return True
    if energy < last_energy and since_reset > _RESET_STEPS:
        state.velocity[:] = 0.0
        since_reset, still, energy = 0.0, 0.0, 0.0
    memory[0], memory[1], memory[2] = energy, since_reset, still
    return False


@kernel(allocates=False)
def fastest_joint(body: BodyParameters, state: ArmState) -> float:
    """Return the largest joint velocity [rad/s] or strain rate [1/s]."""
    largest = 0.0
    for g in range(body.mass.shape[0]):
        for j in range(3):
            largest = max(largest, abs(state.velocity[g, j]))
        largest = max(largest, abs(state.velocity[g, 3]) / body.segment_length[g])
    return largest
