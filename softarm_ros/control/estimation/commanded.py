"""The strains that follow from commands at any time: each command's shape through two lags."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


@kernel
def _later(lags: Array, passed: float) -> Array:
    """Return lags (3, sections, 6), `passed` time constants later."""
    out = np.empty_like(lags)
    left = math.exp(-passed)
    for k in range(lags.shape[1]):
        for i in range(6):
            wanted = lags[0, k, i]
            first, second = lags[1, k, i] - wanted, lags[2, k, i] - wanted
            out[0, k, i] = wanted
            out[1, k, i] = wanted + left * first
            out[2, k, i] = wanted + left * (second + passed * first)
    return out


@dataclass(frozen=True)
class _Step:
    """State of the lags at the time of a command (3, sections, 6); row 0: commanded strains."""

    stamp_s: float
    lags: Array


class CommandedStrains:
    """
    Filters commanded strains (sections, 6) by two equal lags, exactly between commands.

    Parameters
    ----------
    response_s : float
        Response time of the arm to a command: twice the time constant of each lag [s]; 0: none.
    horizon_s : float
        How far back in time strains can be computed [s].

    """

    def __init__(self, response_s: float, horizon_s: float) -> None:
        self._lag_s, self._horizon_s = 0.5 * response_s, horizon_s
        self._steps: list[_Step] = []

    def forget(self) -> None:
        """Start afresh: the next command counts as reached."""
        self._steps.clear()

    @property
    def began(self) -> bool:
        """Whether a command was taken since the start."""
        return bool(self._steps)

    def take(self, now_s: float, wanted: Array) -> None:
        """Take the strains (sections, 6) commanded from now on."""
        steps = self._steps
        if steps and now_s <= steps[-1].stamp_s:
            last = steps.pop()
            now_s, lags = last.stamp_s, last.lags.copy()
        elif steps:
            lags = self._lags(steps[-1], now_s)
        else:
            lags = np.array([wanted] * 3)
        lags[0] = wanted
        steps.append(_Step(now_s, lags))
        oldest = now_s - self._horizon_s
        while len(steps) > 2 and steps[1].stamp_s < oldest:
            steps.pop(0)

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Return strains and their rates [1/s], (sections, 6) each, at a time [s]."""
        lags = self._lags_at(time_s)
        if lags is None or self._lag_s == 0.0:
            strains = self.strains_at(time_s)
            return strains, np.zeros_like(strains)
        return lags[2], (lags[1] - lags[2]) / self._lag_s

    def strains_at(self, time_s: float) -> Array:
        """Return the strains (sections, 6) at a time [s]."""
        lags = self._lags_at(time_s)
        strains: Array = self._steps[0].lags[2] if lags is None else lags[2]
        return strains

    def _lags_at(self, time_s: float) -> Array | None:
        """Return the lags (3, sections, 6) at a time [s]; None before the first command."""
        # Commands within the horizon: hundreds, searched in microseconds.
        index = bisect_right(self._steps, time_s, key=_stamp) - 1
        return None if index < 0 else self._lags(self._steps[index], time_s)

    def _lags(self, step: _Step, time_s: float) -> Array:
        if self._lag_s == 0.0:
            return np.array([step.lags[0]] * 3)
        lags: Array = _later(step.lags, (time_s - step.stamp_s) / self._lag_s)
        return lags


_stamp = attrgetter('stamp_s')
