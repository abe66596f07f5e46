"""Identified monotone curves: a table of measurements, evaluated in both directions."""

from __future__ import annotations

import bisect
import math

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.piecewise_cubic import monotone_cubic
from softarm_ros.models.arm_model import ModelError

BISECTIONS_AND_NEWTONS = 60
ROUNDING = 1e-12  # of the range: margin for values beyond it


class MonotoneCurve:
    """
    Strictly monotone curve through a table; smooth (C1) and never extrapolated.

    The curve is piecewise cubic Hermite (`monotone_cubic`) and monotone between the points, so the
    inverse exists. The inverse is solved exactly, not tabulated.

    Parameters
    ----------
    x, y
        (m,), m >= 2; x increasing, y strictly increasing or decreasing.
    x_name, y_name
        Names with units for messages, such as 'pressure_Pa'.

    Raises
    ------
    ValueError
        If the table is not strictly monotone; names the first offending point.

    """

    def __init__(self, x: ArrayLike, y: ArrayLike, x_name: str = 'x', y_name: str = 'y') -> None:
        self.x, self.y = _column(x, x_name), _column(y, y_name)
        self.x_name, self.y_name = x_name, y_name
        if self.x.size != self.y.size:
            raise ValueError(f'{self.x.size} values of {x_name} but {self.y.size} of {y_name}')
        _require_monotone(self.x, x_name, 1.0)
        self._ends = float(self.x[0]), float(self.x[-1])
        self._sign = 1.0 if self.y[-1] > self.y[0] else -1.0
        _require_monotone(self.y, y_name, self._sign)
        self._curve = monotone_cubic(self.x, self.y)
        # Plain numbers are faster than arrays for one value at a time.
        self._inner: list[float] = self.x[1:-1].tolist()
        self._rising: list[float] = (self._sign * self.y).tolist()
        pieces = self._curve.coefficients.T.tolist()
        self._pieces = list(zip(self.x[:-1].tolist(), np.diff(self.x).tolist(), pieces))

    @property
    def pieces(self) -> Array:
        """Cubic, square, linear and constant coefficients (m - 1, 4) of each piece, in x - x_i."""
        return self._curve.coefficients.T

    @property
    def y_limits(self) -> tuple[float, float]:
        """Return the smallest and the largest y."""
        return float(self.y.min()), float(self.y.max())

    def __call__(self, x: ArrayLike) -> Array:
        """Return y at x, of the shape of x; raise `ModelError` beyond the table."""
        values = np.asarray(x, dtype=np.float64)
        values = self._inside(values, *self._ends, self.x_name)
        return self._curve(values)

    def slope(self, x: ArrayLike) -> Array:
        """Return dy/dx at x; raise `ModelError` beyond the table."""
        values = np.asarray(x, dtype=np.float64)
        values = self._inside(values, *self._ends, self.x_name)
        return self._curve.slope(values)

    def at(self, x: float) -> tuple[float, float]:
        """Return y and dy/dx at one x; raise `ModelError` beyond the table."""
        low, high = self._ends
        value = min(max(x, low), high)
        if not abs(x - value) <= ROUNDING * (high - low):
            raise self._beyond(x, low, high, self.x_name)
        start, _, (cube, square, slope, constant) = self._pieces[
            bisect.bisect_right(self._inner, value)
        ]
        at = value - start
        return (
            constant + slope * at + square * (at * at) + cube * (at * at * at),
            slope + 2.0 * square * at + 3.0 * cube * (at * at),
        )

    def inverse(self, y: ArrayLike) -> Array:
        """Return x with y(x) = y, of the shape of y; raise `ModelError` beyond the table."""
        wanted = np.asarray(y, dtype=np.float64)
        wanted = self._inside(wanted, *self.y_limits, self.y_name)
        return np.array([self._solve(y) for y in wanted.ravel().tolist()]).reshape(wanted.shape)

    def _solve(self, y: float) -> float:
        """Return x for one y: find the piece, then bracketed Newton, as the slope may vanish."""
        piece = bisect.bisect_left(self._rising, self._sign * y)
        if piece < len(self._rising) and self._rising[piece] == self._sign * y:
            # Where the slope vanishes, the search would lose half of the digits.
            return float(self.x[piece])
        start, high, (cubic, square, slope, constant) = self._pieces[piece - 1]
        low = 0.0
        error_0, error_1 = constant - y, self._sign * self._rising[piece] - y
        at = high * error_0 / (error_0 - error_1)
        for _ in range(BISECTIONS_AND_NEWTONS):
            error = self._sign * (((cubic * at + square) * at + slope) * at + (constant - y))
            if error == 0.0:
                break
            low, high = (at, high) if error < 0.0 else (low, at)
            rise = self._sign * ((3.0 * cubic * at + 2.0 * square) * at + slope)
            better = at - error / rise if rise > 0.0 else math.inf
            if not low < better < high:
                better = 0.5 * (low + high)
            if better == at:
                break
            at = better
        return start + at

    def _inside(self, values: Array, low: float, high: float, name: str) -> Array:
        """Return the values clipped to the range; raise `ModelError` if one exceeds rounding."""
        rounding = ROUNDING * (high - low)
        outside = ~((values >= low - rounding) & (values <= high + rounding))
        if outside.any():
            raise self._beyond(float(values[outside].ravel()[0]), low, high, name)
        return np.clip(values, low, high)

    @staticmethod
    def _beyond(value: float, low: float, high: float, name: str) -> ModelError:
        return ModelError(
            f'{name} = {value:.6g} is outside the identified range {low:.6g} to {high:.6g}'
        )


def _column(values: ArrayLike, name: str) -> Array:
    column = np.array(values, dtype=np.float64)
    if column.ndim != 1 or column.size < 2:
        raise ValueError(f'{name} has shape {column.shape}, expected at least two values in a row')
    if not np.isfinite(column).all():
        raise ValueError(f'{name} {column.tolist()} is not finite')
    return column


def _require_monotone(values: Array, name: str, sign: float) -> None:
    wrong = np.flatnonzero(sign * np.diff(values) <= 0.0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f'{name} must be strictly monotone: point {i + 1} is {values[i + 1]:.6g} after '
            f'{values[i]:.6g}'
        )
