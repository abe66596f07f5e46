"""
Compiled time step of winches, cable friction and rod together.

Winch: the load cell reads round((1 + gain) T + zero); the tension follows the target with first
order at a bounded rate, whatever the cable's motion. Friction: the tension falls by
exp(-mu angle d) (capstan) over the guide and, inside the arm, over the bending the cable has
passed; d in -1..1 says which way the cable slides (its stretch counts), and turns over within the
presliding (an elastic-plastic bristle).

The friction is advanced from the rod's newest velocities, which with the steps of the rod makes a
symplectic pair: no energy from the coupling.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.body_kernels import accelerate, factorise, load_bodies, place_bodies
from softarm_ros.plant.step_kernels import OK, UNSETTLED, calmed, move_joints
from softarm_ros.plant.tendon_rod.layout import Rod, WinchParameters, WinchState
from softarm_ros.plant.tendon_rod.rod_kernels import bend_joints, pull_cables, shortening_of

TURNED = 12
MAX_TURN_RAD = 2.5  # of a segment


@kernel(allocates=False)
def read_cell(tension: float, gain: float, zero: float, resolution: float) -> float:
    """Return what a load cell shows [N]."""
    value = (1.0 + gain) * tension + zero
    if resolution > 0.0:
        value = resolution * math.floor(value / resolution + 0.5)
    return value


@kernel(allocates=False)
def slide_cables(parameters: WinchParameters, winches: WinchState, rod: Rod, h: float) -> None:
    """Turn the friction over as far as the cables have slid in the last h [s]."""
    stiffness, presliding = parameters.numbers[2], parameters.numbers[6]
    for i in range(rod.runs.shape[1]):
        moved = shortening_of(rod, i) + winches.rate[i] / stiffness
        sliding = winches.sliding[i] + h * moved / presliding
        winches.sliding[i] = min(max(sliding, -1.0), 1.0)


@kernel(allocates=False)
def wind(parameters: WinchParameters, winches: WinchState, h: float) -> None:
    """Advance the tensions by h [s]."""
    tau, fastest, resolution = (
        parameters.numbers[0], parameters.numbers[1], parameters.numbers[3]
    )  # fmt: skip
    for i in range(winches.tension.shape[0]):
        shown = read_cell(winches.tension[i], parameters.gain[i], parameters.zero[i], resolution)
        miss = winches.target[i] - shown
        if abs(miss) <= 0.5 * resolution:
            miss = 0.0
        # The mean rate of a first-order lag over the step.
        rate = -miss * math.expm1(-h / tau) / h
        rate = min(max(rate, -fastest), fastest)
        rate = max(rate, -winches.tension[i] / h)
        winches.tension[i] += h * rate
        winches.rate[i] = rate


@kernel(allocates=False)
def spread_tensions(parameters: WinchParameters, winches: WinchState, rod: Rod) -> None:
    """Write the tension of every cable at every joint: capstan friction along its way."""
    guide, mu = parameters.numbers[4], parameters.numbers[5]
    n, m = rod.runs.shape
    for i in range(m):
        angle = 0.0
        for g in range(n):
            if rod.runs[g, i] == 0.0:
                rod.tension[g, i] = 0.0
                continue
            turn = math.hypot(rod.scratch.logarithm[g, 0], rod.scratch.logarithm[g, 1])
            loss = (guide + mu * (angle + 0.5 * turn)) * winches.sliding[i]
            rod.tension[g, i] = winches.tension[i] * math.exp(-loss)
            angle += turn


@kernel(allocates=False)
def load_rod(rod: Rod, h: float) -> float:
    """Load the chain for a step of h [s], without cables; return the kinetic energy [J]."""
    place_bodies(rod.body, rod.state, rod.scratch)
    energy = load_bodies(rod.body, rod.state, rod.loads, rod.scratch, h)
    bend_joints(rod, h)
    return energy


@kernel(allocates=False)
def move_rod(rod: Rod, h: float) -> tuple[int, int]:
    """Advance the loaded rod by h [s] under the tensions in force; return status and joint."""
    pull_cables(rod)
    factorise(rod.solver, rod.scratch, h, 0)
    accelerate(rod.scratch, rod.state.tension, h, rod.state.velocity)
    return move_joints(rod.body, rod.state, h)


@kernel(allocates=False)
def turned_joint(rod: Rod, per: int) -> int:
    """Return a joint of the first segment of `per` joints that has turned too far, or -1."""
    for first in range(0, rod.runs.shape[0], per):
        x, y, z = 0.0, 0.0, 0.0
        for g in range(first, first + per):
            x += rod.scratch.logarithm[g, 0]
            y += rod.scratch.logarithm[g, 1]
            z += rod.scratch.logarithm[g, 2]
        if not x * x + y * y + z * z <= MAX_TURN_RAD * MAX_TURN_RAD:
            return first
    return -1


@kernel(allocates=False)
def drive_rod(
    parameters: WinchParameters, winches: WinchState, rod: Rod, per: int, h: float, steps: int
) -> tuple[int, int]:
    """Advance everything by `steps` steps of h [s]; return status (`step_kernels`) and joint."""
    for _ in range(steps):
        load_rod(rod, h)
        turned = turned_joint(rod, per)
        if turned >= 0:
            return TURNED, turned
        slide_cables(parameters, winches, rod, h)
        spread_tensions(parameters, winches, rod)
        status, joint = move_rod(rod, h)
        if status != OK:
            return status, joint
        wind(parameters, winches, h)
    return OK, 0


@kernel
def settle_rod(
    parameters: WinchParameters,
    winches: WinchState,
    rod: Rod,
    per: int,
    h: float,
    max_steps: int,
    tolerance: float,
) -> tuple[int, int]:
    """Advance under the tensions in force, friction as it stands, until all is still."""
    memory = np.zeros(3)
    for _ in range(max_steps):
        energy = load_rod(rod, h)
        turned = turned_joint(rod, per)
        if turned >= 0:
            return TURNED, turned
        spread_tensions(parameters, winches, rod)
        status, joint = move_rod(rod, h)
        if status != OK:
            return status, joint
        if calmed(rod.body, rod.state, energy, tolerance, memory):
            return OK, 0
    return UNSETTLED, 0
