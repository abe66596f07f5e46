"""The clock of a board: when it measured what it sends, and whether it is the one of before."""

from __future__ import annotations

import math

_WINDOW_S = 0.5  # two of these are looked back at
_WRAP_US = 1 << 32
_LATE_S = 1.0  # a busy computer reads a state so late
_DRIFT = 0.01  # of the ceramic resonator of a Mega, and to spare


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


class BoardWitness:
    """
    Tells a board that is back from another one at its port.

    Ids are counts of starts, in which two boards may agree; their clocks do not.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Know no board: the next one is the board of before."""
        self._last: tuple[int, float] | None = None  # time of the board, and when it was heard
        self._back = False

    def lost(self) -> None:
        """Note that the next state comes over another connection."""
        self._back = True

    def look(self, time_us: int, now_s: float) -> str:
        """Take the time (u32) of a state; return why it is another board's, or ''."""
        back, last = self._back, self._last
        self._back, self._last = False, (time_us, now_s)
        if not back or last is None:
            return ''
        gone_s = now_s - last[1]
        passed_us = time_us - last[0] - round(1e6 * gone_s)
        off_s = 1e-6 * ((passed_us + _WRAP_US // 2) % _WRAP_US - _WRAP_US // 2)
        limit_s = _LATE_S + _DRIFT * gone_s
        if abs(off_s) <= limit_s:
            return ''
        return (
            f'another board is at its port: its clock is {off_s:+.3f} s off that of the board of '
            f'before (limit {limit_s:.3f} s)'
        )
