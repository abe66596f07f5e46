"""Decides how long to wait for the discovery of nodes that are already running."""

from __future__ import annotations

import time
from collections.abc import Callable

from softarm_ros.runtime.machine_load import MachineLoad

# Discovery by Fast DDS takes 0.1 s to 1.5 s on a quiet computer; beside three busy loops on two
# processors, 2 s were too short one time in four.
QUIET_S = 2.0
_BUSY_PERCENT = 90.0
_LONGER = 3.0  # factor on the waiting time, at most, while the processors are busy


class Discovery:
    """
    Tells when every running node would have been discovered; time counts from construction.

    Parameters
    ----------
    quiet_s : float
        Time [s] that discovery takes on a quiet computer. On a busy computer nodes answer late, so
        only time with free processors counts, for at most three times `quiet_s` in all.
    clock : callable
        Monotonic time [s].
    busy_percent : callable, optional
        Recent use of all processors [%]; without it, from the kernel's counters.

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
        """Return whether discovery has had enough time; call it repeatedly while waiting."""
        now, percent = self._clock(), self._percent()
        if percent is None or percent < _BUSY_PERCENT:
            self._free_s += now - self._asked_s
        self._asked_s = now
        return self._free_s >= self._quiet_s or now - self._since_s >= _LONGER * self._quiet_s
