"""True tip positions of a simulated arm, for reports; nothing that moves the arm uses them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from softarm_ros.geometry.arrays import Array


class TrueTips:
    """Collects true tip positions as they arrive, and looks them up by time afterwards."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, Array]] = deque()

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, rows: Iterable[tuple[float, Array]]) -> None:
        """Take positions (3,) [m] with their times [s]."""
        self._rows.extend(rows)

    def forget_before(self, time_s: float) -> None:
        """Drop the positions that came before the first one of a time [s] or later."""
        while self._rows and self._rows[0][0] < time_s:
            self._rows.popleft()

    def at(self, times_s: Array) -> Array:
        """
        Return the positions (n, 3) [m] at times (n,), interpolated; NaN outside those recorded.

        The exposure times of the cameras are recorded, so each measurement meets its exact truth.
        """
        if not self._rows:
            return np.full((len(times_s), 3), np.nan)
        rows = sorted(self._rows, key=lambda row: row[0])
        known = np.array([time for time, _ in rows])
        positions = np.array([position for _, position in rows])
        return np.stack(
            [
                np.interp(times_s, known, positions[:, k], left=np.nan, right=np.nan)
                for k in range(3)
            ],
            axis=1,
        )
