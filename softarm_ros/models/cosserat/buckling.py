"""Buckling and limit loads of a Cosserat rod arm."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, Vector3
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.cosserat.state import RodStart
from softarm_ros.models.cosserat.strain_kernels import OK


def critical_load_factor(
    rod: CosseratRod,
    tensions: Array,
    tip_force: Vector3 = ZERO3,
    tip_moment: Vector3 = ZERO3,
    gravity: Vector3 | None = None,
    max_factor: float = 10.0,
    intervals: int = 40,
) -> float:
    """
    Return the least factor on all loads at which the equilibrium that starts at rest is lost.

    At this factor, the equilibrium becomes unstable (buckling, bifurcation) or ends (limit load).
    The result is infinite if this does not happen up to `max_factor`, a range searched in
    `intervals` steps.
    """
    weight = np.array(rod.config.gravity_m_s2 if gravity is None else gravity, dtype=float)
    t, f, m = (np.asarray(x, dtype=np.float64) for x in (tensions, tip_force, tip_moment))

    def holds(factor: float, near: RodStart | None) -> bool:
        rod.load(factor * t, factor * f, factor * m, None, factor * weight)
        return rod.equilibrate(near, 1e-11)[0] == OK and rod.is_stable()

    low = 0.0
    near: RodStart | None = None
    for k in range(intervals):
        high = max_factor * (k + 1) / intervals
        if not holds(high, near):
            break
        low, near = high, rod.start
    else:
        return math.inf
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        # Start from rest: beyond the critical load, a neighbour may lie on another branch.
        if holds(middle, None):
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
