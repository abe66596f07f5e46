"""Quadratic programme of a velocity within bounds, solved with daqp."""

from __future__ import annotations

from functools import lru_cache

import daqp
import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.controller import VelocityBounds
from softarm_ros.geometry.arrays import Array, all_finite

_SOLVED = (1, 2)  # optimal, and optimal with a soft row exceeded
_HARD, _SOFT = 0, 8


def within_bounds(
    H: Array, f: Array, bounds: VelocityBounds, *, soft: bool = True
) -> Array | None:
    """
    Return the x (dof,) that minimises x H x / 2 + f x within bounds, or None.

    Soft bounds are exceeded a little if that pays, and more if they contradict each other. `H`
    (dof, dof) is positive definite and of order 1, since the solver's tolerance is absolute. None
    if the programme is not solved or its solution is not finite.
    """
    kinds = _all(_SOFT if soft else _HARD, len(bounds.high))
    x, _, flag, _ = daqp.solve(H, f, bounds.rows, bounds.high, bounds.low, kinds)
    if flag not in _SOLVED or not all_finite(x):
        return None
    return np.asarray(x)


@lru_cache
def _all(kind: int, count: int) -> NDArray[np.int32]:
    return np.full(count, kind, dtype=np.int32)
