"""What poses set off, and when; off real time, periods that plant and loop take in turns."""

from __future__ import annotations

# In periods of what poses set off, a cycle or a verdict: a pose this soon after one waits for the
# next; after the second it is done without a pose.
EARLY, LATE = 0.75, 1.3
_REMEMBERED = 100  # poses without an answer; a loop uses none that is so old
_LONGEST_LOOK_S = 0.02  # wall clock, between two looks of a process that is not kept from them


def control_tick(now_ns: int, period_ns: int) -> int:
    """Return the number of control periods that have passed at a simulated time [ns]."""
    return (now_ns + period_ns // 1000) // period_ns


class Lockstep:
    """
    Off real time, plant and controller take turns: a period of the plant, a cycle of the loop.

    At the beginning of each control period the plant publishes its poses and /clock, and waits
    for the command of the cycle that this sets off. So the loop sees the same periods at any
    speed, and no limit on simulated time passes because a process was slow. A command answers a
    period if it has the time stamp of its beginning, or of a pose that none has answered yet: a
    pose that reaches the loop late is used in a later cycle.

    A wait is no longer than `patience_s` [wall s]: where nobody answers, simulated time goes on
    until somebody does, and the arm's limits show it. What the waiting process was itself kept
    from its work does not count: who should answer may be in it. Simulated times are in ns.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._now: int | None = None
        self._poses: set[int] = set()  # that no command has answered
        self._answered = True
        self._controlled = False  # whether somebody answers at all
        self._waited_s = 0.0  # wall clock
        self._looked_s: float | None = None  # wall clock

    def on_pose(self, stamp: int) -> None:
        """A pose was published."""
        self._poses.add(stamp)
        if len(self._poses) > _REMEMBERED:  # nobody answers
            self._poses.remove(min(self._poses))

    def on_tick(self, now: int) -> None:
        """A control period begins; its poses were published."""
        self._now = now
        self._answered = False
        self._waited_s, self._looked_s = 0.0, None

    def on_command(self, stamp: int) -> bool:
        """A command has come; return whether the plant may go on now."""
        waited = self.waiting
        if not self._controlled:  # time ran freely: its period is unknown
            self._controlled = self._answered = True
        elif stamp in self._poses:  # the loop uses none older than that any more
            self._poses = {pose for pose in self._poses if pose > stamp}
            self._answered = True
        elif stamp == self._now:
            self._answered = True
        return waited and self._answered

    @property
    def waiting(self) -> bool:
        """Whether simulated time stands still for an answer."""
        return self._controlled and not self._answered

    def must_wait(self, wall_s: float) -> bool:
        """Return whether simulated time has to stand still for now."""
        if not self.waiting:
            return False
        if self._looked_s is not None:
            self._waited_s += min(wall_s - self._looked_s, _LONGEST_LOOK_S)
        self._looked_s = wall_s
        if self._waited_s <= self._patience_s:
            return True
        self._controlled = False
        return False
