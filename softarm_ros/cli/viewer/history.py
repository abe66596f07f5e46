"""The last seconds of a run, for plots."""

from __future__ import annotations

from collections import deque

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.view_state import ViewState


class History:
    """
    Error, latency and actuators of the last states, evenly thinned out.

    Parameters
    ----------
    actuators : int
        How many there are.
    span_s, step_s : float
        How far back it goes, and how far apart states are at least.

    """

    def __init__(self, actuators: int, span_s: float = 30.0, step_s: float = 0.1) -> None:
        self._step_s = step_s
        self._actuators = actuators
        self._rows: deque[tuple[float, Array]] = deque(maxlen=round(span_s / step_s))

    def add(self, now_s: float, state: ViewState) -> bool:
        """Take a state if it is time for one; return whether it was taken."""
        if self._rows and now_s < self._rows[-1][0] + self._step_s - 1e-9:
            if now_s >= self._rows[-1][0]:
                return False
            self._rows.clear()  # time went back: another run, or a bag
        unknown = np.full(self._actuators, np.nan)
        row = [
            np.nan if state.error_m is None else 1e3 * state.error_m,
            np.nan if state.latency_ms is None else state.latency_ms,
            *(unknown if state.command is None else state.command),
        ]
        self._rows.append((now_s, np.array(row, dtype=float)))
        return True

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Return times (n,) [s, the newest 0], errors [mm], latencies [ms], commands (m, n)."""
        if not self._rows:
            empty = np.zeros(0)
            return empty, empty, empty, np.zeros((self._actuators, 0))
        times = np.array([time for time, _ in self._rows])
        values = np.array([row for _, row in self._rows]).T
        return times - times[-1], values[0], values[1], values[2:]
