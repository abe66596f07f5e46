"""Map simulated time to wall-clock time, for a simulation that keeps pace with the clock."""

from __future__ import annotations

import math

_SLIP_S = 0.005  # lateness throughout a window that counts as a slip
_WINDOW_S = 0.25  # length of a window


class WallTimes:
    """
    Maps simulated times to the monotonic clock.

    A short delay changes nothing: the simulation catches up. Simulated time that was dropped
    because the computer was busy is never made up, so the mapping is then reset.

    Attributes
    ----------
    slips
        How often the mapping was reset.

    """

    def __init__(self) -> None:
        self.slips = 0
        self._origin_s: float | None = None
        self._least_late_s = math.inf
        self._window_end_s = math.inf

    def of(self, time_s: float, now_s: float) -> float:
        """Return the monotonic time [s] of a simulated time [s] that is reached now."""
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
