"""How long to look for nodes that are there already."""

from __future__ import annotations

import time
from collections.abc import Callable

from softarm_ros.runtime.machine_load import MachineLoad

# Fast DDS takes 0.1 s to 1.5 s on a quiet computer; beside three busy loops on two processors
# 2 s were too short once in four.
QUIET_S = 2.0
_BUSY_PERCENT = 90.0
_LONGER = 3.0  # times as long, as long as the processors are busy


class Discovery:
    """
    Says when nodes that are there would have been found; it begins with its making.

    Parameters
    ----------
    quiet_s : float
        Time [s] that discovery takes on a quiet computer. On a busy one, whose nodes answer late,
        only the time counts in which processors were free, up to three times as long in all.
    clock : callable
        Seconds, steadily.
    busy_percent : callable, optional
        Use of all processors lately; the kernel's own counters without it.

    """

    def __init__(
        self,
        quiet_s: float = QUIET_S,
        clock: Callable[[], float] = time.monotonic,
        busy_percent: Callable[[], float | None] | None = None,
    ) -> None:
        self._quiet_s, self._clock = quiet_s, clock
        self._percent = MachineLoad().percent if busy_percent is None else busy_percent
        self._since_s = self._asked_s = clock()
        self._free_s = 0.0

    def over(self) -> bool:
        """Return whether it has been looked for long enough; ask it again and again."""
        now, percent = self._clock(), self._percent()
        if percent is None or percent < _BUSY_PERCENT:
            self._free_s += now - self._asked_s
        self._asked_s = now
        return self._free_s >= self._quiet_s or now - self._since_s >= _LONGER * self._quiet_s
