"""Real-time scheduling of the nodes in the loop, where the system permits it (Linux)."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def raise_priority(priority: int) -> str | None:
    """
    Put all threads of this process under SCHED_FIFO (0: leave them); return why not, or None.

    Other processes then do not delay the loop. It takes the right to do so (ulimit -r).
    """
    if priority == 0 or not sys.platform.startswith('linux'):
        return None
    try:
        for task in Path('/proc/self/task').iterdir():
            with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return f'no right to real-time priority {priority} (ulimit -r): ordinary scheduling'
    return None
