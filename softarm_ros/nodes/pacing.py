"""Keeps simulated time in pace with the wall clock, and says when that fails."""

from __future__ import annotations

_BACKLOG_S = 0.1  # wall clock
_WINDOW_S = 1.0  # wall clock


class Pacer:
    """
    Simulated time `rate` times as fast as the wall clock.

    A backlog of more than a tenth of a second is not caught up (the arm would race): it is given
    up, and counted in `lost_s` [wall s]. `achieved` is the speed of the last second.
    """

    def __init__(self, rate: float, simulated_s: float, wall_s: float) -> None:
        self.rate = rate
        self.achieved = rate
        self.lost_s = 0.0
        self._simulated, self._wall = simulated_s, wall_s
        self._window = (simulated_s, wall_s)

    def target(self, wall_s: float, simulated_s: float) -> float:
        """Return the simulated time [s] to reach at a wall time, having reached `simulated_s`."""
        target = self._simulated + (wall_s - self._wall) * self.rate
        backlog = (target - simulated_s) / self.rate
        if backlog > _BACKLOG_S:
            self.lost_s += backlog
            self._simulated, self._wall = simulated_s, wall_s
            return simulated_s
        return target

    def measure(self, wall_s: float, simulated_s: float) -> bool:
        """Update `achieved` once a second; return whether it was."""
        simulated, wall = self._window
        if wall_s - wall < _WINDOW_S:
            return False
        self.achieved = (simulated_s - simulated) / (wall_s - wall)
        self._window = (simulated_s, wall_s)
        return True


class Lockstep:
    """
    Off real time, lets the plant wait for the controller, so that both see the same periods.

    A controller paced by poses answers each pose with a command of the same time stamp: soon after
    a pose the plant waits for that. Otherwise it waits when more than a period has passed since
    the command was computed. No wait is longer than `patience_s` [wall s]; watchdogs do the rest.
    Times are simulated, in ns, if not said otherwise.
    """

    _AFTER_POSE = 0.25  # periods
    _AFTER_COMMAND = 1.35  # later than the tracker's own patience with poses
    _SOON = 0.75

    def __init__(self, period_s: float, patience_s: float) -> None:
        self._after_pose = round(1e9 * period_s * self._AFTER_POSE)
        self._after_command = round(1e9 * period_s * self._AFTER_COMMAND)
        self._soon = round(1e9 * period_s * self._SOON)
        self._patience_s = patience_s
        self._pose: tuple[int, int] | None = None  # newest: when published, stamp
        self._answered = True
        self._pose_paced = False
        self._command: int | None = None
        self._waiting_since: float | None = None  # wall s

    def on_pose(self, now: int, stamp: int) -> None:
        """A pose was published."""
        self._pose = (now, stamp)
        # One that comes soon after a command may have to wait for the next cycle.
        self._answered = self._command is not None and now - self._command < self._soon

    def on_command(self, now: int, stamp: int) -> bool:
        """A command has come; return whether the plant was waiting."""
        if self._pose is not None and stamp >= self._pose[1]:
            self._pose_paced = stamp == self._pose[1]
            self._answered = True
        # A stamp newer than any pose is the time the command was computed at.
        if self._pose is None or stamp > self._pose[1]:
            self._command = stamp
        else:
            self._command = min(now, self._pose[0])
        waiting, self._waiting_since = self._waiting_since is not None, None
        return waiting

    def must_wait(self, now: int, wall_s: float) -> bool:
        """Return whether simulated time has to stand still for now."""
        if not self._is_due(now):
            self._waiting_since = None
            return False
        if self._waiting_since is None:
            self._waiting_since = wall_s
        if wall_s - self._waiting_since <= self._patience_s:
            return True
        self._answered = True  # do not wait again for the same
        return False

    @property
    def for_answer(self) -> bool:
        """Whether what is waited for is the answer to a pose, not the next tick of a timer."""
        return self._pose_paced and self._pose is not None and not self._answered

    def _is_due(self, now: int) -> bool:
        if self._command is None:
            return False
        if self._pose is not None and self.for_answer:
            return now - self._pose[0] >= self._after_pose
        return now - self._command >= self._after_command
