"""Start and orderly end of a node's or command's process. Imports nothing slow, and no ROS."""

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
EXIT_INTERRUPTED = 130
PARENT_VARIABLE = 'SOFTARM_PARENT_PID'
HELD_VARIABLE = 'SOFTARM_HELD'
LARGEST_SEED = 2**31 - 1  # that nodes take as their parameter `seed`
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Time for a node to stop its device and close its bag after its parent process has died.
ORPHAN_GRACE_S = 4.0


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that ends with this one (`end_with_parent`)."""
    return {**environment, PARENT_VARIABLE: str(os.getpid())}


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a node's environment: one thread for numerics, and this process as its parent."""
    single = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', 'MKL_NUM_THREADS': '1'}
    return {**single, **child_environment(environment)}


def unless_ignored(*numbers: signal.Signals) -> list[signal.Signals]:
    """Return those of the signals that are not ignored, as `nohup` has SIGHUP ignored."""
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]


class StopSignals:
    """
    Handles SIGINT, SIGTERM and, unless `nohup` ignores it, SIGHUP (a closed terminal).

    During start-up the first signal ends the process at once with SystemExit, status 0; after
    `note_only` it only sets `seen`. Further signals are ignored: Ctrl-C arrives twice, from the
    terminal and from the parent, and nothing may interrupt closing.
    """

    def __init__(self) -> None:
        self.seen = False
        self._at_once = True
        for number in (signal.SIGINT, signal.SIGTERM, *unless_ignored(signal.SIGHUP)):
            signal.signal(number, self._handle)

    def note_only(self) -> None:
        """Only set `seen` at a signal, from now on."""
        self._at_once = False

    def ignore(self) -> None:
        """Ignore all signals: the process is ending."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        self.ignore()
        if self._at_once:
            raise SystemExit(0)


def end_with_parent() -> None:
    """
    End this process when the process named in the environment dies (Linux).

    That process is watched by its id, not as the direct parent: a shell or a prefix may stand
    between `ros2 launch` and a node. When it dies, this process gets SIGTERM and, if it has not
    ended `ORPHAN_GRACE_S` later, SIGALRM, which has no handler.

    This process leaves its process group, so that signals of a terminal reach it only once,
    through the watched process. Otherwise `ros2 launch` reports a child that Ctrl-C has ended
    before its own signal as died with code 255.
    """
    parent = os.environ.pop(PARENT_VARIABLE, '')  # not inherited by children of this process
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
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the starting process may have had it ignored
    threading.Thread(target=_follow, args=(handle,), name='parent', daemon=True).start()


def leave(status: int) -> NoReturn:
    """
    End this process in order, but without freeing all modules and their objects one by one.

    Freeing them would take every command and node an eighth of a second more. As in processes of
    `multiprocessing`, threads are joined, exit functions are run and output is flushed.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none
            stream.flush()
    os._exit(status)


def wait_for_release() -> None:
    """
    If this process was started held, wait for the line on its standard input that releases it.

    By then all imports are done, but the process is not in the ROS graph yet. It exits if its
    input is closed instead.
    """
    if os.environ.pop(HELD_VARIABLE, '') and not os.read(0, 1):
        sys.exit(EXIT_FAILED)


def _follow(handle: int) -> None:
    select.select([handle], [], [])  # readable once the process has ended
    # A timer of the kernel, not of this thread: destroying a node may deadlock in Fast DDS while
    # holding the interpreter's lock, and then no Python thread runs.
    signal.setitimer(signal.ITIMER_REAL, ORPHAN_GRACE_S)
    os.kill(os.getpid(), signal.SIGTERM)
