"""A clock for tests: its tasks take turns, and time advances when all of them wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from softarm_ros.clock import MonotonicClock


class _Task:
    """A thread that runs only in its turn."""

    def __init__(self, clock: ManualClock, work: Callable[[], object] | None) -> None:
        self._clock, self._work = clock, work
        self.turn = threading.Semaphore(0)
        self.due_s = np.inf
        self.woken = False
        self.ended = clock.event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._clock.tasks.append(self)
        self.woken = True
        self._clock.order.append(self)
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        self.ended.wait(timeout)
        if self.ended.is_set():
            self._thread.join()

    def _run(self) -> None:
        self.turn.acquire()
        try:
            self._work()
        except BaseException as error:  # the test checks `failures`
            self._clock.failures.append(error)
        self.ended.set()
        self._clock.leave(self)


class ManualEvent:
    """An event with waits in the time of the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._waiting: list[_Task] = []
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        for task in self._waiting:
            self._clock.wake(task)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._waiting.append(self._clock.running)
            try:
                self._clock.wait(timeout)
            finally:
                self._waiting.remove(self._clock.running)
        return self._set


class ManualCondition(threading.Condition):
    """A condition with waits in the clock's time; its lock is free while its task waits."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self._tasks: list[_Task] = []

    def wait(self, timeout: float | None = None) -> bool:
        task = self._clock.running
        self._tasks.append(task)
        self.release()
        try:
            return self._clock.wait(timeout)
        finally:
            self.acquire()
            self._tasks.remove(task)

    def notify(self, n: int = 1) -> None:
        for task in self._tasks[:n]:
            self._clock.wake(task)

    def notify_all(self) -> None:
        self.notify(len(self._tasks))


class ManualClock:
    """
    Time stands still while any task works, and jumps to the next time a task waits for.

    One task runs at a time until it waits; the test's own thread is one of the tasks. Then the
    tasks that were woken run, in the order of waking; without any, the task with the earliest due
    time. Results are the same on any computer, and waiting takes no real time.
    """

    def __init__(self) -> None:
        self._now_s = 1000.0
        self.order: list[_Task] = []  # woken tasks that have not run since
        self.failures: list[BaseException] = []
        self.tasks: list[_Task] = []
        self.running = _Task(self, None)  # the test
        self.tasks.append(self.running)

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, duration_s: float) -> None:
        if duration_s > 0.0:
            self.wait(duration_s)

    def event(self) -> ManualEvent:
        return ManualEvent(self)

    def condition(self) -> ManualCondition:
        return ManualCondition(self)

    def task(self, work: Callable[[], object], name: str) -> _Task:
        return _Task(self, work)

    def until(self, condition: Callable[[], object], within_s: float, what: str = '') -> float:
        """Check a condition every millisecond until it holds; return how long it took [s]."""
        began = self._now_s
        while not condition():
            assert not self.failures, self.failures
            assert self._now_s - began < within_s, f'{what or condition}: not within {within_s} s'
            self.sleep(1e-3)
        return self._now_s - began

    # -- for tasks, events and conditions

    def wake(self, task: _Task) -> None:
        """Let a waiting task continue in its turn."""
        if not task.woken:
            task.woken = True
            self.order.append(task)

    def wait(self, timeout: float | None) -> bool:
        """Wait to be woken, at most for `timeout` [s]; return whether woken."""
        task = self.running
        task.woken = False
        task.due_s = np.inf if timeout is None else self._now_s + max(timeout, 0.0)
        self._next()
        task.turn.acquire()
        return task.woken

    def leave(self, task: _Task) -> None:
        """Remove a task that has ended, and hand over to the next one."""
        self.tasks.remove(task)
        self._next()

    def _next(self) -> None:
        """Hand over to the next task, which may be the caller."""
        if self.order:
            task = self.order.pop(0)
        else:
            task = min(self.tasks, key=lambda waiting: waiting.due_s)
            assert np.isfinite(task.due_s), 'everyone waits for ever'
            self._now_s = max(self._now_s, task.due_s)
        task.due_s = np.inf
        self.running = task
        task.turn.release()


class WallClock(MonotonicClock):
    """The computer's clock, with `until` as in `ManualClock`."""

    failures: tuple[BaseException, ...] = ()

    def until(self, condition: Callable[[], object], within_s: float, what: str = '') -> float:
        """Do as in `ManualClock`; the returned time depends on the computer's load."""
        began = self.now_s()
        wait_until(condition, within_s, what)
        return self.now_s() - began


def wait_until(condition: Callable[[], object], within_s: float, what: str) -> None:
    """Wait until a condition holds, on the computer's clock; fail after `within_s` [s]."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f'{what}: not within {within_s} s'
        time.sleep(0.001)
