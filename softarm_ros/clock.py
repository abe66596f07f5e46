"""Time for whatever waits: the computer's in a running arm, moved on by hand in tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol


class Task(Protocol):
    """Work that goes on beside its caller."""

    def start(self) -> None:
        """Begin."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, for so long [s] at most."""


class Event(Protocol):
    """`threading.Event`, whose waits are of a clock."""

    def is_set(self) -> bool:
        """Return whether it is set."""

    def set(self) -> None:
        """Set it, and wake everything that waits for it."""

    def clear(self) -> None:
        """Clear it."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for so long [s] at most; return whether it is."""


class Clock(Protocol):
    """
    What time it is, and every way to wait for it.

    Who waits through a clock alone runs as fast as its time does: a test moves that on by hand.
    """

    def now_s(self) -> float:
        """Return the time [s] since some instant; it never goes back."""

    def sleep(self, duration_s: float) -> None:
        """Let time pass [s]; none for what is not positive."""

    def event(self) -> Event:
        """Return an event that is not set."""

    def condition(self) -> threading.Condition:
        """Return a condition, with a lock of its own."""

    def task(self, work: Callable[[], object], name: str) -> Task:
        """Return a task that does this work once it is started, and ends with the process."""


class MonotonicClock:
    """The monotonic clock of the computer, and threads."""

    def now_s(self) -> float:
        """See `Clock`."""
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        """See `Clock`."""
        if duration_s > 0.0:
            time.sleep(duration_s)

    def event(self) -> Event:
        """See `Clock`."""
        return threading.Event()

    def condition(self) -> threading.Condition:
        """See `Clock`."""
        return threading.Condition()

    def task(self, work: Callable[[], object], name: str) -> Task:
        """See `Clock`."""
        return threading.Thread(target=work, name=name, daemon=True)


MONOTONIC = MonotonicClock()


class Rhythm:
    """
    When work is due that is done once a period: the first time at once.

    What was late is done as soon as it can be, and the next keeps to the old beat; periods that
    were missed altogether are not made up for.

    Attributes
    ----------
    due_s
        When work is due next [s], on the clock of who calls; 0 before the first.

    """

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.due_s = 0.0

    def turn(self, now_s: float) -> float:
        """Work begins now; return how late that is [s], 0 for the first time."""
        due_s = self.due_s or now_s
        self.due_s = max(due_s + self.period_s, now_s)
        return now_s - due_s
