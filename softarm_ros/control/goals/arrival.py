"""When an arm that has come to the end of its way has arrived."""

from __future__ import annotations

from collections import deque
from enum import Enum

SETTLED_S = 0.3
_ROUNDING_S = 1e-9


class Arrival(Enum):
    """What the errors at the end of a way say."""

    AWAITED = 'awaited'
    SETTLED = 'settled'
    MISSED = 'missed'


class ArrivalWatch:
    """
    Watches the distance from a goal once the reference rests there.

    Parameters
    ----------
    tolerance_m : float
        It has settled when it was no farther away for `SETTLED_S`.
    timeout_s : float
        It has missed the goal when that did not come about for so long.

    """

    def __init__(self, tolerance_m: float, timeout_s: float) -> None:
        self._tolerance_m, self._timeout_s = tolerance_m, timeout_s
        self._since_s: float | None = None
        self._errors: deque[tuple[float, float]] = deque()

    def reset(self) -> None:
        """Begin anew: the reference moves."""
        self._since_s = None
        self._errors.clear()

    @property
    def worst_m(self) -> float:
        """The largest distance of the last `SETTLED_S`, which decides."""
        return max(error for _, error in self._errors)

    def update(self, now_s: float, away_m: float) -> Arrival:
        """Take the distance of now; the reference has rested since the first call."""
        if self._since_s is None:
            self._since_s = now_s
        self._errors.append((now_s, away_m))
        while self._errors[0][0] < now_s - SETTLED_S - _ROUNDING_S:
            self._errors.popleft()
        rested = now_s - self._since_s
        close = self.worst_m <= self._tolerance_m
        if close and rested >= SETTLED_S - _ROUNDING_S:
            return Arrival.SETTLED
        return Arrival.MISSED if rested >= self._timeout_s + SETTLED_S else Arrival.AWAITED
