"""When a board measured what it sends, on the clock of this computer."""

from __future__ import annotations

import math

_WINDOW_S = 0.5  # two of these are looked back at
_WRAP_US = 1 << 32


class BoardClock:
    """
    Time stamps from the microsecond counter of a board.

    A frame cannot arrive before it is sent: the earliest arrivals of the last half to one second,
    relative to the board's clock, give its offset, so that the jitter of a line does not reach
    the stamps. The window is short enough for the half per cent of a ceramic resonator.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the offset: the board counts anew."""
        self._last_us: int | None = None
        self._time_s = 0.0  # of the board, without wrapping
        self._offsets = [math.inf, math.inf]  # of the window before, of this one
        self._window_end_s = -math.inf
        self._stamp_s = -math.inf

    def stamp(self, time_us: int, arrival_s: float) -> float:
        """Return when the board's counter was at `time_us` (u32); never decreasing [s]."""
        if self._last_us is not None:
            self._time_s += ((time_us - self._last_us) % _WRAP_US) * 1e-6
        self._last_us = time_us
        offset = arrival_s - self._time_s
        if arrival_s >= self._window_end_s:
            self._offsets = [self._offsets[1], math.inf]
            self._window_end_s = arrival_s + _WINDOW_S
        self._offsets[1] = min(self._offsets[1], offset)
        self._stamp_s = max(self._stamp_s, self._time_s + min(self._offsets))
        return self._stamp_s
