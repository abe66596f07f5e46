"""The strains that commands lead to, at any time: two lags of each command's shape."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class _Step:
    """A command and where the lags stood when it came (sections, 6)."""

    stamp_s: float
    wanted: Array
    first: Array
    second: Array


class CommandedStrains:
    """
    Follows commanded strains (sections, 6) through two equal lags, exactly between commands.

    Parameters
    ----------
    response_s : float
        Of the arm to a command: twice the time constant of either lag [s]; 0: at once.
    horizon_s : float
        For how long the past can be asked for [s].

    """

    def __init__(self, response_s: float, horizon_s: float) -> None:
        self._lag_s, self._horizon_s = 0.5 * response_s, horizon_s
        self._steps: list[_Step] = []

    def forget(self) -> None:
        """Begin anew: the next command counts as reached."""
        self._steps.clear()

    @property
    def began(self) -> bool:
        """Whether there is a command."""
        return bool(self._steps)

    def take(self, now_s: float, wanted: Array) -> None:
        """Take the strains (sections, 6) commanded from now on."""
        steps = self._steps
        if steps and now_s <= steps[-1].stamp_s:
            last = steps.pop()
            steps.append(_Step(last.stamp_s, wanted, last.first, last.second))
            return
        first, second = self._state(steps[-1], now_s) if steps else (wanted, wanted)
        steps.append(_Step(now_s, wanted, first, second))
        oldest = now_s - self._horizon_s
        while len(steps) > 2 and steps[1].stamp_s < oldest:
            steps.pop(0)

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Return strains and their rates [1/s], (sections, 6) each, at a time [s]."""
        steps = self._steps
        # A list of a horizon at the rate of the loop: hundreds, searched in microseconds.
        index = bisect_right(steps, time_s, key=lambda step: step.stamp_s) - 1
        step = steps[max(index, 0)]
        if index < 0 or self._lag_s == 0.0:
            return (step.second if index < 0 else step.wanted), np.zeros_like(step.second)
        first, second = self._state(step, time_s)
        return second, (first - second) / self._lag_s

    def _state(self, step: _Step, time_s: float) -> tuple[Array, Array]:
        if self._lag_s == 0.0:
            return step.wanted, step.wanted
        passed = (time_s - step.stamp_s) / self._lag_s
        left = float(np.exp(-passed))
        first = step.first - step.wanted
        second = step.second - step.wanted
        return step.wanted + left * first, step.wanted + left * (second + passed * first)
