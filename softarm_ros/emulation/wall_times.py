"""When on the wall clock a simulated time is, for a simulation that keeps pace with it."""

from __future__ import annotations

import math

_SLIP_S = 0.005  # by so much the two may differ, for
_WINDOW_S = 0.25  # so long


class WallTimes:
    """
    Maps simulated times to the monotonic clock.

    Being late for a moment changes nothing: it is caught up with. Simulated time that was given
    up, since the computer was busy, never is: then the two are set anew.

    Attributes
    ----------
    slips
        How often they were.

    """

    def __init__(self) -> None:
        self.slips = 0
        self._origin_s: float | None = None
        self._least_late_s = math.inf
        self._window_end_s = math.inf

    def of(self, time_s: float, now_s: float) -> float:
        """Return the monotonic time [s] of a simulated time that is reached now."""
        if self._origin_s is None:
            self._origin_s = now_s - time_s
            self._window_end_s = now_s + _WINDOW_S
        self._least_late_s = min(self._least_late_s, now_s - self._origin_s - time_s)
        if now_s >= self._window_end_s:
            if abs(self._least_late_s) > _SLIP_S:
                self._origin_s += self._least_late_s
                self.slips += 1
            self._least_late_s, self._window_end_s = math.inf, now_s + _WINDOW_S
        return self._origin_s + time_s
