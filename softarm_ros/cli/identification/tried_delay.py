"""
Identification of the delay from commands that jump: values are tried, not searched by slopes.

If commands stand and jump, a row depends on the delay only by the side of a jump it is on. As a
function of the delay, errors are step functions with zero slope almost everywhere: a search by
slopes stays at its start, and intervals by slopes are as narrow as a step. Instead, delays over
the whole prior are tried, in turn with a search for the other parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.identification.misfit import Errors, Misfit
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.identifiable import Parameter

_COARSE, _FINE = 61, 41  # delays tried: over the prior, and between the best one's neighbours
_BEYOND = 3.0  # spreads of the prior
_LIKELY = 1.92  # above the least cost: half of chi^2 at 95 %, one degree of freedom


@dataclass(frozen=True)
class TriedDelay:
    """
    Cost of each delay tried.

    Attributes
    ----------
    index : int
        Index of the delay among the parameters.
    x : (g,)
        Delays, in spreads of the prior.
    cost : (b, g)
        Cost in each block, with the other parameters as fitted; without the prior.
    period : float
        Sampling period of commands, in spreads: the time of a jump between two rows is unknown.

    """

    index: int
    x: Array
    cost: Array
    period: float

    @property
    def best(self) -> float:
        """The delay with the least cost."""
        return self.redrawn(np.ones(len(self.cost)), 0.0)

    def redrawn(self, weight: Array, prior: float) -> float:
        """Return the best delay for weights (b,) of blocks and a mean of the prior."""
        return float(self.x[np.argmin(weight @ self.cost + 0.5 * (self.x - prior) ** 2)])

    def interval(self, drawn: Array) -> tuple[float, float]:
        """Return the 95 % interval from the delays (d,) found for draws of blocks."""
        whole = self.cost.sum(axis=0) + 0.5 * self.x**2
        likely = self.x[whole <= whole.min() + _LIKELY]
        low, high = np.percentile(drawn, [2.5, 97.5])
        return (
            min(float(low), float(likely.min())) - self.period,
            max(float(high), float(likely.max())) + self.period,
        )


class WithDelay(Errors):
    """Errors of a misfit as a function of all parameters but the delay (`index`), fixed at `x`."""

    def __init__(self, whole: Misfit, index: int, x: float) -> None:
        self._whole, self._index, self._x = whole, index, x
        super().__init__(
            np.delete(whole.bounds, index, axis=0), whole.block, whole.row, whole.refused,
            whole.loss,
        )  # fmt: skip

    def _errors(self, x: Array, asked: NDArray[np.bool_]) -> Array:
        whole = np.insert(x, self._index, self._x)
        return self._whole.near(whole, np.where(asked, 0.0, np.nan))


def try_delays(
    errors: Misfit, parameter: Parameter, index: int, x: Array, period_s: float
) -> TriedDelay:
    """Return the cost of each delay, with the other parameters as in x (k,)."""
    blocks, of_error = np.unique(errors.block, return_inverse=True)

    def costs(delays: Array) -> Array:
        found = np.empty((len(blocks), len(delays)))
        for i, delay in enumerate(delays):
            there = x.copy()
            there[index] = delay
            each = errors.loss.as_searched(errors.filled(there) ** 2)[0]
            found[:, i] = 0.5 * np.bincount(of_error, each, len(blocks))
        return found

    low = max(float(errors.bounds[index, 0]), -_BEYOND)
    high = min(float(errors.bounds[index, 1]), _BEYOND)
    coarse = np.linspace(low, high, _COARSE)
    first = costs(coarse)
    best = int(np.argmin(first.sum(axis=0) + 0.5 * coarse**2))
    fine = np.linspace(coarse[max(best - 1, 0)], coarse[min(best + 1, _COARSE - 1)], _FINE)
    tried, order = np.unique(np.concatenate([coarse, fine]), return_index=True)
    cost = np.concatenate([first, costs(fine)], axis=1)[:, order]
    return TriedDelay(index, tried, cost, period_s / parameter.spread)


def secant(errors: Misfit, tried: TriedDelay, x: Array) -> Array:
    """Return the slope of errors (n,) by the delay at x (k,), from one period before to after."""
    bounds = errors.bounds[tried.index]
    ends = np.clip(x[tried.index] + tried.period * np.array([-1.0, 1.0]), *bounds)
    each = []
    for end in ends:
        there = x.copy()
        there[tried.index] = end
        each.append(errors.filled(there))
    return np.asarray((each[1] - each[0]) / (ends[1] - ends[0]))
