"""The loss of an identification: soft L1 of the unweighted errors of points and axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class RobustLoss:
    """
    Half the sum over points of w^2 rho(|e|), rho(e) = 2 (sqrt(1 + e^2) - 1).

    It does not depend on the orientation of the frame of the measurements, and what counts as an
    outlier does not depend on how often a row was recorded.

    Attributes
    ----------
    weight : (n,)
        Roots w of the shares of information, by which errors are multiplied.
    point : (n,)
        Index of the point or axis that each error is a coordinate of: from 0, never decreasing.

    """

    weight: Array
    point: NDArray[np.int64]

    @classmethod
    def of_numbers(cls, count: int) -> RobustLoss:
        """Return the loss of errors that are points by themselves, each with weight 1."""
        return cls(np.ones(count), np.arange(count))

    def roots(self, error: Array) -> Array:
        """Return for each of the errors (n,) sqrt(1 + |e|^2) of its point."""
        own = np.bincount(self.point, (error / self.weight) ** 2)
        return np.asarray(np.sqrt(1.0 + own[self.point]))

    def total(self, error: Array) -> float:
        """Return the loss of errors (n,)."""
        return 0.5 * float(np.sum(self.as_searched(error**2)[0]))

    def slope(self, error: Array) -> Array:
        """Return the derivative (n,) of the loss by the errors."""
        return np.asarray(error / self.roots(error))

    def as_searched(self, squares: Array) -> Array:
        """
        Return rho and two derivatives (3, n) at squares (n,), as `least_squares` expects them.

        Each coordinate has an equal share of its point's loss, and the slope of the whole.
        """
        root = self.roots(np.sqrt(squares))
        share = self.weight**2 * 2.0 * (root - 1.0) / np.bincount(self.point)[self.point]
        return np.stack([share, 1.0 / root, -0.5 / (self.weight**2 * root**3)])

    def curvature(
        self, error: Array, columns: Array, rows: NDArray[np.bool_] | slice = slice(None)
    ) -> Array:
        """
        Return the second derivative (k, k) of the loss by parameters; `columns` (n, k) is d error.

        Only the errors `rows` count, which must hold all coordinates of a point or none.
        """
        root, columns, point = self.roots(error)[rows], columns[rows], self.point[rows]
        along = (error[rows] / (self.weight[rows] * root**1.5))[:, None] * columns
        along = np.add.reduceat(along, np.flatnonzero(np.diff(point, prepend=-1)), axis=0)
        return np.asarray((columns.T / root) @ columns - along.T @ along)
