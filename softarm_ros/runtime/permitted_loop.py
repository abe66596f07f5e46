"""A control loop that moves only with the supervisor's permission."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from softarm_ros.control.start_jump import JUMP, start_jump
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase, PoseSample
from softarm_ros.runtime.part_failure import FAILURES, FailureWords

# Shares of an actuator's range. Error of a measurement: this close to a position, it stands there.
STANDING = 0.02
# More than a held actuator lags behind its command.
LET_GO = 0.2
SETTLED_S = 0.5  # a held actuator that stands for this long moves no more by itself


class PermittedLoop:
    """
    Starts, holds and resumes a loop as the supervisor permits.

    The loop starts from its beginning, at the posture that the actuators report, after the end of
    the trajectory, if the actuators stand far from the command (this loop or their driver was
    restarted, or the driver released them while the arm was held), or if held actuators have moved
    after they had come to rest (the driver has homed them). The command is set before motion is
    allowed, so a driver that receives the permission first does not follow an old one.

    Attributes
    ----------
    refusal : str
        Why the loop stands although motion is allowed: which part (the model or another) refuses
        or has failed. Empty otherwise. Cleared when the permission ends: the next one is a new
        attempt.

    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.allowed = False
        self.actuators: Array | None = None  # last reported positions
        self.refusal = ''
        self._output: CycleOutput | None = None  # the last one
        self._failure = FailureWords()
        self._refused_now = False  # since the last cycle
        self._jumped = False
        self._taken: Array | None = None  # positions that were last taken over
        self._now_s = 0.0
        self._stood: Array | None = None  # where held actuators came to rest
        # Until then: since when they are about there, and where.
        self._rest: tuple[float, Array] | None = None

    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """
        Run a cycle of the loop; if a part refuses or fails, stand and keep the reason.

        The command is still sent, unchanged: the supervisor then learns the reason from `refusal`,
        rather than from missing commands.
        """
        self._now_s = now_s
        try:
            self._output = self.loop.cycle(now_s, pose)
            if not (self.allowed or self._refused_now):
                self.refusal = ''  # the refusal ended before motion was allowed
            self._refused_now = False
        except FAILURES as error:
            self.refuse(error, now_s)
            last = self._standing() if self._output is None else self._output
            self._output = replace(last, stamp_s=now_s, phase=self.loop.phase, events=())
        return self._output

    def refuse(self, error: BaseException, now_s: float) -> None:
        """Stand because a part has refused or failed; keep the reason in `refusal`."""
        self.refusal = self.refusal or f'cannot go on: {self._failure.of(error)}'
        self._refused_now = True
        self.loop.hold(now_s)

    @contextmanager
    def refusing(self, now_s: float) -> Iterator[None]:
        """Refuse on any exception in a block that calls parts outside the cycle."""
        try:
            yield
        except FAILURES as error:
            self.refuse(error, now_s)

    def _standing(self) -> CycleOutput:
        """Return the tracker's command, before the first cycle."""
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
        """Take the reported positions of the actuators (m,); ignore them if not finite."""
        if not np.isfinite(position).all():
            return
        # More than an actuator moves between two messages: its driver was restarted, or its
        # positions were set anew.
        share = JUMP if self.allowed else STANDING
        self._jumped = self._jumped or self._apart(position, self.actuators, share)
        self.actuators = position
        if not self.allowed:
            self._note_rest(position)
            self._take_over()

    def follow(self, allowed: bool, now_s: float) -> None:
        """Take the supervisor's permission, or its end."""
        rising, self.allowed = allowed and not self.allowed, allowed
        self._now_s = now_s
        loop = self.loop
        if rising:
            if self._jumped or loop.phase in (Phase.IDLE, Phase.DONE):
                loop.start(now_s)
            else:
                loop.resume(now_s)
            self._jumped, self._taken = False, None
            self._stood = self._rest = None
        elif not allowed:
            self.refusal = ''
            loop.hold(now_s)
            self._take_over()

    def displaced(self) -> str:
        """Return why an actuator would jump at the start, or ''."""
        position, loop = self.actuators, self.loop
        starts = not self.allowed and (self._jumped or loop.phase is Phase.IDLE)
        if position is None or not starts:
            return ''
        tracker = loop.tracker
        jump = start_jump(loop.limits, position, tracker.actuation, tracker.pretension.amount)
        return jump and f'{jump}; home the arm at rest, or correct the rig file'

    def _apart(self, position: Array, other: Array | None, share: float) -> bool:
        """Return whether positions (m,) differ by more than a share of an actuator's range."""
        limits = self.loop.limits
        tolerance = share * (limits.position_max - limits.position_min)
        return other is not None and bool((np.abs(other - position) > tolerance).any())

    def _note_rest(self, position: Array) -> None:
        """Note where held actuators (m,) come to rest, and whether they have moved since then."""
        if self._stood is not None:
            self._jumped = self._jumped or self._apart(position, self._stood, JUMP)
        elif self._rest is None or self._apart(position, self._rest[1], STANDING):
            self._rest = self._now_s, position
        elif self._now_s - self._rest[0] >= SETTLED_S:
            self._stood = position

    def _take_over(self) -> None:
        """Set the command to the actuators' positions if they have jumped or the loop is idle."""
        position, loop = self.actuators, self.loop
        if position is None:
            return
        command = loop.tracker.actuation
        self._jumped = self._jumped or self._apart(position, command, LET_GO)
        if not (self._jumped or loop.phase is Phase.IDLE):
            return
        # Once: these positions may be no valid command, for example beyond the limits.
        taken = self._taken is not None and not self._apart(position, self._taken, STANDING)
        if not taken and self._apart(position, command, STANDING):
            self._taken = position
            loop.take_over(position)
