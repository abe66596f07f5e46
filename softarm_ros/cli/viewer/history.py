"""History of the last seconds of a run, for plots."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.view_state import ViewState


class Columns(NamedTuple):
    """
    Plotted quantities over times (n,) [s, the newest is 0]; NaN for unknown values.

    `error` [mm] and `latency` [ms] are (1, n), `command`, `measured` and `effort` of the actuators
    (m, n), `configuration` (dof, n).
    """

    times: Array
    error: Array
    latency: Array
    command: Array
    measured: Array
    effort: Array
    configuration: Array


class History:
    """
    Error, latency, actuators and configuration of the last states, evenly thinned.

    Parameters
    ----------
    actuators, coordinates : int
        Number of actuators, and of coordinates of the configuration.
    span_s, step_s : float
        Length of the history, and least time between states [s].

    """

    def __init__(
        self, actuators: int, coordinates: int = 0, *, span_s: float = 30.0, step_s: float = 0.1
    ) -> None:
        self._span_s, self._step_s = span_s, step_s
        self._sizes = (1, 1, actuators, actuators, actuators, coordinates)
        self._rows: deque[tuple[float, Array]] = deque(maxlen=round(span_s / step_s))

    def add(self, now_s: float, state: ViewState) -> bool:
        """Add a state unless the last one is too recent; return whether it was added."""
        if self._rows and now_s < self._rows[-1][0] + self._step_s - 1e-9:
            if now_s >= self._rows[-1][0]:
                return False
            self._rows.clear()  # time went back: another run, or a bag
        while self._rows and self._rows[0][0] <= now_s - self._span_s + 1e-9:
            self._rows.popleft()  # states come late, or none came for a while
        values = (
            None if state.error_m is None else np.array([1e3 * state.error_m]),
            None if state.latency_ms is None else np.array([state.latency_ms]),
            state.command,
            state.position,
            state.effort,
            state.configuration,
        )
        row = [
            np.full(size, np.nan) if value is None or len(value) != size else value
            for size, value in zip(self._sizes, values)
        ]
        self._rows.append((now_s, np.concatenate(row, dtype=float)))
        return True

    def columns(self) -> Columns:
        """Return the columns to plot."""
        times = np.array([time for time, _ in self._rows])
        rows = np.array([row for _, row in self._rows]).reshape(len(times), sum(self._sizes)).T
        parts = np.split(rows, np.cumsum(self._sizes)[:-1])
        return Columns(times - times[-1] if len(times) else times, *parts)
