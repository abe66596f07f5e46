"""Statistics of durations in constant memory."""

from __future__ import annotations

import math

import numpy as np

_LOW_MS, _HIGH_MS, _BINS_PER_DECADE = 1e-3, 1e5, 200


class DurationHistogram:
    """Counts durations [ms] in logarithmic bins of 1.2 %; its memory does not grow."""

    def __init__(self) -> None:
        decades = np.log10(_HIGH_MS / _LOW_MS)
        self._counts = np.zeros(round(decades * _BINS_PER_DECADE) + 1, dtype=np.int64)
        self._max = 0.0

    def add(self, duration_ms: float) -> None:
        """Count one duration; negative ones count as the shortest."""
        position = math.log10(max(duration_ms, _LOW_MS) / _LOW_MS) * _BINS_PER_DECADE
        self._counts[min(int(position), len(self._counts) - 1)] += 1
        self._max = max(self._max, duration_ms)

    @property
    def count(self) -> int:
        """Number of durations added."""
        return int(self._counts.sum())

    @property
    def max(self) -> float:
        """The longest duration [ms]."""
        return self._max

    def percentile(self, percent: float) -> float:
        """Return a percentile [ms], accurate to 1.2 %; NaN if no duration was added."""
        cumulative = np.cumsum(self._counts)
        if cumulative[-1] == 0:
            return float('nan')
        i = int(np.searchsorted(cumulative, percent / 100.0 * cumulative[-1]))
        return float(_LOW_MS * 10.0 ** ((i + 0.5) / _BINS_PER_DECADE))

    def text(self) -> str:
        """Return 'p50 p99 max' [ms] for diagnostics."""
        if self.count == 0:
            return ''
        return f'{self.percentile(50):.3f} {self.percentile(99):.3f} {self.max:.3f}'


class Lateness:
    """Keeps the longest delay since the start, and that of the last one to two seconds."""

    _WINDOW_S = 1.0

    def __init__(self) -> None:
        self._longest_s = self._now_s = self._before_s = 0.0
        self._window_s = 0.0  # when the present window began

    def note(self, at_s: float, late_s: float) -> None:
        """Note a delay [s] at a monotonic time [s]."""
        self._turn(at_s)
        self._now_s = max(self._now_s, late_s)
        self._longest_s = max(self._longest_s, late_s)

    def recent_s(self, at_s: float) -> float:
        """Return the longest delay [s] of the last one to two seconds."""
        self._turn(at_s)
        return max(self._now_s, self._before_s)

    def values(self, at_s: float) -> dict[str, str]:
        """Return both delays [ms] for diagnostics."""
        return {
            'late_ms': f'{1e3 * self.recent_s(at_s):.0f}',
            'longest_pause_ms': f'{1e3 * self._longest_s:.0f}',
        }

    def _turn(self, at_s: float) -> None:
        if at_s - self._window_s < self._WINDOW_S:
            return
        recent = at_s - self._window_s < 2.0 * self._WINDOW_S
        self._before_s, self._now_s = self._now_s if recent else 0.0, 0.0
        self._window_s = at_s
