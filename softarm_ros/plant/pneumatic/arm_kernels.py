"""
Compiled step of the pneumatic arm: regulators, chambers and the chain of elastic joints.

Chambers change the shape of a joint without load: they give it a free strain. A moment on the
joint's rotation vector and a force along the joint pull towards it: the stiffness at the present
elongation times the free strain. The chain's own springs have the stiffness at rest, so the
stiffness lost by elongation is compensated for.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import inlined, kernel
from softarm_ros.plant.body_kernels import accelerate, factorise, load_bodies, place_bodies
from softarm_ros.plant.joint_kernels import conjugate_moment
from softarm_ros.plant.medium_kernels import immerse
from softarm_ros.plant.pneumatic.chamber_kernels import advance_chambers, free_strain_into
from softarm_ros.plant.pneumatic.layout import Arm, Chambers, Valves
from softarm_ros.plant.pneumatic.silicone_kernels import softened
from softarm_ros.plant.pneumatic.valve_kernels import advance_valves
from softarm_ros.plant.point_kernels import carry_points
from softarm_ros.plant.step_kernels import OK, UNSETTLED, calmed, move_joints
from softarm_ros.plant.water_kernels import wet


@kernel(allocates=False)
def prepare_arm(arm: Arm, h: float) -> float:
    """Load the chain for a step of h [s]; return the kinetic energy [J]."""
    scratch, drive, lost = arm.scratch, arm.drive, arm.lost
    place_bodies(arm.body, arm.state, scratch)
    energy = load_bodies(arm.body, arm.state, arm.loads, scratch, h)
    for g in range(drive.shape[0]):
        turned, k = scratch.logarithm[g], arm.body.stiffness[g]
        x, y, z = conjugate_moment(
            turned,
            drive[g, 0] + lost[g] * k[0] * turned[0],
            drive[g, 1] + lost[g] * k[0] * turned[1],
            drive[g, 2] + lost[g] * k[1] * turned[2],
        )
        scratch.load[g, 0] += x
        scratch.load[g, 1] += y
        scratch.load[g, 2] += z
        scratch.load[g, 3] += drive[g, 3] + lost[g] * k[2] * arm.state.extension[g]
    carry_points(arm.body, arm.points, scratch)
    if arm.water.length.shape[0] > 0:
        wet(scratch, arm.water, arm.still, arm.medium)
        immerse(arm.body, arm.medium, scratch, 0.5 * h)  # drag of the mean velocity
    return energy


@inlined
def step_arm(arm: Arm, h: float) -> tuple[int, int, float]:
    """
    Advance the body by h [s]; return status (`step_kernels`), joint, kinetic energy before [J].

    `scratch.carried[0]` keeps the load on the mount: moment and force about the origin.
    """
    energy = prepare_arm(arm, h)
    factorise(arm.solver, arm.scratch, h, 0)
    accelerate(arm.scratch, arm.state.tension, h, arm.state.velocity)
    status, joint = move_joints(arm.body, arm.state, h)
    return status, joint, energy


@kernel
def settle_arm(arm: Arm, h: float, max_steps: int, tolerance: float) -> tuple[int, int]:
    """Advance under a constant drive until all is still; return status and joint."""
    memory = np.zeros(3)
    for _ in range(max_steps):
        status, joint, energy = step_arm(arm, h)
        if status != OK:
            return status, joint
        if calmed(arm.body, arm.state, energy, tolerance, memory):
            return OK, 0
    return UNSETTLED, 0


@kernel(allocates=False)
def drive_into(arm: Arm, free: Array) -> None:
    """Write the drive for free strains (sections, 4); see `free_strain_into`."""
    for k in range(free.shape[0]):
        left = softened(free[k, 3], arm.c20_share[k])
        for g in range(arm.chambered[k, 0], arm.chambered[k, 1]):
            arm.lost[g] = 1.0 - left
            for j in range(4):
                arm.drive[g, j] = left * arm.stiffness[k, j] * free[k, j]


@kernel(allocates=False)
def drive_arm(
    valves: Valves, tight: Array, noise: Array, chambers: Chambers, free: Array, arm: Arm, h: float
) -> tuple[int, int]:
    """
    Advance everything by steps of h [s], one per row of `noise`; return status and joint.

    The body moves under the pressures at the start of a step. Its velocities belong to the middles
    of the steps, so this is of second order. `noise` (steps, m) [Pa] is that of the sensors;
    `tight` (m,) is 0 for a burst chamber; `free` (sections, 4) is overwritten with the free
    strains.
    """
    for step in range(noise.shape[0]):
        status, joint, _ = step_arm(arm, h)
        if status != OK:
            return status, joint
        advance_valves(valves, noise[step], h)
        for k in range(free.shape[0]):
            share = chambers.output[k]
            for j in range(3):
                i = 3 * k + j
                share[j] = tight[i] * valves.pressure[i] / chambers.full[k]
            advance_chambers(chambers, k, share, h)
            free_strain_into(chambers, k, chambers.output[k], free[k])
        drive_into(arm, free)
    return OK, 0
