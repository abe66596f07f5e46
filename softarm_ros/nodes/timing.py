"""Statistics of durations that cost nothing to keep."""

from __future__ import annotations

import numpy as np

_LOW_MS, _HIGH_MS, _BINS_PER_DECADE = 1e-3, 1e5, 200


class DurationHistogram:
    """Counts durations [ms] in logarithmic bins of 1.2 %; add and percentile need no memory."""

    def __init__(self) -> None:
        decades = np.log10(_HIGH_MS / _LOW_MS)
        self._counts = np.zeros(round(decades * _BINS_PER_DECADE) + 1, dtype=np.int64)
        self._max = 0.0

    def add(self, duration_ms: float) -> None:
        """Count one duration; negative ones count as the shortest."""
        position = np.log10(max(duration_ms, _LOW_MS) / _LOW_MS) * _BINS_PER_DECADE
        self._counts[min(int(position), len(self._counts) - 1)] += 1
        self._max = max(self._max, duration_ms)

    @property
    def count(self) -> int:
        """How many were added."""
        return int(self._counts.sum())

    @property
    def max(self) -> float:
        """The longest [ms]."""
        return self._max

    def percentile(self, percent: float) -> float:
        """Return a percentile [ms], NaN if nothing was added; good to 1.2 %."""
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
