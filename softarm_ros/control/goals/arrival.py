"""Decide when an arm at the end of its motion has arrived."""

from __future__ import annotations

from collections import deque
from enum import Enum

SETTLED_S = 0.3
_ROUNDING_S = 1e-9


class Arrival(Enum):
    """Verdict on the errors at the end of a motion."""

    AWAITED = 'awaited'
    SETTLED = 'settled'
    MISSED = 'missed'


class ArrivalWatch:
    """
    Watches the distance from a goal once the reference rests there.

    Parameters
    ----------
    tolerance_m : float
        The goal is settled if the distance has not exceeded this for `SETTLED_S`.
    timeout_s : float
        The goal is missed if it has not settled by then.

    """

    def __init__(self, tolerance_m: float, timeout_s: float) -> None:
        self._tolerance_m, self._timeout_s = tolerance_m, timeout_s
        self._since_s: float | None = None
        self._errors: deque[tuple[float, float]] = deque()

    def reset(self) -> None:
        """Start afresh: the reference moves."""
        self._since_s = None
        self._errors.clear()

    @property
    def worst_m(self) -> float:
        """The largest distance within the last `SETTLED_S`."""
        return max(error for _, error in self._errors)

    def update(self, now_s: float, away_m: float) -> Arrival:
        """Take the present distance; the reference has been at rest since the first call."""
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
