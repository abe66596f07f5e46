"""Where the tip of a simulated arm truly was, for reports; nothing that moves the arm has it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from softarm_ros.geometry.arrays import Array


class TrueTips:
    """True tip positions as they come in, looked up by time afterwards."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, Array]] = []

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, rows: Iterable[tuple[float, Array]]) -> None:
        """Take positions (3,) [m] with their times [s]."""
        self._rows.extend(rows)

    def at(self, times_s: Array) -> Array:
        """
        Return the positions (n, 3) [m] at times (n,), interpolated; NaN before and after all.

        Times of exposures are among those taken, so that what was measured meets its own truth.
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
