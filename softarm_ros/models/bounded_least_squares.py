"""Linear least squares within bounds, as a quadratic programme (daqp)."""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import numpy as np

from softarm_ros.geometry.arrays import Array

_SOLVED = (1, 2)  # flags of daqp: optimal, and optimal with a soft row exceeded
_HARD, _SOFT = 0, 8
_UNBOUNDED = 1e30  # daqp treats a bound of this size as infinite


@dataclass(frozen=True)
class Rows:
    """Soft bounds (k,) on matrix (k, m) times x, kept as far as the bounds on x allow."""

    matrix: Array
    low: Array
    high: Array


def bounded_least_squares(
    matrix: Array, right: Array, lower: Array, upper: Array, rows: Rows | None = None
) -> Array:
    """
    Return the x (m,) within lower..upper that minimises |matrix x - right|^2.

    Parameters
    ----------
    matrix, right : (r, m), (r,)
        Of full column rank.
    lower, upper : (m,)
        Bounds, kept exactly.
    rows
        Further, soft bounds on linear combinations of x.

    Raises
    ------
    ArithmeticError
        If the quadratic programme is not solved (non-finite values, rank deficiency).

    """
    H = matrix.T @ matrix
    f = -(matrix.T @ right)
    count = len(f)
    weight = count / float(np.trace(H))
    # The solver's tolerance is absolute; scaling makes small steps as exact as large ones.
    unit = min(1.0, float(np.linalg.norm(right))) or 1.0
    sides, low, high = np.eye(count), lower, upper
    sense = np.full(count, _HARD, dtype=np.int32)
    if rows is not None:
        sides = np.vstack([sides, rows.matrix])
        low, high = np.concatenate([lower, rows.low]), np.concatenate([upper, rows.high])
        sense = np.concatenate([sense, np.full(len(rows.low), _SOFT, dtype=np.int32)])
    x, _, flag, _ = daqp.solve(
        np.ascontiguousarray(H * weight),
        f * (weight / unit),
        np.ascontiguousarray(sides),
        np.minimum(high / unit, _UNBOUNDED),
        np.maximum(low / unit, -_UNBOUNDED),
        sense,
    )
    if flag not in _SOLVED or not np.isfinite(x).all():
        raise ArithmeticError(f'quadratic programme of least squares not solved (flag {flag})')
    return np.minimum(np.maximum(unit * np.asarray(x), lower), upper)
