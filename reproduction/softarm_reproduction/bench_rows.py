"""One row of the benchmark: compiled work and its reference, measured in the same run."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class BenchRow:
    """One measured piece of work: median times [us] of one call from Python."""

    name: str
    compiled_us: float
    reference_us: float
    reference: str
    bar_us: float | None = None

    @property
    def ratio(self) -> float:
        """Return the time of the reference divided by that of the compiled work."""
        return self.reference_us / self.compiled_us

    @property
    def verdict(self) -> str:
        """Return 'pass' or 'short', or an empty text if no bar is set."""
        if self.bar_us is None:
            return ''
        return 'pass' if self.compiled_us <= self.bar_us else 'short'


def median_us(work: Callable[[], object], repeats: int) -> float:
    """
    Return the median time of one call [us], from runs of about two milliseconds.

    The CPU time of this thread is measured, so other programs on a busy computer do not count.
    """
    timer = timeit.Timer(work, timer=time.thread_time)
    once = max(timer.timeit(3) / 3.0, 1e-7)
    number = max(1, int(2e-3 / once))
    return 1e6 * float(np.median(timer.repeat(repeats, number))) / number


def require_equal(what: str, compiled: Array, reference: Array, tolerance: float) -> None:
    """Raise `AssertionError` if two versions of a result differ by more than `tolerance`."""
    difference = float(np.abs(compiled - reference).max())
    if not difference <= tolerance:
        raise AssertionError(f'{what}: compiled and plain versions differ by {difference:.3g}')
