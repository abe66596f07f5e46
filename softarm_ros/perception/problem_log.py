"""Current problems of a sensor, which expire when they are no longer reported."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from softarm_ros.perception.sensor import SensorProblem

HOLD_S = 3.0  # minimum display time, long enough for a reader that polls once a second
ENDED_S = 1.0  # time since the last report; not every frame is judged


@dataclass(frozen=True)
class _Told:
    """A problem with the times of its first and last report [s]."""

    begun_s: float
    last_s: float
    grave: int
    problem: SensorProblem

    def over(self, now_s: float) -> bool:
        """Return whether the problem has expired."""
        return now_s - self.begun_s > HOLD_S and now_s - self.last_s > ENDED_S


class ProblemLog:
    """
    Problems, gravest first; reported by one thread, read by any.

    A problem is shown for at least `HOLD_S` after its first report, and until `ENDED_S` after its
    last one. So a problem that has lasted disappears soon after it was solved.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: dict[tuple[str, str], _Told] = {}
        self._counts: Counter[str] = Counter()

    def report(self, now_s: float, grave: int, problem: SensorProblem) -> None:
        """Record a problem; current problems are sorted by descending `grave`."""
        with self._lock:
            key = problem.code, problem.subject
            told = self._recent.get(key)
            begun_s = now_s if told is None or told.over(now_s) else told.begun_s
            self._recent[key] = _Told(begun_s, now_s, grave, problem)
            self._counts[problem.code] += 1

    def withdraw(self, code: str, subject: str) -> None:
        """Remove a problem that turned out to be another one; its count is kept."""
        with self._lock:
            self._recent.pop((code, subject), None)

    def now(self, now_s: float) -> tuple[SensorProblem, ...]:
        """Return the problems that have not expired."""
        with self._lock:
            for key in [key for key, told in self._recent.items() if told.over(now_s)]:
                del self._recent[key]
            recent = sorted(
                self._recent.values(), key=lambda told: (-told.grave, told.problem.subject)
            )
        return tuple(told.problem for told in recent)

    def counts(self) -> dict[str, str]:
        """Return the number of reports of each problem code, for diagnostics."""
        with self._lock:
            return {f'count {code}': str(n) for code, n in sorted(self._counts.items())}
