"""A control loop that moves while the supervisor allows it, from where the actuators stand."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.loop import Loop, Phase

# Share of an actuator's range within which it stands where it was.
STANDING = 0.05
# Share of it by which an actuator that is held never lags behind its command.
LET_GO = 0.2


class PermittedLoop:
    """
    Starts, holds and goes on as the supervisor allows.

    A start after the end of the trajectory, or where the actuators stand far from the command
    (their driver was restarted, or let them go while the arm was held), drives it from its
    beginning, from the posture that the actuators report.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.allowed = False
        self.actuators: Array | None = None  # as reported last
        self._jumped = False

    def on_actuators(self, position: Array) -> None:
        """Take the reported position of the actuators (m,); one that is not finite is left out."""
        if not np.isfinite(position).all():
            return
        # No actuator moves that far between two messages: its driver was restarted.
        self._jumped = self._jumped or self._far_from(position)
        self.actuators = position

    def follow(self, allowed: bool, now_s: float) -> None:
        """Take the supervisor's word."""
        rising, self.allowed = allowed and not self.allowed, allowed
        loop = self.loop
        self._jumped = self._jumped or (rising and self._far_from(loop.tracker.actuation, LET_GO))
        if rising and (self._jumped or loop.phase in (Phase.IDLE, Phase.DONE)):
            self._take_over()
            loop.start(now_s)
        elif rising:
            loop.resume(now_s)
        elif not allowed:
            loop.hold(now_s)

    def _far_from(self, position: Array, share: float = STANDING) -> bool:
        """Return whether an actuator stands a share of its range from a position (m,)."""
        limits = self.loop.limits
        tolerance = share * (limits.position_max - limits.position_min)
        return self.actuators is not None and bool(
            (np.abs(self.actuators - position) > tolerance).any()
        )

    def _take_over(self) -> None:
        """Begin where the actuators stand: after a restart not where the loop believes."""
        restarted = self._jumped or self.loop.phase is Phase.IDLE
        self._jumped = False
        if self.actuators is None or not restarted:
            return
        if self._far_from(self.loop.tracker.actuation):
            self.loop.take_over(self.actuators)
