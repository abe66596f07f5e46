"""Measure how busy the computer is, from the kernel's own counters (Linux)."""

from __future__ import annotations

import sys
from pathlib import Path

_STAT = Path('/proc/stat')
_LEAST_JIFFIES = 20  # least time between two readings, over all processors


class MachineLoad:
    """Share of the processors' time in use between two readings."""

    def __init__(self) -> None:
        self._last = _busy_and_all()
        self._percent: float | None = None

    def percent(self) -> float | None:
        """Return the use [%] of all processors since the last reading; None without counters."""
        now = _busy_and_all()
        if now is None or self._last is None:
            return None
        busy, total = now[0] - self._last[0], now[1] - self._last[1]
        if total >= _LEAST_JIFFIES:
            self._percent, self._last = 100.0 * busy / total, now
        return self._percent


def _busy_and_all() -> tuple[int, int] | None:
    """Return the busy and the total jiffies of all processors since boot."""
    if not sys.platform.startswith('linux'):
        return None
    try:
        first = _STAT.read_text(encoding='ascii').split('\n', 1)[0]
        # user nice system idle iowait irq softirq steal; guests are counted in user.
        fields = [int(x) for x in first.split()[1:9]]
    except (OSError, ValueError):
        return None
    return sum(fields) - fields[3] - fields[4], sum(fields)
