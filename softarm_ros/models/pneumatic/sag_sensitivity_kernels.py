"""
Compiled derivative of the tip by bends and lengths, for an arm with sagging mounts.

With r(c, g) = 0 the equilibrium of the give g at a configuration c (see
`angle_correction_kernels`), dtip/dc = tip_c - tip_g r_g^-1 r_c. It needs finite differences of the
residual only, no further equilibria.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.pneumatic.angle_correction_kernels import is_rigid, residual_into

_STEP = 1e-6  # of finite differences, rad and m


@kernel
def tip_derivative(
    bends: Array,
    lengths: Array,
    materials: Array,
    compliances: Array,
    softenings: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    give: Array,
) -> Array:
    """
    Return the derivative (3, 3 sections) of the tip by bends and lengths at an equilibrium.

    The arguments are those of `solve_give`; `softenings` (sections,) is d compliance / d length.
    `give` (sections, 4) is the solved give and is not changed.
    """
    count = bends.shape[0]
    size = 4 * count
    moved, given = bends.copy(), give.copy()
    bent, moments, middles = np.empty((count, 3)), np.empty((count, 3)), np.empty((count, 3))
    mounts, tips = np.empty((count, 4, 4)), np.empty((count, 4, 4))
    after, before = np.empty(size), np.empty(size)
    by_give, by_bends = np.eye(size), np.empty((size, 3 * count))
    tip_by_give, tip_by_bends = np.zeros((3, size)), np.empty((3, 3 * count))
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
            tip_moment, bent, mounts, tips, moments, middles, after,
        )  # fmt: skip
        ahead = tips[count - 1, :3, 3].copy()
        values[k] = saved - _STEP
        residual_into(
            moved, lengths, given, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, bent, mounts, tips, moments, middles, before,
        )  # fmt: skip
        values[k] = saved
        ahead -= tips[count - 1, :3, 3]
        if i < size:
            by_give[:, k] = (after - before) / (2.0 * _STEP)
            tip_by_give[:, k] = ahead / (2.0 * _STEP)
        else:
            by_bends[:, k] = (after - before) / (2.0 * _STEP)
            tip_by_bends[:, k] = ahead / (2.0 * _STEP)
    residual_into(
        moved, lengths, given, materials, compliances, weights, tip_weight, tip_force,
        tip_moment, bent, mounts, tips, moments, middles, after,
    )  # fmt: skip
    for i in range(count):  # the compliance changes with the length; the residual is linear in it
        by_bends[4 * i + 2, 3 * i + 2] -= softenings[i] * middles[i, 1]
        by_bends[4 * i + 3, 3 * i + 2] += softenings[i] * middles[i, 0]
    return tip_by_bends - tip_by_give @ np.linalg.solve(by_give, by_bends)
