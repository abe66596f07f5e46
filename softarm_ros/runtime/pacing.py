"""Keep simulated time in pace with the wall clock."""

from __future__ import annotations

import numpy as np

_BACKLOG_S = 0.1  # wall clock
_WINDOW_S = 1.0  # wall clock


class Pacer:
    """
    Runs simulated time `rate` times as fast as the wall clock, from the first call of `target`.

    A backlog of more than a tenth of a second is not caught up (the arm would race): it is
    dropped and added to `lost_s` [wall s]. `achieved` is the rate of the last second.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.achieved = rate
        self.lost_s = 0.0
        # Set on the first call: the wait until a node's executor first runs is no backlog.
        self._began: tuple[float, float] | None = None  # simulated, wall
        self._window = (0.0, np.inf)

    def target(self, wall_s: float, simulated_s: float) -> float:
        """Return the simulated time [s] to reach at a wall time [s], from `simulated_s`."""
        if self._began is None:
            self._began = self._window = (simulated_s, wall_s)
        target = self._began[0] + (wall_s - self._began[1]) * self.rate
        backlog = (target - simulated_s) / self.rate
        if backlog > _BACKLOG_S:
            self.lost_s += backlog
            self._began = (simulated_s, wall_s)
            return simulated_s
        return target

    def measure(self, wall_s: float, simulated_s: float) -> bool:
        """Update `achieved` once a second; return whether it was updated."""
        simulated, wall = self._window
        if wall_s - wall < _WINDOW_S:
            return False
        self.achieved = (simulated_s - simulated) / (wall_s - wall)
        self._window = (simulated_s, wall_s)
        return True
