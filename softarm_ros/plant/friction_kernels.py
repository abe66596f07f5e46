"""
Compiled friction of a cable in its guides: capstan law with an elastic-plastic bristle.

A cable turns at each node and presses there on its guide. What the guide takes from its tension is
at most
    T_before - T_after = tanh(mu turn / 2) (T_before + T_after),
which is the capstan law, T_after = T_before exp(-mu turn), for either direction of sliding.
Below that the cable sticks: a bristle of constant stiffness k holds it back by k z, z' being the
speed at which the cable passes the node. Where the limit falls, z falls with it.

Such a bristle stores k z^2 / 2 and takes up what it yields by, whatever its limit does: no motion
gains energy. (One that scales with the tension is stiffer when the tension is higher, and can.)
Limits are those of the tensions of the last step, forces those of the newest places, held over
the step.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.cable_friction import CableFriction


@kernel(allocates=False)
def hold_cable(nodes: CableFriction, i: int, count: int, stretched: float, tension: float) -> None:
    """
    Move the bristles of cable i by how far it has passed its first `count` nodes; write `lost`.

    `arc` and `angle` must be those of now. `stretched` [m] slides past every node as well;
    `tension` [N] is that before the first.
    """
    bristle, beyond, lost = nodes.bristle[i], nodes.beyond[i], nodes.lost[i]
    length = 0.0
    for g in range(count - 1, -1, -1):
        length += nodes.arc[i, g]
        # For a while, by how much the cable has passed the node towards the base.
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
