"""Choice among tensions: bounded least squares by a quadratic programme."""

from __future__ import annotations

import daqp
import numpy as np

from softarm_ros.models.arm_model import Array

_SOLVED = 1


def bounded_least_squares(matrix: Array, right: Array, lower: Array, upper: Array) -> Array:
    """
    Return the x (m,) within lower..upper that minimises |matrix x - right|^2.

    Parameters
    ----------
    matrix, right : (r, m), (r,)
        Of full column rank.
    lower, upper : (m,)
        Bounds.

    Raises
    ------
    ArithmeticError
        If the quadratic programme is not solved (values that are not finite, no full rank).

    """
    H = matrix.T @ matrix
    f = -(matrix.T @ right)
    weight = len(f) / float(np.trace(H))
    count = len(f)
    x, _, flag, _ = daqp.solve(
        np.ascontiguousarray(H * weight),
        f * weight,
        np.eye(count),
        np.asarray(upper, dtype=np.float64),
        np.asarray(lower, dtype=np.float64),
        np.zeros(count, dtype=np.int32),
    )
    if flag != _SOLVED or not np.isfinite(x).all():
        raise ArithmeticError(f'quadratic programme of tensions not solved (flag {flag})')
    return np.minimum(np.maximum(np.asarray(x), lower), upper)


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
