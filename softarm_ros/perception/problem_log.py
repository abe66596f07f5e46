"""What is wrong with a sensor now: problems that are forgotten when they no longer come up."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from softarm_ros.perception.sensor import SensorProblem

HOLD_S = 3.0  # from when something came up, so that who looks once a second sees it
ENDED_S = 1.0  # from when it last came up; not every frame is judged


@dataclass(frozen=True)
class _Told:
    """A problem, and when it first and last came up [s]."""

    begun_s: float
    last_s: float
    grave: int
    problem: SensorProblem

    def over(self, now_s: float) -> bool:
        """Return whether it need not be told any more."""
        return now_s - self.begun_s > HOLD_S and now_s - self.last_s > ENDED_S


class ProblemLog:
    """
    Problems, gravest first; reported by one thread, read by any.

    A problem is told for `HOLD_S` from when it came up, and until it has not come up again for
    `ENDED_S`: one that has lasted is over soon after it was mended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: dict[tuple[str, str], _Told] = {}
        self._counts: Counter[str] = Counter()

    def report(self, now_s: float, grave: int, problem: SensorProblem) -> None:
        """Note a problem; of those that last, the one with the greatest `grave` comes first."""
        with self._lock:
            key = problem.code, problem.subject
            told = self._recent.get(key)
            begun_s = now_s if told is None or told.over(now_s) else told.begun_s
            self._recent[key] = _Told(begun_s, now_s, grave, problem)
            self._counts[problem.code] += 1

    def withdraw(self, code: str, subject: str) -> None:
        """Forget what turned out to be something else; it stays in the counts."""
        with self._lock:
            self._recent.pop((code, subject), None)

    def now(self, now_s: float) -> tuple[SensorProblem, ...]:
        """Return what is wrong, or was a moment ago."""
        with self._lock:
            for key in [key for key, told in self._recent.items() if told.over(now_s)]:
                del self._recent[key]
            recent = sorted(
                self._recent.values(), key=lambda told: (-told.grave, told.problem.subject)
            )
        return tuple(told.problem for told in recent)

    def counts(self) -> dict[str, str]:
        """Return how often each problem was reported, by code, for diagnostics."""
        with self._lock:
            return {f'count {code}': str(n) for code, n in sorted(self._counts.items())}
