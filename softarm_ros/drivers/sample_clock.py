"""Time stamps of hardware-clocked samples, on the clock of this computer."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array

MAX_DRIFT = 2e-4  # relative drift of two quartz clocks, with a margin


class SampleClock:
    """
    Computes the time stamps of samples from their numbers.

    A block can only be read after its last sample was taken. So the earliest arrivals, relative to
    the sample number, bound the offset between the clocks from above; the start of the task bounds
    it from below. The offset follows the upper bound and rises with the greatest drift of quartz
    clocks. Thus the jitter of reading does not affect the stamps.
    """

    def __init__(self, rate_hz: float, before_start_s: float, after_start_s: float) -> None:
        self._rate_hz = rate_hz
        self._earliest = before_start_s
        self._started = after_start_s
        self._offset = after_start_s
        self._arrival = after_start_s
        self._last = -np.inf
        self.count = 0

    def stamp(self, count: int, arrival_s: float) -> Array:
        """Return the time stamps [s] of the next `count` samples, (count,), never decreasing."""
        self._offset += MAX_DRIFT * max(arrival_s - self._arrival, 0.0)
        self._arrival = arrival_s
        newest = (self.count + count - 1) / self._rate_hz
        self._offset = min(self._offset, arrival_s - newest)
        # Greatest drift between the two clocks since the start.
        drift = MAX_DRIFT * max(arrival_s - self._started, 0.0)
        self._offset = max(self._offset, self._earliest - drift)
        stamps = self._offset + (self.count + np.arange(count)) / self._rate_hz
        stamps = np.maximum(stamps, self._last)
        self._last = float(stamps[-1])
        self.count += count
        return stamps
