"""Timing of work triggered by poses; off real time, alternation of plant and control loop."""

from __future__ import annotations

# Poses trigger a cycle or a verdict. Both in its periods: a pose earlier than EARLY after the last
# one does not trigger the next; after LATE it runs without a pose.
EARLY, LATE = 0.75, 1.3
_REMEMBERED = 100  # unanswered poses; a loop uses no older ones
_LONGEST_LOOK_S = 0.02  # wall clock, between two looks of a process that is not delayed


def control_tick(now_ns: int, period_ns: int) -> int:
    """Return the number of control periods that have passed at a simulated time [ns]."""
    return (now_ns + period_ns // 1000) // period_ns


class Lockstep:
    """
    Alternates plant and controller off real time: a period of the plant, a cycle of the loop.

    At the beginning of each control period the plant publishes its poses and /clock, which trigger
    a cycle, and waits for the command of that cycle. So the loop sees the same periods at any
    speed, and a slow process never exceeds a limit on simulated time. A command answers a period
    if it has the time stamp of the period's beginning or of a pose without an answer so far: a
    pose that reaches the loop late is used in a later cycle.

    A wait lasts at most `patience_s` [wall s]. If no controller answers, simulated time runs on
    until one does, and the limits of the arm report it. Pauses of the waiting process itself do
    not count, since the controller may run in the same process. Simulated times are in ns.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._now: int | None = None
        self._poses: set[int] = set()  # stamps of poses that no command has answered
        self._answered = True
        self._controlled = False  # whether a controller answers at all
        self._waited_s = 0.0  # wall clock
        self._looked_s: float | None = None  # wall clock

    def on_pose(self, stamp: int) -> None:
        """Note the stamp of a published pose."""
        self._poses.add(stamp)
        if len(self._poses) > _REMEMBERED:  # no controller answers
            self._poses.remove(min(self._poses))

    def on_tick(self, now: int) -> None:
        """Begin a control period, after its poses were published."""
        self._now = now
        self._answered = False
        self._waited_s, self._looked_s = 0.0, None

    def on_command(self, stamp: int) -> bool:
        """Take the stamp of a command; return whether the plant waited for it and may go on."""
        waited = self.waiting
        if not self._controlled:  # time ran freely, so the command belongs to an unknown period
            self._controlled = self._answered = True
        elif stamp in self._poses:  # from now on the loop uses no pose older than this one
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
        """Return whether simulated time must stand still at a wall clock time [s]."""
        if not self.waiting:
            return False
        if self._looked_s is not None:
            self._waited_s += min(wall_s - self._looked_s, _LONGEST_LOOK_S)
        self._looked_s = wall_s
        if self._waited_s <= self._patience_s:
            return True
        self._controlled = False
        return False
