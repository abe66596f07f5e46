"""The actuation range that a model keeps to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError

_ROUNDING = 1e-8  # of the range
_READ = 0.01  # of the range: margin for sensor readings beyond it


@dataclass(frozen=True)
class ActuationRange:
    """
    Least and largest actuation `low` (m,), `high` (m,), in `unit`, of the actuators `names`.

    A model without a range, such as one for recordings, accepts every actuation that its
    mechanics admit.
    """

    names: tuple[str, ...]
    low: Array
    high: Array
    unit: str

    def check(self, actuation: Array) -> None:
        """Raise ModelError for an actuation (m,) outside the range by more than sensor error."""
        if text := self._beyond(actuation, _READ):
            raise ModelError(text)

    def refusal(self, actuation: Array) -> str:
        """Return a text that lists the commands (m,) outside their range; '' if all are inside."""
        text = self._beyond(actuation, _ROUNDING)
        return text and f'beyond the actuators: {text}'

    def _beyond(self, actuation: Array, share: float) -> str:
        more = share * (self.high - self.low)
        outside: NDArray[np.bool_] = (actuation < self.low - more) | (actuation > self.high + more)
        return '; '.join(
            f'{self.names[i]} = {actuation[i]:.6g} {self.unit} outside '
            f'[{self.low[i]:.6g}, {self.high[i]:.6g}] {self.unit}'
            for i in np.flatnonzero(outside)
        )


def bounds_of(within: ActuationRange | None, count: int) -> tuple[Array, Array]:
    """Return the bounds (count,), (count,) of a search; infinite without a range."""
    if within is None:
        return np.full(count, -np.inf), np.full(count, np.inf)
    return within.low, within.high
