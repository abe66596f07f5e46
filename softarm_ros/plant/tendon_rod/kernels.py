"""
Compiled time step of winches, cable friction and rod together.

Winch: the load cell reads round((1 + gain) T + zero); the tension follows the target with a
first-order lag at a bounded rate, whatever the cable's motion. Friction (`friction_kernels`) acts
in the guide before the arm, and where a cable passes from one joint to the next, by half the bend
of each. The cable's stretch slides there too.

Friction depends on the newest positions of the rod. With the rod's steps this is a symplectic
scheme, so the coupling adds no energy.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.body_kernels import accelerate, factorise, load_bodies, place_bodies
from softarm_ros.plant.friction_kernels import hold_cable
from softarm_ros.plant.step_kernels import OK, UNSETTLED, calmed, move_joints
from softarm_ros.plant.tendon_rod.layout import Rod, WinchParameters, WinchState
from softarm_ros.plant.tendon_rod.rod_kernels import bend_joints, length_of, pull_cables

TURNED = 12
MAX_TURN_RAD = 2.5  # of a segment


@kernel(allocates=False)
def read_cell(tension: float, gain: float, zero: float, resolution: float) -> float:
    """Return the reading of a load cell [N]."""
    value = (1.0 + gain) * tension + zero
    if resolution > 0.0:
        value = resolution * math.floor(value / resolution + 0.5)
    return value


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
        # Mean rate of a first-order lag over the step.
        rate = -miss * math.expm1(-h / tau) / h
        rate = min(max(rate, -fastest), fastest)
        rate = max(rate, -winches.tension[i] / h)
        winches.tension[i] += h * rate
        winches.rate[i] = rate


@kernel(allocates=False)
def follow_cable(parameters: WinchParameters, rod: Rod, i: int) -> int:
    """Write the turns of cable i and its lengths between nodes; return the number of nodes."""
    guide, mu = parameters.numbers[4], parameters.numbers[5]
    angle, arc = rod.nodes.angle[i], rod.nodes.arc[i]
    angle[0], before, count = guide, 0.0, 1
    for g in range(rod.runs.shape[0]):
        if rod.runs[g, i] == 0.0:
            break
        logarithm = rod.scratch.logarithm[g]
        half = 0.5 * math.hypot(logarithm[0], logarithm[1])
        angle[count] = mu * (before + half)
        arc[count] = length_of(rod, g, i)
        before, count = half, count + 1
    return count


@kernel(allocates=False)
def spread_tensions(parameters: WinchParameters, winches: WinchState, rod: Rod, h: float) -> None:
    """Write the tension of every cable at every joint, after the motion of the last h [s]."""
    n, m = rod.runs.shape
    for i in range(m):
        count = follow_cable(parameters, rod, i)
        stretched = h * winches.rate[i] / parameters.numbers[2]
        hold_cable(rod.nodes, i, count, stretched, winches.tension[i])
        for g in range(n):
            inside = g + 1 < count
            rod.tension[g, i] = winches.tension[i] - rod.nodes.lost[i, g + 1] if inside else 0.0


@kernel(allocates=False)
def free_cables(parameters: WinchParameters, winches: WinchState, rod: Rod) -> None:
    """Reset all bristles at the present cable positions; all tensions become the winches'."""
    n, m = rod.runs.shape
    for i in range(m):
        count, length = follow_cable(parameters, rod, i), 0.0
        for g in range(count - 1, -1, -1):
            length += rod.nodes.arc[i, g]
            rod.nodes.beyond[i, g] = length
            rod.nodes.bristle[i, g] = 0.0
            rod.nodes.lost[i, g] = 0.0
        for g in range(n):
            rod.tension[g, i] = winches.tension[i] if g + 1 < count else 0.0


@kernel(allocates=False)
def load_rod(rod: Rod, h: float) -> float:
    """Load the chain for a step of h [s], without cables; return the kinetic energy [J]."""
    place_bodies(rod.body, rod.state, rod.scratch)
    energy = load_bodies(rod.body, rod.state, rod.loads, rod.scratch, h)
    bend_joints(rod, h)
    return energy


@kernel(allocates=False)
def move_rod(rod: Rod, h: float) -> tuple[int, int]:
    """Advance the loaded rod by h [s] under the present tensions; return status and joint."""
    pull_cables(rod)
    factorise(rod.solver, rod.scratch, h, 0)
    accelerate(rod.scratch, rod.state.tension, h, rod.state.velocity)
    return move_joints(rod.body, rod.state, h)


@kernel(allocates=False)
def turned_joint(rod: Rod, per: int) -> int:
    """Return the first joint of a segment of `per` joints that is bent too far, or -1."""
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
        spread_tensions(parameters, winches, rod, h)
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
    """Advance under the present tensions, without friction, until all is still."""
    memory = np.zeros(3)
    for _ in range(max_steps):
        energy = load_rod(rod, h)
        turned = turned_joint(rod, per)
        if turned >= 0:
            return TURNED, turned
        free_cables(parameters, winches, rod)
        status, joint = move_rod(rod, h)
        if status != OK:
            return status, joint
        if calmed(rod.body, rod.state, energy, tolerance, memory):
            load_rod(rod, h)
            free_cables(parameters, winches, rod)
            return OK, 0
    return UNSETTLED, 0
