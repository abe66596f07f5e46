"""Sequence of pressure and vacuum of a gripper, without a device or clock of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import ConfigBlock, Delay, Finite, Timeout, WatchedPressure

Name = Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*$')]


class GripperDriveConfig(ConfigBlock):
    """A soft gripper at outputs of the DAQ: pressure closes it, vacuum opens it."""

    pressure_output: Name = Field(description='DAQ output in Pa gauge; not streamed')
    vacuum_line: Name | None = Field(default=None, description='DAQ line of the vacuum valve')
    vacuum_output: Name | None = Field(
        default=None, description='or DAQ output of the vacuum in Pa gauge, negative; not streamed'
    )
    pressure_input: Name | None = Field(
        default=None, description='DAQ input in Pa gauge; none: actions end after settle_s'
    )
    open_pressure_Pa: Finite = Field(description='gauge pressure; negative for vacuum')
    close_pressure_Pa: Finite = Field(description='gauge pressure')
    tolerance_Pa: WatchedPressure = Field(
        default=5e3, description='tolerance of the pressure at the end of an action'
    )
    settle_s: Timeout = Field(default=0.5, description='duration of an action without sensor')
    changeover_s: Delay = Field(
        default=0.05, description='both valves off between pressure and vacuum'
    )
    action_timeout_s: Timeout = Field(default=2.0, description='time for an action to succeed')

    @model_validator(mode='after')
    def _consistent(self) -> GripperDriveConfig:
        if (self.vacuum_line is None) == (self.vacuum_output is None):
            raise ValueError('expected exactly one of vacuum_line and vacuum_output')
        if self.settle_s + self.changeover_s >= self.action_timeout_s:
            raise ValueError(
                f'action_timeout_s = {self.action_timeout_s} is not more than settle_s + '
                f'changeover_s = {self.settle_s + self.changeover_s:g}'
            )
        return self


class GripperPhase(Enum):
    """Phase of a gripper's action; diagnostics print the values."""

    IDLE = 'idle'
    CHANGEOVER = 'between pressure and vacuum'
    MOVING = 'moving'
    DONE = 'done'
    TIMED_OUT = 'timed out'


@dataclass(frozen=True)
class GripperLevels:
    """Set points of the valves: pressure >= 0 and vacuum <= 0 [Pa gauge], one of them zero."""

    pressure_Pa: float = 0.0
    vacuum_Pa: float = 0.0


class GripperLogic:
    """Runs the actions of a gripper, one at a time."""

    def __init__(self, config: GripperDriveConfig) -> None:
        self._config = config
        self._began_s = 0.0
        self._set_s = 0.0
        self._side = 0.0  # sign of the last nonzero level
        self._off_s = -math.inf  # time at which both levels became zero
        self.phase = GripperPhase.IDLE
        self.target_Pa: float | None = None
        self.levels = GripperLevels()

    def command(self, target_Pa: float, now_s: float) -> None:
        """Start an action towards a pressure [Pa gauge]."""
        self.target_Pa, self._began_s = target_Pa, now_s
        if target_Pa * self._side < 0.0:
            # Also after a command of zero in between: the time since the other side ended counts.
            self._release(now_s)
            self.phase = GripperPhase.CHANGEOVER
        elif self.phase is not GripperPhase.CHANGEOVER:
            self._apply(now_s)

    def abandon(self) -> None:
        """Abandon the action; keep the levels."""
        self.target_Pa, self.phase = None, GripperPhase.IDLE

    def step(self, now_s: float, measured_Pa: float | None) -> GripperPhase:
        """Continue the action and return the phase. `measured_Pa` is None without sensor."""
        config = self._config
        busy = (GripperPhase.CHANGEOVER, GripperPhase.MOVING)
        if self.target_Pa is None or self.phase not in busy:
            return self.phase
        if self.phase is GripperPhase.CHANGEOVER:
            released = measured_Pa is None or abs(measured_Pa) <= config.tolerance_Pa
            if released and now_s - self._off_s >= config.changeover_s:
                self._apply(now_s)
        elif self._arrived(now_s, measured_Pa, self.target_Pa):
            self.phase = GripperPhase.DONE
            return self.phase
        if now_s - self._began_s > config.action_timeout_s:
            self.phase = GripperPhase.TIMED_OUT
        return self.phase

    def _apply(self, now_s: float) -> None:
        target = self.target_Pa or 0.0
        if target == 0.0:
            self._release(now_s)
        else:
            self.levels = GripperLevels(max(target, 0.0), min(target, 0.0))
            self._side = math.copysign(1.0, target)
        self.phase, self._set_s = GripperPhase.MOVING, now_s

    def _release(self, now_s: float) -> None:
        """Set both levels to zero and remember the time."""
        if self.levels != GripperLevels():
            self.levels, self._off_s = GripperLevels(), now_s

    def _arrived(self, now_s: float, measured_Pa: float | None, target_Pa: float) -> bool:
        if measured_Pa is None:
            return now_s - self._set_s >= self._config.settle_s
        if target_Pa < 0.0:  # a switching valve may give more vacuum than commanded
            return measured_Pa <= target_Pa + self._config.tolerance_Pa
        return abs(measured_Pa - target_Pa) <= self._config.tolerance_Pa
