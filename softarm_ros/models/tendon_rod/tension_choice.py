"""Choice among tensions that hold the tip: the easiest."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.bounded_least_squares import bounded_least_squares


def easiest_tensions(
    tip_by_tension: Array, tensions: Array, pretension: Array, upper: Array
) -> Array:
    """
    Return the tensions (m,) that are nearest to the pretension with, to first order, the same tip.

    Antagonists give way together until one of them has just its pretension, and segments share
    the bending so that the sum of squares above the pretension is least.

    Parameters
    ----------
    tip_by_tension : (3, m)
        [m/N].
    tensions, pretension, upper : (m,)
        Where the tip is, and the bounds of the answer [N].

    """
    gain = float(np.linalg.norm(tip_by_tension, 2))
    if gain == 0.0:
        return pretension.copy()
    rows = tip_by_tension / gain
    matrix = np.vstack([rows, _NORM_WEIGHT * np.eye(len(tensions))])
    right = np.concatenate([rows @ tensions, _NORM_WEIGHT * pretension])
    return bounded_least_squares(matrix, right, pretension, upper)


# Of the distance from the pretension against a miss of the tip, both in newtons.
_NORM_WEIGHT = 2e-4
