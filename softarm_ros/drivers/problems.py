"""Problems of a device or its link, with the device's own code."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Problem:
    """
    One problem.

    Attributes
    ----------
    source :
        The actuator, channel or link it concerns.
    code :
        The device's or library's own code as its manual prints it; '' if there is none.
    text :
        Meaning of the code, or description of the problem.
    since_s :
        Monotonic time of the first report.
    count :
        Number of reports.
    passing :
        Whether it ends by itself: it arose before the device was used.
    outside :
        Whether a late computer cannot be the cause: the link or the device is gone, or the device
        reports a fault of its own.
    lasting :
        Whether a reset cannot end it: a thread of the driver has failed, and starts again only
        with the driver.

    """

    source: str
    code: str
    text: str
    since_s: float
    count: int = 1
    passing: bool = False
    outside: bool = False
    lasting: bool = False

    def __str__(self) -> str:
        return f'{self.source}: {self.code} {self.text}' if self.code else _plain(self)


def _plain(problem: Problem) -> str:
    return f'{problem.source}: {problem.text}'


class DriverError(RuntimeError):
    """A driver cannot carry out a request; the message says why."""


class ProblemLog:
    """Problems since the last reset, oldest first; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._problems: dict[tuple[str, str], Problem] = {}

    def report(
        self,
        source: str,
        code: str,
        text: str,
        now_s: float,
        *,
        passing: bool = False,
        outside: bool = False,
        lasting: bool = False,
    ) -> bool:
        """Record a problem; return whether it is new. The first text, time and cause are kept."""
        with self._lock:
            known = self._problems.get((source, code))
            if known is not None:
                self._problems[source, code] = replace(
                    known, count=known.count + 1, passing=known.passing and passing
                )
                return False
            self._problems[source, code] = Problem(
                source, code, text, now_s, passing=passing, outside=outside, lasting=lasting
            )
            return True

    def report_failure(self, source: str, error: BaseException, now_s: float) -> None:
        """Record the exception that has ended a thread of the driver."""
        text = f'driver failed: {error!r}; clean up and configure its node, or restart it'
        self.report(source, 'internal', text, now_s, outside=True, lasting=True)

    def end_passing(self, source: str) -> None:
        """Remove the passing problems of a source, which works again."""
        with self._lock:
            for key, problem in tuple(self._problems.items()):
                if problem.passing and problem.source == source:
                    del self._problems[key]

    def clear(self) -> None:
        """Remove all problems but the lasting ones."""
        with self._lock:
            self._problems = {key: one for key, one in self._problems.items() if one.lasting}

    def end_lasting(self) -> None:
        """Remove the lasting problems: the driver has been closed."""
        with self._lock:
            self._problems = {key: one for key, one in self._problems.items() if not one.lasting}

    def all(self) -> tuple[Problem, ...]:
        """Return all recorded problems."""
        with self._lock:
            return tuple(self._problems.values())

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.all())

    def __bool__(self) -> bool:
        with self._lock:
            return bool(self._problems)


def import_library(*modules: str) -> None:
    """
    Import modules that a driver's threads need: two threads must not import one at the same time.

    Raises
    ------
    DriverError
        If a module is missing; the message says how to install it.

    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise DriverError(
                f'{module} cannot be imported ({error}): pip install "softarm_ros[hardware]"'
            ) from error


def require_none(device: str, problems: ProblemLog) -> None:
    """Raise `DriverError`, naming every problem, if there are any."""
    found = problems.all()
    if found:
        raise DriverError(f'{device} is not ready, reset it first: {"; ".join(map(str, found))}')
