"""The clock of a board: it dates the board's measurements and tells one board from another."""

from __future__ import annotations

import math

_WINDOW_S = 0.5  # the offset is taken from two windows
_WRAP_US = 1 << 32
_LATE_S = 1.0  # longest delay before a busy computer reads a state
_DRIFT = 0.01  # relative; exceeds that of a Mega's ceramic resonator


class BoardClock:
    """
    Time stamps from the microsecond counter of a board.

    A frame cannot arrive before it is sent. So the earliest arrivals of the last half to one
    second, relative to the board's clock, give its offset, and the jitter of the line does not
    affect the stamps. The window is short enough for a resonator that drifts by half a per cent.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the offset, because the board's counter has restarted."""
        self._last_us: int | None = None
        self._time_s = 0.0  # board time, unwrapped
        self._offsets = [math.inf, math.inf]  # previous window, current window
        self._window_end_s = -math.inf
        self._stamp_s = -math.inf

    def stamp(self, time_us: int, arrival_s: float) -> float:
        """Return the time [s] of counter value `time_us` (u32); it never decreases."""
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
    Tells a reconnected board from a different board at the same port.

    Boot ids count starts and may be equal on two boards; their clocks are not.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the board; accept the next one, whichever it is."""
        self._last: tuple[int, float] | None = None  # board time [us], time of arrival [s]
        self._back = False

    def lost(self) -> None:
        """Note that the connection is lost; the next state comes over a new one."""
        self._back = True

    def look(self, time_us: int, now_s: float) -> str:
        """Take the board time (u32) of a state; return why it is of another board, or ''."""
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
            f'another board is at its port: its clock differs by {off_s:+.3f} s from that of the '
            f'previous board (limit {limit_s:.3f} s)'
        )
