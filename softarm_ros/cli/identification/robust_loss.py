"""The loss of an identification: soft L1 of distances, of what a row errs by on its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class RobustLoss:
    """
    Half the sum over points of w^2 rho(|e|), rho(e) = 2 (sqrt(1 + e^2) - 1).

    It does not depend on how the frame of the measurements lies, and what counts as mistaken does
    not depend on how often a row was recorded.

    Attributes
    ----------
    weight : (n,)
        Roots of the shares of information w, by which errors are multiplied.
    point : (n,)
        Which point or axis each error is a coordinate of: numbers from 0 on that do not fall.

    """

    weight: Array
    point: NDArray[np.int64]

    @classmethod
    def of_numbers(cls, count: int) -> RobustLoss:
        """Return the loss of errors that are points by themselves, each with all its weight."""
        return cls(np.ones(count), np.arange(count))

    def roots(self, error: Array) -> Array:
        """Return sqrt(1 + |e|^2) (n,) of the point that each of the errors (n,) is of."""
        own = np.bincount(self.point, (error / self.weight) ** 2)
        return np.asarray(np.sqrt(1.0 + own[self.point]))

    def total(self, error: Array) -> float:
        """Return the loss of errors (n,)."""
        return 0.5 * float(np.sum(self.as_searched(error**2)[0]))

    def slope(self, error: Array) -> Array:
        """Return its derivative (n,) by the errors."""
        return np.asarray(error / self.roots(error))

    def as_searched(self, squares: Array) -> Array:
        """
        Return rho and two derivatives (3, n) at squares (n,), as `least_squares` takes them.

        Each coordinate has its share of the loss of its point, and the slope of the whole.
        """
        root = self.roots(np.sqrt(squares))
        share = self.weight**2 * 2.0 * (root - 1.0) / np.bincount(self.point)[self.point]
        return np.stack([share, 1.0 / root, -0.5 / (self.weight**2 * root**3)])

    def curvature(
        self, error: Array, columns: Array, rows: NDArray[np.bool_] | slice = slice(None)
    ) -> Array:
        """
        Return its second derivative (k, k) by what moves the errors by `columns` (n, k).

        Of the errors `rows` alone, all of any point.
        """
        root, columns, point = self.roots(error)[rows], columns[rows], self.point[rows]
        along = (error[rows] / (self.weight[rows] * root**1.5))[:, None] * columns
        along = np.add.reduceat(along, np.flatnonzero(np.diff(point, prepend=-1)), axis=0)
        return np.asarray((columns.T / root) @ columns - along.T @ along)
