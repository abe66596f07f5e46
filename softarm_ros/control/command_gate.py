"""The watchdog on the driver's side: decides which commands may reach the motors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.geometry.arrays import Array


class CommandGate:
    """
    Lets a command through only while it is valid, fresh and permitted by a live supervisor.

    Every driver has its own gate and relies on no other process to stop the arm. Times are
    seconds of one monotonic clock. A simulation that does not run in real time measures the age of
    commands on its own clock, but the age of the permission, which comes from another process, on
    the wall clock.
    """

    def __init__(
        self, limits: ActuatorLimits, command_timeout_s: float, permit_timeout_s: float
    ) -> None:
        self.limits = limits
        self.command_timeout_s = command_timeout_s
        self.permit_timeout_s = permit_timeout_s
        self._command: Array | None = None
        self._command_time = -np.inf
        self._refusal = 'no command yet'
        self._permit = False
        self._permit_time = -np.inf

    def on_command(self, now_s: float, values: Sequence[float] | Array) -> str | None:
        """Take a command (m,); return why it is refused, or None. A refusal also holds the arm."""
        try:
            command = self.limits.check(values)
        except ValueError as error:
            self._command = None
            self._refusal = f'command refused: {error}'
            return self._refusal
        self._command, self._command_time = command, now_s
        return None

    def not_ready(self) -> str:
        """Return why no valid command has arrived yet, or '' if one has."""
        return self._refusal if np.isinf(self._command_time) else ''

    def unheard(self, now_s: float, wall_s: float | None = None) -> str:
        """Return a text if the supervisor's permission or the commands are overdue, else ''."""
        return self._silence(now_s if wall_s is None else wall_s) or self._staleness(now_s)

    def abandoned(self, wall_s: float, limit_s: float) -> str:
        """Return a text if the supervisor was heard from, but not for `limit_s` [s]; else ''."""
        silent_s = wall_s - self._permit_time
        return silence(silent_s, limit_s) if limit_s < silent_s < np.inf else ''

    @property
    def permitted(self) -> bool:
        """Whether the supervisor's last message allows motion."""
        return self._permit

    def on_permit(self, wall_s: float, allowed: bool) -> None:
        """Take the supervisor's message that allows or forbids motion."""
        self._permit, self._permit_time = bool(allowed), wall_s

    def target(self, now_s: float, wall_s: float | None = None) -> tuple[Array | None, str]:
        """Return the command (m,) to follow and '', or None (hold) and the reason."""
        if silent := self._silence(now_s if wall_s is None else wall_s):
            return None, silent
        if not self._permit:
            return None, 'motion not allowed by the supervisor'
        if self._command is None:
            return None, self._refusal
        if stale := self._staleness(now_s):
            return None, stale
        return self._command, ''

    def _silence(self, wall_s: float) -> str:
        silent_s = wall_s - self._permit_time
        if silent_s <= self.permit_timeout_s:
            return ''
        return silence(silent_s, self.permit_timeout_s)

    def _staleness(self, now_s: float) -> str:
        age = now_s - self._command_time
        if age <= self.command_timeout_s or np.isinf(self._command_time):
            return ''
        return staleness('command', age, self.command_timeout_s)


def silence(silent_s: float, limit_s: float) -> str:
    """Return a text: for how long the supervisor has been silent (inf: never heard from)."""
    if np.isinf(silent_s):
        return 'nothing received from the supervisor yet'
    return f'supervisor silent for {1e3 * silent_s:.0f} ms (limit {1e3 * limit_s:.0f} ms)'


def staleness(kind: str, age_s: float, limit_s: float) -> str:
    """Return a text: the newest message of this kind is too old."""
    return f'{kind} stale: {1e3 * age_s:.0f} ms old (limit {1e3 * limit_s:.0f} ms)'
