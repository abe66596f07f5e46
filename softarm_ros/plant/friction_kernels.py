"""
Compiled friction of a cable in its guides: capstan law with an elastic-plastic bristle.

A cable turns at each node and presses on its guide there. The guide reduces its tension by at most
    T_before - T_after = tanh(mu turn / 2) (T_before + T_after),
which is the capstan law, T_after = T_before exp(-mu turn), for either direction of sliding.
Below that the cable sticks: a bristle of constant stiffness k holds it back by k z, where z' is
the speed at which the cable passes the node. If the limit decreases, so does z.

Such a bristle stores k z^2 / 2 and dissipates when it yields, however its limit changes: no motion
gains energy. (A bristle whose stiffness scales with the tension can gain energy.) Limits follow
from the tensions of the last step; forces follow from the newest positions and are constant over
the step.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.cable_friction import CableFriction


@kernel(allocates=False)
def hold_cable(nodes: CableFriction, i: int, count: int, stretched: float, tension: float) -> None:
    """
    Move the bristles of cable i by its motion past its first `count` nodes; write `lost`.

    `arc` and `angle` must be up to date. `stretched` [m] slides past every node as well;
    `tension` [N] is the tension before the first node.
    """
    bristle, beyond, lost = nodes.bristle[i], nodes.beyond[i], nodes.lost[i]
    length = 0.0
    for g in range(count - 1, -1, -1):
        length += nodes.arc[i, g]
        # Temporarily, the motion of the cable past the node towards the base.
        lost[g] = beyond[g] - length + stretched
        beyond[g] = length
    before, total = tension, 0.0
    for g in range(count):
        stiffness = nodes.stiffness[i, g]
        after = before - stiffness * bristle[g]
        pressing = before + after
        if pressing > 0.0:
            most = math.tanh(0.5 * nodes.angle[i, g]) * pressing / stiffness
            bristle[g] = min(max(bristle[g] + lost[g], -most), most)
        else:
            bristle[g] = 0.0
        total += stiffness * bristle[g]
        lost[g] = total
        before = after
