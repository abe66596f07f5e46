"""Choice of the easiest tensions among those that hold the tip."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.bounded_least_squares import bounded_least_squares


def easiest_tensions(
    tip_by_tension: Array, tensions: Array, pretension: Array, upper: Array
) -> Array:
    """
    Return the tensions (m,) nearest to the pretension with the same tip, to first order.

    Antagonists loosen together until one of them has just its pretension. Segments share the
    bending so that the sum of squares above the pretension is least.

    Parameters
    ----------
    tip_by_tension : (3, m)
        Derivative of the tip by the tensions [m/N].
    tensions, pretension, upper : (m,)
        Present tensions, and the lower and upper bounds of the result [N].

    """
    gain = float(np.linalg.norm(tip_by_tension, 2))
    if gain == 0.0:
        return pretension.copy()
    rows = tip_by_tension / gain
    matrix = np.vstack([rows, _NORM_WEIGHT * np.eye(len(tensions))])
    right = np.concatenate([rows @ tensions, _NORM_WEIGHT * pretension])
    return bounded_least_squares(matrix, right, pretension, upper)


# Weight of the distance from the pretension relative to a miss of the tip, both in newtons.
_NORM_WEIGHT = 2e-4
