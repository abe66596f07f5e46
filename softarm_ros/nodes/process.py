"""The process of a node: how it ends, whatever happens. Imports nothing heavy, ROS neither."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import NoReturn

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
PARENT_VARIABLE = 'SOFTARM_PARENT_PID'
HELD_VARIABLE = 'SOFTARM_HELD'
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What a node gets to put its device to rest and its bag away once nobody is left to ask for more.
ORPHAN_GRACE_S = 4.0


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a node: one thread for numerics, and this process as parent."""
    single = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', 'MKL_NUM_THREADS': '1'}
    return {**single, **environment, PARENT_VARIABLE: str(os.getpid())}


class StopSignals:
    """
    Takes SIGINT and SIGTERM of this process.

    The first one ends the process with status 0 at once, as SystemExit, while it starts; after
    `note_only` it is noted. Any further one is ignored: Ctrl-C arrives twice, from the terminal
    and from the parent, and nothing may break into what is closing.
    """

    def __init__(self) -> None:
        self.seen = False
        self._at_once = True
        for number in STOP_SIGNALS:
            signal.signal(number, self._handle)

    def note_only(self) -> None:
        """From now on somebody looks at `seen`."""
        self._at_once = False

    def ignore(self) -> None:
        """The process is ending: no signal changes that."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        self.ignore()
        if self._at_once:
            raise SystemExit(0)


def end_with_parent() -> None:
    """
    End this process when the one that announced itself in the environment dies (Linux).

    It is watched by its id, not as the direct parent: between `ros2 launch` and a node may be a
    shell or a prefix. First as by SIGTERM, and when that has not helped, by SIGALRM, which nobody
    handles.

    The signals of a terminal come through that process alone, once: this one leaves its group. A
    child that Ctrl-C has ended before `ros2 launch` signals it is reported as died with code 255.
    """
    parent = os.environ.pop(PARENT_VARIABLE, '')  # once, and not for children of this process
    if not parent.isdigit() or not hasattr(os, 'pidfd_open'):
        return
    try:
        handle = os.pidfd_open(int(parent))
    except ProcessLookupError:
        print(f'the process that started this one ({parent}) has ended', file=sys.stderr)
        sys.exit(EXIT_FAILED)
    except OSError:  # a kernel older than 5.3
        return
    if os.getpgrp() != os.getpid():
        os.setpgrp()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which may be ignored where this was started
    threading.Thread(target=_follow, args=(handle,), name='parent', daemon=True).start()


def leave(status: int) -> NoReturn:
    """
    End this process in order, but without freeing one by one all modules and what is in them.

    That would take every command and node an eighth of a second more. Threads are waited for, what
    is registered for the exit is done and output is written, as processes of `multiprocessing` do.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none
            stream.flush()
    os._exit(status)


def wait_for_release() -> None:
    """
    Where this process was started held, wait for the line on its input that lets it go.

    What it needs is imported by then; it is not in the ROS graph yet. It ends if that line does
    not come any more.
    """
    if os.environ.pop(HELD_VARIABLE, '') and not os.read(0, 1):
        sys.exit(EXIT_FAILED)


def _follow(handle: int) -> None:
    select.select([handle], [], [])  # readable once the process has ended
    # By the kernel: what Fast DDS waits for while a node is destroyed may wait for the
    # interpreter's lock, which the destroyer keeps; this thread would not get it either.
    signal.setitimer(signal.ITIMER_REAL, ORPHAN_GRACE_S)
    os.kill(os.getpid(), signal.SIGTERM)
