"""What a device or its link complains of, with the device's own code."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Problem:
    """
    One complaint.

    Attributes
    ----------
    source :
        The actuator, channel or link it concerns.
    code :
        The device's or library's own code as its manual prints it; '' where it gave none.
    text :
        What it means.
    since_s :
        When it was first seen, monotonic clock.
    count :
        How often it was seen since.

    """

    source: str
    code: str
    text: str
    since_s: float
    count: int = 1

    def __str__(self) -> str:
        return f'{self.source}: {self.code} {self.text}' if self.code else _plain(self)


def _plain(problem: Problem) -> str:
    return f'{problem.source}: {problem.text}'


class DriverError(RuntimeError):
    """A driver cannot do what it was asked; the message says why."""


class ProblemLog:
    """Problems since the last reset, oldest first; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._problems: dict[tuple[str, str], Problem] = {}

    def report(self, source: str, code: str, text: str, now_s: float) -> bool:
        """Note a problem; return whether it is new. The first text and time stay."""
        with self._lock:
            known = self._problems.get((source, code))
            if known is not None:
                self._problems[source, code] = replace(known, count=known.count + 1)
                return False
            self._problems[source, code] = Problem(source, code, text, now_s)
            return True

    def forget(self, source: str, code: str) -> None:
        """Forget one problem, if there is such a one."""
        with self._lock:
            self._problems.pop((source, code), None)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._problems.clear()

    def all(self) -> tuple[Problem, ...]:
        """Return what is noted."""
        with self._lock:
            return tuple(self._problems.values())

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.all())

    def __bool__(self) -> bool:
        with self._lock:
            return bool(self._problems)


def import_library(*modules: str) -> None:
    """
    Import what a driver's threads need, which must not import a package at the same time.

    Raises
    ------
    DriverError
        Saying how to install what is not there.

    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise DriverError(
                f'{module} cannot be imported ({error}): pip install "softarm_ros[hardware]"'
            ) from error


def require_none(device: str, problems: ProblemLog) -> None:
    """Raise `DriverError` naming every problem, if there is one."""
    found = problems.all()
    if found:
        raise DriverError(f'{device} is not ready, reset it first: {"; ".join(map(str, found))}')
