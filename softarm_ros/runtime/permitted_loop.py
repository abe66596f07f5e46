"""A control loop that moves while the supervisor allows it, from where the actuators stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase, PoseSample

# Share of an actuator's range by which a measurement may be wrong: within it, it stands there.
STANDING = 0.02
# Share of it that no actuator moves between two messages.
JUMP = 0.05
# Share of it by which an actuator that is held never lags behind its command.
LET_GO = 0.2


class PermittedLoop:
    """
    Starts, holds and goes on as the supervisor allows.

    A start after the end of the trajectory, or where the actuators stand far from the command
    (this loop or their driver was restarted, or let them go while the arm was held), drives it
    from its beginning, from the posture that the actuators report. The command is there before
    anything may move: who hears the permission first does not follow an older one.

    Attributes
    ----------
    refusal : str
        Why the loop stands though it is allowed to move: what its model or its controller refuses.
        Empty where it does not. It ends with the permission: the next one is a new attempt.

    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.allowed = False
        self.actuators: Array | None = None  # as reported last
        self.refusal = ''
        self._output: CycleOutput | None = None  # the last one
        self._jumped = False
        self._taken: Array | None = None  # where they stood when they were taken over last

    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """
        Run a cycle of the loop; where its model or controller refuses, stand and keep the reason.

        The command goes on as it was: who has to stop the arm learns why from `refusal`, and not
        from commands that do not come any more.
        """
        loop = self.loop
        try:
            self._output = loop.cycle(now_s, pose)
        except ValueError as error:
            if self._output is None:
                raise
            self.refusal = self.refusal or f'cannot go on: {error}'
            loop.hold(now_s)
            self._output = replace(self._output, stamp_s=now_s, phase=loop.phase, events=())
        return self._output

    def on_actuators(self, position: Array) -> None:
        """Take the reported position of the actuators (m,); one that is not finite is left out."""
        if not np.isfinite(position).all():
            return
        # Their driver was restarted, or told anew where they are.
        share = JUMP if self.allowed else STANDING
        self._jumped = self._jumped or self._apart(position, self.actuators, share)
        self.actuators = position
        if not self.allowed:
            self._take_over()

    def follow(self, allowed: bool, now_s: float) -> None:
        """Take the supervisor's word."""
        rising, self.allowed = allowed and not self.allowed, allowed
        loop = self.loop
        if rising:
            if self._jumped or loop.phase in (Phase.IDLE, Phase.DONE):
                loop.start(now_s)
            else:
                loop.resume(now_s)
            self._jumped, self._taken = False, None
        elif not allowed:
            self.refusal = ''
            loop.hold(now_s)
            self._take_over()

    def _apart(self, position: Array, other: Array | None, share: float) -> bool:
        """Return whether an actuator differs by a share of its range between positions (m,)."""
        limits = self.loop.limits
        tolerance = share * (limits.position_max - limits.position_min)
        return other is not None and bool((np.abs(other - position) > tolerance).any())

    def _take_over(self) -> None:
        """Have the command where the actuators stand: after a restart not where it was."""
        position, loop = self.actuators, self.loop
        if position is None:
            return
        command = loop.tracker.actuation
        self._jumped = self._jumped or self._apart(position, command, LET_GO)
        if not (self._jumped or loop.phase is Phase.IDLE):
            return
        # Once: no command may be there, beyond the limits for example.
        taken = self._taken is not None and not self._apart(position, self._taken, STANDING)
        if not taken and self._apart(position, command, STANDING):
            self._taken = position
            loop.take_over(position)
