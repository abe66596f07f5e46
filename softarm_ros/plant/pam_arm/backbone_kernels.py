"""
Compiled dynamics of the backbone: a chain of elastic joints, with muscles between the disks.

The joints have the bending, twist and stretch of the rod (`joint_kernels`). A muscle is a straight
spring between the disks of its module (`link_kernels`); all muscles are implicit in the step.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.body_kernels import accelerate, factorise, load_bodies, place_bodies
from softarm_ros.plant.layout import ArmState, BodyParameters, Links, Loads, Medium, Scratch
from softarm_ros.plant.link_kernels import couple_links, measure_links
from softarm_ros.plant.medium_kernels import immerse
from softarm_ros.plant.step_kernels import NOT_FINITE, OK, UNSETTLED, calmed, move_joints
from softarm_ros.plant.tension_kernels import solve_active


@kernel(allocates=False)
def step_backbone(
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    medium: Medium,
    links: Links,
    rest: Array,
    stiffness: Array,
    damping_time: float,
    scratch: Scratch,
    h: float,
) -> tuple[int, int, float]:
    """
    Advance the backbone by h [s] under muscles of rest lengths (m,) [m] and stiffnesses [N/m].

    Writes the tensions of the springs at the end of the step, without their dashpots, to
    `state.tension`.

    Returns
    -------
    tuple
        Status (`step_kernels`), the joint concerned, and the kinetic energy [J] before the step.

    """
    place_bodies(body, state, scratch)
    energy = load_bodies(body, state, loads, scratch, h)
    immerse(body, medium, scratch, h)
    measure_links(links, scratch)
    m = rest.shape[0]
    factorise(body, scratch, h, m)
    couple_links(links, state.velocity, rest, stiffness, damping_time, scratch, h)
    if not solve_active(
        scratch.compliance, scratch.gap, scratch.taut, scratch.factor, scratch.solution
    ):
        return NOT_FINITE, 0, energy
    accelerate(scratch, scratch.solution, h, state.velocity)
    lag = damping_time / h
    for i in range(m):
        force = scratch.solution[i] + stiffness[i] * lag * (scratch.length[i] - rest[i])
        state.tension[i] = force / (1.0 + lag)
    status, joint = move_joints(body, state, h)
    return status, joint, energy


@kernel
def settle_backbone(
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    medium: Medium,
    links: Links,
    rest: Array,
    stiffness: Array,
    damping_time: float,
    scratch: Scratch,
    h: float,
    max_steps: int,
    tolerance: float,
) -> tuple[int, int]:
    """Advance until all is still, as `settle_arm` does; return status and joint."""
    memory = np.zeros(3)
    for _ in range(max_steps):
        status, joint, energy = step_backbone(
            body, state, loads, medium, links, rest, stiffness, damping_time, scratch, h
        )
        if status != OK:
            return status, joint
        if calmed(body, state, energy, tolerance, memory):
            return OK, 0
    return UNSETTLED, 0
