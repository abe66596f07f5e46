"""Real-time scheduling and memory locking of nodes in the loop, if the system permits them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path


def raise_priority(priority: int) -> str | None:
    """
    Put all threads of this process under SCHED_FIFO (0: leave them); return why not, or None.

    Other processes then do not delay the loop. This needs permission (ulimit -r).
    """
    if priority == 0 or not sys.platform.startswith('linux'):
        return None
    try:
        _schedule_all(os.SCHED_FIFO, priority)
    except PermissionError:
        return f'no right to real-time priority {priority} (ulimit -r): ordinary scheduling'
    return None


def drop_priority() -> None:
    """Return all threads of this process to ordinary scheduling."""
    if sys.platform.startswith('linux'):
        _schedule_all(os.SCHED_OTHER, 0)


def _schedule_all(policy: int, priority: int) -> None:
    for task in Path('/proc/self/task').iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
            os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))


# <sys/mman.h> of Linux.
_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4
_CAP_IPC_LOCK = 14  # <linux/capability.h>
_KEEPING = 'to keep its memory from being dropped'


def keep_in_memory() -> str | None:
    """
    Lock all pages that this process uses, now or later, in memory; return why not, or None.

    When memory is short, the kernel drops code that was not used for a while and reads it from
    disk when it is needed. On a busy disk that takes a third of a second, in the middle of a
    motion. Pages that are never used cost nothing. This needs permission (ulimit -l).
    """
    if not sys.platform.startswith('linux'):
        return None
    if not _may_lock_all():
        return f'no right {_KEEPING} (ulimit -l unlimited)'
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT) == 0:
        return None
    return f'no right {_KEEPING} (ulimit -l unlimited): {os.strerror(ctypes.get_errno())}'


def _may_lock_all() -> bool:
    """Return whether locked memory is unlimited; at a limit, later allocations would fail."""
    import resource  # does not exist on all platforms

    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    status = Path('/proc/self/status').read_text(encoding='utf-8')
    effective = next(line for line in status.splitlines() if line.startswith('CapEff:'))
    return bool(int(effective.split()[1], 16) >> _CAP_IPC_LOCK & 1)
