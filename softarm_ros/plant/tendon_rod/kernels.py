"""
Compiled time step of winches, cable friction and rod together.

Winch: the load cell reads round((1 + gain) T + zero); the tension follows the target with first
order at a bounded rate, whatever the cable's motion. Friction: the tension falls by
exp(-mu angle d) (capstan) over the guide and, inside the arm, over the bending the cable has
passed; d in -1..1 says which way the cable slides (its stretch counts), and turns over within the
presliding (an elastic-plastic bristle).

The friction is advanced from the rod's newest velocities, which with the implicit steps of the rod
makes a symplectic pair: no energy from the coupling.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.arm_model import Array
from softarm_ros.models.dynamics.integrator_kernels import REACHED, advance
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch

OK, NOT_SOLVED, FOLDED, UNSETTLED = 0, 1, 2, 3
MAX_TURN_RAD = 2.5  # of a segment
MAX_STEPS = 2000
SPECTRAL_RADIUS = 0.6


class WinchParameters(NamedTuple):
    """
    Winches and cables of one arm of n pieces and m cables.

    Attributes
    ----------
    gain, zero : (m,)
        Error of the load cells [-, N].
    runs : (n, m)
        1 where a cable runs through a piece.
    numbers : (7,)
        time constant [s], tension rate [N/s], cable stiffness [N/m], resolution [N], loss in the
        guide, mu, presliding [m].

    """

    gain: Array
    zero: Array
    runs: Array
    numbers: Array


class WinchState(NamedTuple):
    """
    State of the winches.

    Attributes
    ----------
    tension : (m,)
        At the winch [N].
    rate : (m,)
        Its rate of change [N/s].
    target : (m,)
        [N].
    sliding : (m,)
        Which way friction acts, -1..1; 1 when the cable is pulled in.

    """

    tension: Array
    rate: Array
    target: Array
    sliding: Array


class RodMemory(NamedTuple):
    """
    State and work space of the rod's integrator.

    Attributes
    ----------
    state : (5, n, 4)
        Strains, rates, accelerations, filtered accelerations, jerk.
    step : (2,)
        Next step [s] and Newton contraction of the integrator.
    frozen, moving, work, twists
        Scratch of `models.dynamics`.

    """

    state: Array
    step: Array
    frozen: Scratch
    moving: Scratch
    work: Array
    twists: Array


@kernel
def read_cell(tension: float, gain: float, zero: float, resolution: float) -> float:
    """Return what a load cell shows [N]."""
    value = (1.0 + gain) * tension + zero
    if resolution > 0.0:
        value = resolution * math.floor(value / resolution + 0.5)
    return value


@kernel
def wind(
    parameters: WinchParameters,
    winches: WinchState,
    body: Body,
    loads: Loads,
    rates: Array,
    h: float,
) -> None:
    """Advance tensions and friction by h [s] under strain rates (n, 4)."""
    tau, fastest, stiffness, resolution = parameters.numbers[:4]
    presliding = parameters.numbers[6]
    n, m = parameters.runs.shape
    for i in range(m):
        shortening = 0.0
        for k in range(n):
            if parameters.runs[k, i] > 0.0:
                x, y = loads.cable_offset[k, i, 0], loads.cable_offset[k, i, 1]
                along = rates[k, 0] + rates[k, 1] * y - rates[k, 2] * x
                shortening -= body.length[k] * along
        shown = read_cell(winches.tension[i], parameters.gain[i], parameters.zero[i], resolution)
        miss = winches.target[i] - shown
        if abs(miss) <= 0.5 * resolution:
            miss = 0.0
        # Implicit in the tension itself, else a step longer than tau would swing.
        rate = miss / (tau + h)
        rate = min(max(rate, -fastest), fastest)
        rate = max(rate, -winches.tension[i] / h)
        winches.tension[i] += h * rate
        winches.rate[i] = rate
        moved = winches.sliding[i] + h * (shortening + rate / stiffness) / presliding
        winches.sliding[i] = min(max(moved, -1.0), 1.0)


@kernel
def spread_tensions(
    parameters: WinchParameters, winches: WinchState, body: Body, strains: Array, loads: Loads
) -> None:
    """Write the tension of every cable in every piece: capstan friction along its way."""
    guide, mu = parameters.numbers[4], parameters.numbers[5]
    n, m = parameters.runs.shape
    for i in range(m):
        angle = 0.0
        for k in range(n):
            if parameters.runs[k, i] == 0.0:
                loads.cable_tension[k, i] = 0.0
                continue
            turn = body.length[k] * math.hypot(strains[k, 1], strains[k, 2])
            loss = (guide + mu * (angle + 0.5 * turn)) * winches.sliding[i]
            loads.cable_tension[k, i] = winches.tension[i] * math.exp(-loss)
            angle += turn


@kernel
def step_rod(
    body: Body, loads: Loads, memory: RodMemory, h: float, max_step: float, tolerance: float
) -> int:
    """Advance the rod by h [s] under constant loads; return OK or NOT_SOLVED."""
    status, _, step, contraction, _, _, _ = advance(
        body,
        loads,
        memory.state,
        h,
        memory.step[0],
        max_step,
        tolerance,
        SPECTRAL_RADIUS,
        memory.step[1],
        memory.frozen,
        memory.moving,
        memory.work,
        memory.twists,
        MAX_STEPS,
    )
    memory.step[0] = step
    memory.step[1] = contraction
    return OK if status == REACHED else NOT_SOLVED


@kernel
def folded_segment(body: Body, strains: Array, per: int) -> int:
    """Return the first segment that has turned too far or is not finite, or -1."""
    for first in range(0, strains.shape[0], per):
        x, y, z = 0.0, 0.0, 0.0
        for k in range(first, first + per):
            x += body.length[k] * strains[k, 1]
            y += body.length[k] * strains[k, 2]
            z += body.length[k] * strains[k, 3]
        if not x * x + y * y + z * z <= MAX_TURN_RAD * MAX_TURN_RAD:
            return first // per
    return -1


@kernel
def drive_rod(
    parameters: WinchParameters,
    winches: WinchState,
    body: Body,
    loads: Loads,
    memory: RodMemory,
    per: int,
    h: float,
    steps: int,
    tolerance: float,
) -> tuple[int, int]:
    """Advance everything by `steps` steps of h [s]; return status and segment."""
    for _ in range(steps):
        wind(parameters, winches, body, loads, memory.state[1], h)
        spread_tensions(parameters, winches, body, memory.state[0], loads)
        if step_rod(body, loads, memory, h, h, tolerance) != OK:
            return NOT_SOLVED, 0
        folded = folded_segment(body, memory.state[0], per)
        if folded >= 0:
            return FOLDED, folded
    return OK, 0


@kernel
def settle_rod(
    parameters: WinchParameters,
    winches: WinchState,
    body: Body,
    loads: Loads,
    memory: RodMemory,
    per: int,
    h: float,
    steps: int,
    tolerance: float,
    still_1_s: float,
) -> tuple[int, int]:
    """
    Advance the (heavily damped) rod under the tensions in force until it is still.

    `still_1_s` bounds the turning rate of a segment [rad/s]. Friction stands as it is.
    """
    for count in range(steps):
        spread_tensions(parameters, winches, body, memory.state[0], loads)
        if step_rod(body, loads, memory, h, h, tolerance) != OK:
            return NOT_SOLVED, 0
        folded = folded_segment(body, memory.state[0], per)
        if folded >= 0:
            return FOLDED, folded
        fastest = 0.0
        for k in range(memory.state.shape[1]):
            for j in range(1, 4):
                fastest = max(fastest, abs(memory.state[1, k, j]) * body.length[k] * per)
        if count > 3 and fastest < still_1_s:
            memory.state[1:] = 0.0
            return OK, 0
    return UNSETTLED, 0
