"""
Compiled statics of the cables of a section that also carries weight and load.

As in `cable_statics_kernels`, but the moment that the cables share is given: under weight, it is
not K_b / L times the bend, and not in the direction of the bend. Only the two cables next to the
direction of the moment pull.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.cable_driven.cable_statics_kernels import (
    MAX_BENDING_RAD,
    NO_CABLE,
    NOT_HOLDABLE,
    OK,
    TOO_BENT,
    contraction_slopes,
    excess_of,
    incident_angle_of_moment,
)
from softarm_ros.models.cable_driven.slack_kernels import holding_shares


@kernel
def loaded_contractions_into(
    bend: Array,
    held: Array,
    section: Array,
    cables: Array,
    contraction: Array,
    tension: Array,
    by_bend: Array,
    by_held: Array,
) -> int:
    """
    Solve the cables that hold a section at a bend (2,) [rad] against moments (2,) [N m].

    Writes contractions [m] and tensions [N] (m,), and the derivatives of the contractions by bend
    (m, 2) [m/rad] and by moment (m, 2) [1/N]. Where the moment points along a cable, the
    derivatives are those towards a neighbour. Returns OK, or the status that says why the cables
    cannot hold the section.
    """
    length, cutting = section[0], section[3]
    theta = math.hypot(bend[0], bend[1])
    for n in range(cables.shape[0]):
        contraction[n] = cables[n, 0] * bend[0] + cables[n, 1] * bend[1]
        tension[n] = 0.0
        for c in range(2):
            by_bend[n, c] = cables[n, c]
            by_held[n, c] = 0.0
        if contraction[n] >= length:
            return NO_CABLE
    if not theta <= MAX_BENDING_RAD:
        return TOO_BENT
    i, j, share_i, share_j, holdable = holding_shares(held[0], held[1], cables)
    if not holdable:
        return NOT_HOLDABLE if held[0] != 0.0 or held[1] != 0.0 else OK
    ex, ey = (bend[0] / theta, bend[1] / theta) if theta > 0.0 else (0.0, 0.0)
    x = 0.5 * theta
    for side in range(2):
        n, other, share = (i, j, share_i) if side == 0 else (j, i, share_j)
        if side == 1 and j == i:
            break
        ax, ay = cables[n, 0], cables[n, 1]
        if j == i:
            square = ax * ax + ay * ay
            mx, my = ax / square, ay / square
        else:
            det = ax * cables[other, 1] - ay * cables[other, 0]
            mx, my = cables[other, 1] / det, -cables[other, 0] / det
        p = contraction[n]
        alpha = incident_angle_of_moment(share, x, p, length, cutting)
        c_x, c_p, c_m = contraction_slopes(share, alpha, x, p, length, cutting)
        contraction[n] = p + excess_of(alpha, x, p, length)
        tension[n] = share / math.cos(alpha)
        by_bend[n, 0] = 0.5 * c_x * ex + c_p * ax
        by_bend[n, 1] = 0.5 * c_x * ey + c_p * ay
        by_held[n, 0] = c_m * mx
        by_held[n, 1] = c_m * my
    return OK
