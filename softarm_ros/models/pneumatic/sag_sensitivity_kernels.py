"""
Compiled twist of the tip by bends and lengths, for an arm with sagging mounts.

With r(c, g) = 0 the equilibrium of the give g at a configuration c (see
`angle_correction_kernels`), dtip/dc = tip_c - tip_g r_g^-1 r_c, and the same for its rotation. It
needs finite differences of the residual only, no further equilibria.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.pneumatic.angle_correction_kernels import (
    STATIONS,
    compliances_into,
    is_rigid,
    residual_into,
)

_STEP = 1e-6  # of finite differences, rad and m


@kernel
def tip_twists(
    bends: Array,
    lengths: Array,
    materials: Array,
    softness: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    tilts: Array,
    bent: Array,
) -> Array:
    """
    Return the twist (6, 3 sections) of the tip by bends and lengths at an equilibrium.

    The arguments are those of `solve_give`. `tilts` (sections, 2) and the arcs under load `bent`
    (sections, 3) are its solution; they are not changed.
    """
    count = bends.shape[0]
    size = 4 * count
    moved, given = bends.copy(), np.empty((count, 4))
    for i in range(count):
        for k in range(2):
            given[i, k], given[i, 2 + k] = tilts[i, k], bent[i, k] - bends[i, k]
    arcs, moments, middles = np.empty((count, 3)), np.empty((count, 3)), np.empty((count, 3))
    compliances = np.empty(count)
    compliances_into(bends, softness, compliances)
    mounts, tips = np.empty((count, 4, 4)), np.empty((count, 4, 4))
    stations = np.empty((count, STATIONS, 3))
    after, before, ahead = np.empty(size), np.empty(size), np.empty((4, 4))
    by_give, by_bends = np.eye(size), np.empty((size, 3 * count))
    tip_by_give, tip_by_bends = np.zeros((3, size)), np.empty((3, 3 * count))
    turn_by_give, turn_by_bends = np.zeros((3, size)), np.empty((3, 3 * count))
    flat_give, flat_bends = given.reshape(size), moved.reshape(3 * count)
    for i in range(size + 3 * count):
        if i < size:
            if is_rigid(i, materials, compliances):
                continue
            values, k = flat_give, i
        else:
            values, k = flat_bends, i - size
        saved = values[k]
        values[k] = saved + _STEP
        residual_into(
            moved, lengths, given, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, arcs, mounts, tips, moments, middles, stations, after,
        )  # fmt: skip
        ahead[:] = tips[count - 1]
        values[k] = saved - _STEP
        residual_into(
            moved, lengths, given, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, arcs, mounts, tips, moments, middles, stations, before,
        )  # fmt: skip
        values[k] = saved
        by, tip_by = (by_give, tip_by_give) if i < size else (by_bends, tip_by_bends)
        turn_by = turn_by_give if i < size else turn_by_bends
        for j in range(size):
            by[j, k] = (after[j] - before[j]) / (2.0 * _STEP)
        for j in range(3):
            tip_by[j, k] = (ahead[j, 3] - tips[count - 1, j, 3]) / (2.0 * _STEP)
            a, b, turn = (j + 1) % 3, (j + 2) % 3, 0.0
            for m in range(3):  # the axial vector of ahead behind'
                turn += ahead[b, m] * tips[count - 1, a, m] - ahead[a, m] * tips[count - 1, b, m]
            turn_by[j, k] = turn / (4.0 * _STEP)
    residual_into(
        moved, lengths, given, materials, compliances, weights, tip_weight, tip_force,
        tip_moment, arcs, mounts, tips, moments, middles, stations, after,
    )  # fmt: skip
    for i in range(count):  # the compliance changes with the length; the residual is linear in it
        stretched = bends[i, 2] > softness[2, i]
        softening = softness[0, i] * softness[1, i] / softness[2, i] if stretched else 0.0
        by_bends[4 * i + 2, 3 * i + 2] -= softening * middles[i, 1]
        by_bends[4 * i + 3, 3 * i + 2] += softening * middles[i, 0]
    yielded = np.linalg.solve(by_give, by_bends)
    twists = np.empty((6, 3 * count))
    twists[:3] = tip_by_bends - tip_by_give @ yielded
    twists[3:] = turn_by_bends - turn_by_give @ yielded
    return twists
