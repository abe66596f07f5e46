"""
Compiled muscles of the simulated arm: gas through valves, enclosed gas, folds.

A bag of cross-section A contains gas n = P_in A l, pressure times volume, at room temperature. The
atmosphere compresses the bag with P_out A; its folded skeleton of stiffness k extends it to its
full length; beyond that, the film is taut. With x the length that the folds follow, a little
behind l, a muscle pulls with

    T = P_out A - n / l - k (full - x) + film (l - full if l > full)

Gas flows through a throttle in proportion to the pressure difference:

    emptying  n' = -c n / l
    filling   n' = c (P_out A + supply_push - n / l)
    leaking   n' = c_leak (P_out A - n / l)

so a muscle that pulls as hard as its vacuum can does not shorten further, and one that pushes
against the full supply does not lengthen.
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

_NEWTON_STEPS, _STILL_M = 50, 1e-10


@kernel(allocates=False)
def fill_muscles(
    gas: Array,
    length: Array,
    open_s: Array,
    close_s: Array,
    throttles: Array,
    limits: Array,
    now: float,
    h: float,
) -> None:
    """
    Advance the gas of bags.

    Parameters
    ----------
    gas, length
        (m,): gas [N m], changed; length of the bags [m].
    now, h
        Start and length of the step [s].
    open_s, close_s
        (m, 2) [s]: times at which the emptying and filling valves open and close.
    throttles
        (m, 2) [m/s]: emptying, filling; gas per force of its pressure and time.
    limits
        Full length [m], force of the atmosphere, push of the supply [N], leak [m/s], play [m],
        film [N/m].

    """
    air, push, leak = limits[1], limits[2], limits[3]
    for i in range(gas.size):
        inside = gas[i] / length[i]
        flow = h * leak * (air - inside)
        emptied = min(close_s[i, 0], now + h) - max(open_s[i, 0], now)
        if emptied > 0.0:
            flow -= emptied * throttles[i, 0] * inside
        filled = min(close_s[i, 1], now + h) - max(open_s[i, 1], now)
        if filled > 0.0:
            flow += filled * throttles[i, 1] * max(air + push - inside, 0.0)
        gas[i] = max(gas[i] + flow, 0.0)


@kernel(allocates=False)
def muscle_springs_into(
    gas: Array,
    folds: Array,
    length: Array,
    skeleton: Array,
    limits: Array,
    acting: Array,
    stiffness: Array,
) -> None:
    """
    Move the folds, and write the linear springs tangent to the muscles' law at their lengths.

    Parameters
    ----------
    gas, folds, length
        (m,): gas [N m]; length x of the folds [m], changed; length of the bags [m].
    skeleton, limits
        (m,) [N/m]; as in `fill_muscles`.
    acting, stiffness
        (m,), written: length without load [m] and stiffness [N/m].

    """
    full, air, play, film = limits[0], limits[1], limits[4], limits[5]
    for i in range(gas.size):
        long = length[i]
        folds[i] = min(max(folds[i], long - play), long + play)
        pull = air - gas[i] / long - skeleton[i] * (full - folds[i])
        stiffness[i] = skeleton[i] + gas[i] / (long * long)
        if long > full:
            pull += film * (long - full)
            stiffness[i] += film
        acting[i] = long - pull / stiffness[i]


@kernel(allocates=False)
def hang_muscles(
    gas: Array,
    folds: Array,
    length: Array,
    tension: Array,
    open_s: Array,
    close_s: Array,
    throttles: Array,
    skeleton: Array,
    limits: Array,
    acting: Array,
    stiffness: Array,
    now: float,
    h: float,
    steps: int,
) -> None:
    """
    Advance muscles by `steps` of `h`, always at equilibrium with weights (m,) [N].

    The other arguments are those of `drive_muscle_arm`.
    """
    for step in range(steps):
        fill_muscles(gas, length, open_s, close_s, throttles, limits, now + step * h, h)
        for _ in range(_NEWTON_STEPS):
            muscle_springs_into(gas, folds, length, skeleton, limits, acting, stiffness)
            most = 0.0
            for i in range(gas.size):
                moved = acting[i] + tension[i] / stiffness[i] - length[i]
                most = max(most, abs(moved))
                length[i] += moved
            if most < _STILL_M:
                break


@kernel(allocates=False)
def drive_muscle_arm(
    gas: Array,
    folds: Array,
    length: Array,
    open_s: Array,
    close_s: Array,
    throttles: Array,
    skeleton: Array,
    offset: Array,
    limits: Array,
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

    `length` (m,) are the bags' lengths [m] at the start of the latest step, `offset` (m,) [m] the
    additional lengths of the connectors; `acting`, `stiffness` (m,) are written in each step. The
    law is linearised at the previous step's lengths, since a muscle moves micrometres per step.
    """
    for step in range(steps):
        fill_muscles(gas, length, open_s, close_s, throttles, limits, now + step * h, h)
        muscle_springs_into(gas, folds, length, skeleton, limits, acting, stiffness)
        for i in range(gas.size):
            acting[i] += offset[i]
        status, joint, _ = step_backbone(
            body, state, loads, medium, links, acting, stiffness, damping_time, scratch, h
        )
        if status != OK:
            return status, joint
        for i in range(gas.size):
            length[i] = scratch.length[i] - offset[i]
    return OK, 0
