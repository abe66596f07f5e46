"""The thread in which a driver talks to its device."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable

from softarm_ros.clock import MONOTONIC, Clock, Task
from softarm_ros.drivers.problems import DriverError

_log = logging.getLogger(__name__)
JOIN_S = 5.0  # a call to a device that hangs may take its time-out


class PollingThread:
    """
    Does a driver's work beside its callers, until it is asked to end.

    The work looks at `ending` before each round and spends the time between two in `wait`. What is
    raised out of it ends the thread, since a driver with a defect must not go on: it is logged and
    handed to `failed`, by the thread itself; nothing begins anew before `close` and `start`.

    Parameters
    ----------
    name
        Of the thread, and in messages.
    work
        What is to be done; gets the thread.
    failed
        Takes the error that ended the work: there the driver reports it and goes to a safe state.
    clock
        Whose time it waits on.
    interrupt
        Lets the work return from what else it may wait for, such as a port.
    goes_first
        Whether this thread goes before the others of a process with real-time priority (Linux):
        for a device that stops by itself if the thread sends nothing in time.

    Attributes
    ----------
    ending
        Set when the work is to end.

    """

    def __init__(
        self,
        name: str,
        work: Callable[[PollingThread], object],
        failed: Callable[[Exception], object],
        clock: Clock = MONOTONIC,
        *,
        interrupt: Callable[[], object] = lambda: None,
        goes_first: bool = False,
    ) -> None:
        self.name = name
        self.ending = clock.event()
        self._work, self._failed, self._interrupt = work, failed, interrupt
        self._clock = clock
        self._goes_first = goes_first
        self._news = clock.event()
        self._task: Task | None = None
        self._ended = False

    # -- for the driver's callers

    def start(self) -> None:
        """
        Begin to work, unless it has begun.

        Raises
        ------
        DriverError
            If the work was asked to end and still has not.

        """
        if self._task is not None and not self.ending.is_set():
            return
        if self._task is not None and not self._ended:
            raise DriverError(f'{self.name} is still ending; its device does not return')
        self.ending.clear()
        self._news.clear()
        self._ended = False
        self._task = self._clock.task(self._run, self.name)
        self._task.start()

    def end(self) -> None:
        """Ask the work to end; does not wait."""
        self.ending.set()
        self._news.set()
        self._interrupt()

    def close(self) -> None:
        """Ask the work to end and wait for that, at most `JOIN_S`; may be called twice."""
        if self._task is None:
            return
        self.end()
        self._task.join(JOIN_S)
        if self._ended:
            self._task = None
        else:
            _log.error('%s has not ended within %g s', self.name, JOIN_S)

    def wake(self) -> None:
        """There is something new: let `wait` return."""
        self._news.set()

    # -- for the work

    def wait(self, until_s: float) -> bool:
        """Wait until a time of the clock [s], for `wake` or the end; return whether woken."""
        self._news.wait(max(until_s - self._clock.now_s(), 0.0))
        woken = self._news.is_set()
        self._news.clear()  # before the work looks at what is new: none of it is overlooked
        return woken

    def _run(self) -> None:
        if self._goes_first:
            _go_first()
        try:
            self._work(self)
        except Exception as error:  # without this thread nobody watches the device
            _log.exception('%s failed', self.name)
            self._failed(error)
        finally:
            self._ended = True


def _go_first() -> None:
    """Raise the priority of this thread over the others', where they have a real-time one."""
    with contextlib.suppress(AttributeError, OSError):
        policy, others = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        if policy in (os.SCHED_FIFO, os.SCHED_RR):
            os.sched_setscheduler(0, policy, os.sched_param(others + 1))
