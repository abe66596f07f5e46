"""
Second-order expansion of the errors along directions that the data leave untold.

About the fitted parameters x, with z = V' d the part of a change d along such directions V,

    e(x + d) = e + J d + sum over i <= j of z_i z_j H_ij.

For example, an error of a cable's angle acts through its cosine: its slope is zero where the
search begins. With slopes alone, it would stay as uncertain as its prior, and other parameters
would absorb its effect over that range. If the data determine a direction well, its range is short
and slopes are enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.identification.misfit import Errors
from softarm_ros.geometry.arrays import Array

LEFT = 0.3  # of the prior's spread: if more is left, the second order matters over the range
_NARROW = 0.1  # of the range: with less room to a bound, no difference is taken
_NEW = 0.5  # least part of a direction outside the span of those present
_ITERATIONS = 15
_STILL = 1e-3  # spreads


@dataclass(frozen=True)
class Bending:
    """
    Second-order part of the errors.

    Attributes
    ----------
    directions : (k, u)
        V: orthonormal, in spreads of the prior.
    first, second : (p,)
        Indices i and j of the columns.
    columns : (n, p)
        H_ij.

    """

    directions: Array
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    columns: Array

    def with_another(self, index: int) -> Bending:
        """Return the expansion with a parameter inserted that has no second-order part."""
        return replace(self, directions=np.insert(self.directions, index, 0.0, axis=0))

    def features(self, change: Array) -> tuple[Array, Array]:
        """Return the features (k + p,) of a change d (k,): d and z_i z_j; and their slope by d."""
        z = change @ self.directions
        slope = np.zeros((len(self.first), len(z)))
        rows = np.arange(len(self.first))
        np.add.at(slope, (rows, self.first), z[self.second])
        np.add.at(slope, (rows, self.second), z[self.first])
        by_change = np.vstack([np.eye(len(change)), slope @ self.directions.T])
        return np.concatenate([change, z[self.first] * z[self.second]]), by_change


def untold_directions(curvature: Array) -> tuple[Array, Array]:
    """
    Return the untold directions (k, u), and the share of the prior's spread left in each (u,).

    `curvature` (k, k) is the second derivative of the loss, in spreads of the prior.
    """
    sizes, vectors = np.linalg.eigh(curvature + np.eye(len(curvature)))
    untold = sizes**-0.5 >= LEFT
    return vectors[:, untold], sizes[untold] ** -0.5


def bending(
    errors: Errors, x: Array, error: Array, jacobian: Array, also: Array
) -> Bending | None:
    """
    Return the second-order part of the errors about x (k,); None if no direction is untold.

    `error` (n,) and `jacobian` (n, k) are those at x. Second differences are taken over the range
    left of each direction, with one more evaluation for each pair. The directions `also` (k, v)
    are included: they were untold at the start of the search, although the data determine them at
    x. For an angle that has moved away from zero, they reveal its mirror image.
    """
    directions, left = untold_directions(errors.loss.curvature(error, jacobian))
    ranges = list(zip(directions.T, left))
    for direction in also.T:
        known = np.reshape([v for v, _ in ranges], (-1, len(x)))
        rest = direction - known.T @ (known @ direction)
        if np.linalg.norm(rest) > _NEW:
            ranges.append((rest / np.linalg.norm(rest), 1.0))
    found: list[tuple[Array, float, Array, Array]] = []
    for direction, range_ in ranges:
        sides = _sides(errors, x, error, direction, range_)
        if sides is not None:
            found.append((direction, *sides))
    if not found:
        return None
    first, second, columns = [], [], []
    for i, (v, h, plus, minus) in enumerate(found):
        for j, (w, g, beside, _) in enumerate(found[: i + 1]):
            if i == j:
                column = (plus + minus - 2.0 * error) / (2.0 * h * h)
            else:
                try:
                    both = errors.near(x + h * v + g * w, error)
                except ValueError:
                    both = np.full(len(error), np.nan)
                column = (both - plus - beside + error) / (h * g)
            first.append(j)
            second.append(i)
            columns.append(np.nan_to_num(column))
    return Bending(
        np.stack([v for v, *_ in found], axis=1),
        np.array(first),
        np.array(second),
        np.stack(columns, axis=1),
    )


def _sides(
    errors: Errors, x: Array, error: Array, direction: Array, left: float
) -> tuple[float, Array, Array] | None:
    """Return a step of at most `left` and the errors at both ends; None without room for one."""
    along = np.maximum(np.abs(direction), 1e-12)
    room = float(np.min((errors.bounds - x[:, None]) * [-1.0, 1.0] / along[:, None]))
    step = min(left, room)
    while step > _NARROW * left:
        try:
            ends = [errors.near(x + side * step * direction, error) for side in (1.0, -1.0)]
        except ValueError:
            step *= 0.5
            continue
        return step, ends[0], ends[1]
    return None


@dataclass(frozen=True)
class Cost:
    """
    The cost of a change d (k,) about x to second order: slope' f + f' curvature f / 2 + d' d / 2.

    f are the features of d. Weights of rows and draws of the prior are contained in `slope`.
    """

    bending: Bending
    slope: Array
    curvature: Array

    def at(self, change: Array) -> float:
        """Return the cost of a change (k,)."""
        features, _ = self.bending.features(change)
        return self._of(features, change)

    def _of(self, features: Array, change: Array) -> float:
        bent = self.slope @ features + 0.5 * features @ self.curvature @ features
        return float(bent + 0.5 * change @ change)

    def lowest(self, starts: list[Array]) -> tuple[Array, float]:
        """Return the best change (k,) that Gauss-Newton finds from given starts, and its cost."""
        ends = [self._descended(start) for start in starts]
        return min(ends, key=lambda end: end[1])

    def _descended(self, change: Array) -> tuple[Array, float]:
        features, by_change = self.bending.features(change)
        cost = self._of(features, change)
        for _ in range(_ITERATIONS):
            gradient = by_change.T @ (self.slope + self.curvature @ features) + change
            hessian = by_change.T @ self.curvature @ by_change + np.eye(len(change))
            step = -np.linalg.solve(hessian, gradient)
            factor = 1.0
            while factor > 0.02:
                trial = change + factor * step
                there, slope_there = self.bending.features(trial)
                new = self._of(there, trial)
                if new < cost:
                    break
                factor *= 0.5
            else:
                break
            change, features, by_change, cost = trial, there, slope_there, new
            if np.abs(factor * step).max() < _STILL:
                break
        return change, cost
