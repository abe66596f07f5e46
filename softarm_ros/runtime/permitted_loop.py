"""A control loop that moves while the supervisor allows it, from where the actuators stand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase, PoseSample
from softarm_ros.runtime.part_failure import FailureWords

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
        Why the loop stands though it is allowed to move: what its model or another part refuses,
        or which part has failed. Empty where it does not. It ends with the permission: the next
        one is a new attempt.

    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.allowed = False
        self.actuators: Array | None = None  # as reported last
        self.refusal = ''
        self._output: CycleOutput | None = None  # the last one
        self._failure = FailureWords()
        self._refused_now = False  # since the last cycle
        self._jumped = False
        self._taken: Array | None = None  # where they stood when they were taken over last

    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """
        Run a cycle of the loop; where a part refuses or fails, stand and keep the reason.

        The command goes on as it was: who has to stop the arm learns why from `refusal`, and not
        from commands that do not come any more.
        """
        try:
            self._output = self.loop.cycle(now_s, pose)
            if not (self.allowed or self._refused_now):
                self.refusal = ''  # it was over before anybody let the arm move
            self._refused_now = False
        except Exception as error:  # whatever code of another package raises
            self.refuse(error, now_s)
            last = self._standing() if self._output is None else self._output
            self._output = replace(last, stamp_s=now_s, phase=self.loop.phase, events=())
        return self._output

    def refuse(self, error: Exception, now_s: float) -> None:
        """Stand, for a part has refused or failed; the reason is kept in `refusal`."""
        self.refusal = self.refusal or f'cannot go on: {self._failure.of(error)}'
        self._refused_now = True
        self.loop.hold(now_s)

    @contextmanager
    def refusing(self, now_s: float) -> Iterator[None]:
        """Refuse what goes wrong in a block that asks parts beside the cycle."""
        try:
            yield
        except Exception as error:  # as in the cycle
            self.refuse(error, now_s)

    def _standing(self) -> CycleOutput:
        """Return the command as the tracker has it, before the first cycle."""
        loop = self.loop
        tip = loop.tracker.tip()
        return CycleOutput(
            stamp_s=0.0,
            phase=loop.phase,
            lap=0,
            progress=0.0,
            reference_position=tip,
            configuration=loop.tracker.configuration,
            actuation=loop.tracker.actuation,
            error_m=float('nan'),
            matched_reference=tip,
            events=(),
        )

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
