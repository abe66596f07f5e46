"""The thread in which a driver talks to its device."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable

from softarm_ros.clock import MONOTONIC, Clock, Task
from softarm_ros.drivers.problems import DriverError

_log = logging.getLogger(__name__)
JOIN_S = 5.0  # covers the time-out of a call to a device that hangs


class PollingThread:
    """
    Runs a driver's work in parallel to its callers until it is asked to end.

    The work checks `ending` before each round and spends the time between rounds in `wait`. An
    exception of the work ends the thread, since a defective driver must not continue. The thread
    logs the exception and calls `failed` with it; the work restarts only after `close` and
    `start`.

    Parameters
    ----------
    name
        Name of the thread, also in messages.
    work
        Function that does the work; its argument is this object.
    failed
        Takes the exception that ended the work: the driver reports it and goes to a safe state.
    clock
        Clock on which the thread waits.
    interrupt
        Makes the work return from any other wait, such as for a port.
    goes_first
        Whether this thread has priority over the others of a real-time process (Linux): for a
        device that stops by itself if the thread sends nothing in time.

    Attributes
    ----------
    ending
        Set when the work is to end.

    """

    def __init__(
        self,
        name: str,
        work: Callable[[PollingThread], object],
        failed: Callable[[BaseException], object],
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
        Start the work unless it is running.

        Raises
        ------
        DriverError
            If the work was asked to end but is still running.

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
        """Ask the work to end, without waiting."""
        self.ending.set()
        self._news.set()
        self._interrupt()

    def close(self) -> None:
        """Ask the work to end and wait for it, at most `JOIN_S`; may be called twice."""
        if self._task is None:
            return
        self.end()
        self._task.join(JOIN_S)
        if self._ended:
            self._task = None
        else:
            _log.error('%s has not ended within %g s', self.name, JOIN_S)

    def wake(self) -> None:
        """Make `wait` return, because there is news."""
        self._news.set()

    # -- for the work

    def wait(self, until_s: float) -> bool:
        """Wait until a clock time [s], `wake` or the end; return whether woken."""
        self._news.wait(max(until_s - self._clock.now_s(), 0.0))
        woken = self._news.is_set()
        self._news.clear()  # before the work reads the news, so that it misses none
        return woken

    def _run(self) -> None:
        if self._goes_first:
            _go_first()
        try:
            self._work(self)
        # Any, even a library's SystemExit: without this thread, nothing watches the device.
        except BaseException as error:
            _log.exception('%s failed', self.name)
            self._failed(error)
        finally:
            self._ended = True


def _go_first() -> None:
    """Raise this thread's priority above that of the others if it is a real-time one."""
    with contextlib.suppress(AttributeError, OSError):
        policy, others = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        if policy in (os.SCHED_FIFO, os.SCHED_RR):
            os.sched_setscheduler(0, policy, os.sched_param(others + 1))
