"""
Compiled muscles of the simulated arm: filling through valves, play of the folds, stiffness.

A muscle pulls with (P_out - P_in) d_a^2 less what its folded skeleton, a spring k_s, takes. Gas
flows through a throttle in proportion to the pressure difference. In terms of the free length g
that the gas alone would give the unloaded muscle, and with k_s = max_pull / (full - min):

    emptying  g' = -(g - min - T / k_s) / filling_time
    filling   g' = (full + supply_push / k_s - g + T / k_s) / filling_time,  g <= full
    leaking   g' = (full - g + T / k_s) / leak_time

so that a muscle which pulls as hard as its vacuum can shortens no further, nor does one that
pushes against the full supply lengthen.
"""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.layout import (
    ArmState,
    BodyParameters,
    Links,
    Loads,
    Medium,
    Scratch,
)
from softarm_ros.plant.pam_arm.backbone_kernels import step_backbone
from softarm_ros.plant.step_kernels import OK


@kernel(allocates=False)
def fill_muscles(
    gas: Array,
    free: Array,
    tension: Array,
    open_s: Array,
    close_s: Array,
    filling_times: Array,
    limits: Array,
    now: float,
    h: float,
) -> None:
    """
    Advance `gas` and `free` (m,) [m]: free lengths by the gas, and behind the play of the folds.

    Parameters
    ----------
    now, h
        Start and length of the step [s].
    gas, free
        (m,) [m], changed.
    tension
        (m,) [N], positive pulling.
    open_s, close_s
        (m, 2) [s]: when the valves, emptying and filling, open and close.
    filling_times
        (m, 2) [s]: emptying, filling.
    limits
        min length, full length [m], max pull, supply push [N], leak time [s], play [m].

    """
    shortest, full, pull, push = limits[0], limits[1], limits[2], limits[3]
    leak_time, play = limits[4], limits[5]
    skeleton = pull / (full - shortest)
    for i in range(gas.size):
        stretched = tension[i] / skeleton
        flow = h * (full - gas[i] + stretched) / leak_time
        emptied = min(close_s[i, 0], now + h) - max(open_s[i, 0], now)
        if emptied > 0.0:
            head = gas[i] - shortest - stretched
            flow -= emptied * max(head, 0.0) / filling_times[i, 0]
        filled = min(close_s[i, 1], now + h) - max(open_s[i, 1], now)
        if filled > 0.0:
            head = full + push / skeleton - gas[i] + stretched
            flow += filled * max(head, 0.0) / filling_times[i, 1]
        gas[i] = min(max(gas[i] + flow, shortest), full)
        free[i] = min(max(free[i], gas[i] - play), gas[i] + play)


@kernel(allocates=False)
def muscle_state_into(
    free: Array,
    offset: Array,
    full_stiffness: Array,
    softening: float,
    limits: Array,
    acting: Array,
    stiffness: Array,
) -> None:
    """
    Write length without load [m] and stiffness [N/m], both (m,), of free lengths (m,).

    `offset`, `full_stiffness` (m,): what homing got wrong [m], stiffness of the full muscle.
    """
    span = limits[1] - limits[0]
    for i in range(free.size):
        acting[i] = free[i] + offset[i]
        stiffness[i] = full_stiffness[i] * (1.0 - softening * (limits[1] - free[i]) / span)


@kernel(allocates=False)
def drive_muscle_arm(
    gas: Array,
    free: Array,
    open_s: Array,
    close_s: Array,
    filling_times: Array,
    limits: Array,
    offset: Array,
    full_stiffness: Array,
    softening: float,
    acting: Array,
    stiffness: Array,
    body: BodyParameters,
    state: ArmState,
    loads: Loads,
    medium: Medium,
    links: Links,
    damping_time: float,
    scratch: Scratch,
    now: float,
    h: float,
    steps: int,
) -> tuple[int, int]:
    """
    Advance muscles and backbone by `steps` of `h`; return status and joint.

    `acting`, `stiffness` (m,): of the muscles, as `muscle_state_into` writes them for each step.
    """
    for step in range(steps):
        fill_muscles(
            gas, free, state.tension, open_s, close_s, filling_times, limits, now + step * h, h
        )  # fmt: skip
        muscle_state_into(free, offset, full_stiffness, softening, limits, acting, stiffness)
        status, joint, _ = step_backbone(
            body, state, loads, medium, links, acting, stiffness, damping_time, scratch, h
        )
        if status != OK:
            return status, joint
    return OK, 0
