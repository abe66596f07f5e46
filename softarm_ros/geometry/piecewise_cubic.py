"""
Piecewise cubic interpolation, as in scipy.interpolate.

Implemented here because importing scipy.interpolate takes as long as all other imports of a node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array


class PiecewiseCubic:
    """
    Piecewise cubic function of x; the outer pieces continue beyond the first and last x.

    Parameters
    ----------
    x : (m,), m >= 2
        Ends of the pieces, increasing.
    coefficients : (4, m - 1, ...)
        Factors of d^3, d^2, d and 1, where d is the distance from the start of the piece.

    """

    def __init__(self, x: Array, coefficients: Array) -> None:
        self.x, self.coefficients = x, coefficients
        self._extra = (1,) * (coefficients.ndim - 2)

    def __call__(self, x: ArrayLike) -> Array:
        """Return the values at x, of the shape of x followed by that of one value."""
        at, (cube, square, slope, constant) = self._pieces(x)
        at_2 = at * at
        value: Array = constant + slope * at + square * at_2 + cube * (at_2 * at)
        return value

    def slope(self, x: ArrayLike) -> Array:
        """Return the derivatives at x, of the shape of x followed by that of one value."""
        at, (cube, square, slope, _) = self._pieces(x)
        value: Array = slope + 2.0 * square * at + 3.0 * cube * (at * at)
        return value

    def _pieces(self, x: ArrayLike) -> tuple[Array, Array]:
        """Return the distances from the starts of the pieces at x, and their coefficients."""
        places = np.asarray(x, dtype=np.float64)
        piece = np.searchsorted(self.x[1:-1], places, side='right')
        at = places - self.x[piece]
        return at.reshape(at.shape + self._extra), self.coefficients[:, piece]


def monotone_cubic(x: Array, y: Array) -> PiecewiseCubic:
    """
    Return a C1 function that is monotone wherever the points are (Fritsch and Butland 1984).

    Parameters
    ----------
    x, y : (m,), m >= 2
        The points; x increases.

    """
    dx = np.diff(x)
    secant = np.diff(y) / dx
    if len(x) == 2:
        return _hermite(x, y, np.repeat(secant, 2))
    slope = np.zeros(len(x))
    before, after = secant[:-1], secant[1:]
    goes_on = np.sign(before) * np.sign(after) > 0.0
    w_before, w_after = 2.0 * dx[1:] + dx[:-1], dx[1:] + 2.0 * dx[:-1]
    with np.errstate(divide='ignore', invalid='ignore'):
        mean = (w_before / before + w_after / after) / (w_before + w_after)
    slope[1:-1][goes_on] = 1.0 / mean[goes_on]
    slope[0] = _end_slope(dx[0], dx[1], secant[0], secant[1])
    slope[-1] = _end_slope(dx[-1], dx[-2], secant[-1], secant[-2])
    return _hermite(x, y, slope)


def _end_slope(first_dx: float, next_dx: float, first: float, following: float) -> float:
    """Return the slope at an end: that of a parabola through three points, kept monotone."""
    slope = ((2.0 * first_dx + next_dx) * first - first_dx * following) / (first_dx + next_dx)
    if np.sign(slope) != np.sign(first):
        return 0.0
    if np.sign(first) != np.sign(following) and abs(slope) > 3.0 * abs(first):
        return 3.0 * first
    return slope


def natural_spline(x: Array, y: Array) -> PiecewiseCubic:
    """
    Return the C2 function through points that has no curvature at both ends.

    Parameters
    ----------
    x, y : (m,) and (m, k), m >= 2
        The points; x increases.

    """
    dx, secant = _steps(x, y)
    below, diagonal, above, right = _inner_equations(dx, secant)
    below, above = np.append(below, dx[-1]), np.insert(above, 0, dx[0])
    diagonal = np.concatenate([[2.0 * dx[0]], diagonal, [2.0 * dx[-1]]])
    ends = 3.0 * np.diff(y, axis=0)[[0, -1]]
    right = np.vstack([ends[:1], right, ends[1:]])
    return _hermite(x, y, _tridiagonal(below, diagonal, above, right))


def periodic_spline(x: Array, y: Array) -> PiecewiseCubic:
    """
    Return the periodic C2 function through points.

    Parameters
    ----------
    x, y : (m,) and (m, k), m >= 4
        The points; x increases, and the last y equals the first.

    """
    dx, secant = _steps(x, y)
    # Solve the inner slopes as linear functions of the slope at the first point, then that slope.
    below, diagonal, above, right = _inner_equations(dx, secant)
    ends = np.zeros(len(right))
    ends[0], ends[-1] = -dx[1], -dx[-2]
    solved = _tridiagonal(below[1:], diagonal, above[:-1], np.column_stack([right, ends]))
    fixed, by_first = solved[:, :-1], solved[:, -1]
    wanted = 3.0 * (dx[0] * secant[-1] + dx[-1] * secant[0])
    rest = wanted - dx[-1] * fixed[0] - dx[0] * fixed[-1]
    first = rest / (2.0 * (dx[0] + dx[-1]) + dx[-1] * by_first[0] + dx[0] * by_first[-1])
    inner = fixed + by_first[:, None] * first
    return _hermite(x, y, np.vstack([first, inner, first]))


def _steps(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the lengths (m - 1,) of the pieces and the secant slopes (m - 1, k)."""
    dx = np.diff(x)
    return dx, np.diff(y, axis=0) / dx[:, None]


def _inner_equations(dx: Array, secant: Array) -> tuple[Array, Array, Array, Array]:
    """
    Return the equations for slopes with continuous second derivatives at the inner points.

    They are the factors of the slopes before, at and after each point (m - 2,), and the right side
    (m - 2, k).
    """
    before, after = dx[:-1], dx[1:]
    right = 3.0 * (after[:, None] * secant[:-1] + before[:, None] * secant[1:])
    return after, 2.0 * (before + after), before, right


def _tridiagonal(below: Array, diagonal: Array, above: Array, right: Array) -> Array:
    """Return the solution (n, k) of a tridiagonal system; its diagonal must dominate."""
    pivots, solved = diagonal.tolist(), right.copy()
    for i, (under, over) in enumerate(zip(below.tolist(), above.tolist())):
        share = under / pivots[i]
        pivots[i + 1] -= share * over
        solved[i + 1] -= share * solved[i]
    solved[-1] /= pivots[-1]
    for i in range(len(pivots) - 2, -1, -1):
        solved[i] = (solved[i] - above[i] * solved[i + 1]) / pivots[i]
    return solved


def _hermite(x: Array, y: Array, slope: Array) -> PiecewiseCubic:
    """Return the cubics through points (m, ...) with given slopes (m, ...)."""
    dx = np.diff(x).reshape((-1,) + (1,) * (y.ndim - 1))
    secant = np.diff(y, axis=0) / dx
    bend = (slope[:-1] + slope[1:] - 2.0 * secant) / dx
    return PiecewiseCubic(
        x, np.stack([bend / dx, (secant - slope[:-1]) / dx - bend, slope[:-1], y[:-1]])
    )
