"""What is wrong with a sensor now: problems that are forgotten when they no longer come up."""

from __future__ import annotations

import threading
from collections import Counter

from softarm_ros.perception.sensor import SensorProblem

HOLD_S = 3.0  # of something that came up once, so that who looks once a second sees it


class ProblemLog:
    """Problems of the last `HOLD_S`, gravest first; reported by one thread, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: dict[tuple[str, str], tuple[float, int, SensorProblem]] = {}
        self._counts: Counter[str] = Counter()

    def report(self, now_s: float, grave: int, problem: SensorProblem) -> None:
        """Note a problem; of those that last, the one with the greatest `grave` comes first."""
        with self._lock:
            self._recent[problem.code, problem.subject] = (now_s, grave, problem)
            self._counts[problem.code] += 1

    def withdraw(self, code: str, subject: str) -> None:
        """Forget what turned out to be something else; it stays in the counts."""
        with self._lock:
            self._recent.pop((code, subject), None)

    def now(self, now_s: float) -> tuple[SensorProblem, ...]:
        """Return what was reported within `HOLD_S`."""
        with self._lock:
            for key in [k for k, (t, _, _) in self._recent.items() if now_s - t > HOLD_S]:
                del self._recent[key]
            recent = sorted(self._recent.values(), key=lambda entry: (-entry[1], entry[2].subject))
        return tuple(problem for _, _, problem in recent)

    def counts(self) -> dict[str, str]:
        """Return how often each problem was reported, by code, for diagnostics."""
        with self._lock:
            return {f'count {code}': str(n) for code, n in sorted(self._counts.items())}
