"""Compiled inverse and slope of the chambers' curves: `MonotoneCurve` for many curves at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.monotone_curve import BISECTIONS_AND_NEWTONS, ROUNDING


class CurveTables(NamedTuple):
    """
    Tables of n curves, one after the other.

    Attributes
    ----------
    starts : (n + 1,) of int
        First point of each curve, and the number of points p.
    x, y : (p,)
        Points: pressures [Pa] and extensions [m].
    pieces : (p, 4)
        Coefficients of the cubic that begins at each point, from the third power down; those of
        a curve's last point are not used.

    """

    starts: NDArray[np.int64]
    x: Array
    y: Array
    pieces: Array


@kernel
def inverses(values: Array, tables: CurveTables) -> Array:
    """Return x (n,) at which each curve has its value (n,); NaN if the value is out of range."""
    found = np.empty(len(values))
    for i in range(len(values)):
        begin, end = tables.starts[i], tables.starts[i + 1]
        found[i] = _inverse(
            values[i], tables.x[begin:end], tables.y[begin:end], tables.pieces[begin:end]
        )
    return found


@kernel
def slopes(at: Array, tables: CurveTables) -> Array:
    """Return dy/dx (n,) of each curve at its x (n,); NaN if x is out of range."""
    found = np.empty(len(at))
    for i in range(len(at)):
        begin, end = tables.starts[i], tables.starts[i + 1]
        found[i] = _slope(at[i], tables.x[begin:end], tables.pieces[begin:end])
    return found


@kernel(allocates=False)
def _inside(value: float, low: float, high: float) -> float:
    """Return a value clipped to its range; NaN if it exceeds the range by more than rounding."""
    rounding = ROUNDING * (high - low)
    if not (low - rounding <= value <= high + rounding):
        return math.nan
    return min(max(value, low), high)


@kernel(allocates=False)
def _slope(at: float, x: Array, pieces: Array) -> float:
    inside = _inside(at, x[0], x[-1])
    piece = 0
    while piece < len(x) - 2 and x[piece + 1] <= inside:
        piece += 1
    along = inside - x[piece]
    cube, square, slope = pieces[piece, 0], pieces[piece, 1], pieces[piece, 2]
    return slope + 2.0 * square * along + 3.0 * cube * (along * along)


@kernel(allocates=False)
def _inverse(value: float, x: Array, y: Array, pieces: Array) -> float:
    """Find the piece, then search by bracketed Newton, as the slope may vanish."""
    sign = 1.0 if y[-1] > y[0] else -1.0
    wanted = _inside(value, min(y[0], y[-1]), max(y[0], y[-1]))
    if math.isnan(wanted):
        return math.nan
    after = 0
    while after < len(y) - 1 and sign * y[after] < sign * wanted:
        after += 1
    if y[after] == wanted:  # where the slope vanishes, the search would lose half of the digits
        return x[after]
    start, high = x[after - 1], x[after] - x[after - 1]
    cube, square = pieces[after - 1, 0], pieces[after - 1, 1]
    slope, constant = pieces[after - 1, 2], pieces[after - 1, 3]
    low = 0.0
    error_0, error_1 = constant - wanted, y[after] - wanted
    at = high * error_0 / (error_0 - error_1)
    for _ in range(BISECTIONS_AND_NEWTONS):
        error = sign * (((cube * at + square) * at + slope) * at + (constant - wanted))
        if error == 0.0:
            break
        if error < 0.0:
            low = at
        else:
            high = at
        rise = sign * ((3.0 * cube * at + 2.0 * square) * at + slope)
        better = at - error / rise if rise > 0.0 else math.inf
        if not low < better < high:
            better = 0.5 * (low + high)
        if better == at:
            break
        at = better
    return start + at
