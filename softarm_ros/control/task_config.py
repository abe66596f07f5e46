"""Fields of a task file: a sequence of poses or attitudes, dwells and gripper commands."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from softarm_ros.control.trajectory_config import Point, Speed
from softarm_ros.geometry.configs import Angle, ConfigBlock, NonNegative, Positive

GripperAction = Literal['open', 'close', 'hold']
_KINDS = ('position_m', 'attitude_deg', 'dwell_s', 'gripper')


class TaskStep(ConfigBlock):
    """One step; exactly one of `position_m`, `attitude_deg`, `dwell_s` and `gripper`."""

    position_m: Point | None = Field(
        default=None, description='position of the tip, base frame; reached along a straight line'
    )
    attitude_deg: tuple[Angle, ...] | None = Field(
        default=None, description='phi and theta of every section, from base to tip'
    )
    dwell_s: NonNegative | None = Field(default=None, description='duration of a stop')
    gripper: GripperAction | None = None
    speed_m_s: Speed | None = Field(default=None, description='speed of a position step')
    duration_s: Positive | None = Field(
        default=None,
        description='duration of an attitude or gripper step; the limits may make an attitude '
        'step longer',
    )

    @model_validator(mode='after')
    def _one_kind(self) -> TaskStep:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            found = ' and '.join(given) or 'none'
            raise ValueError(f'expected exactly one of {", ".join(_KINDS)}; found {found}')
        if self.speed_m_s is not None and self.position_m is None:
            raise ValueError(f'speed_m_s belongs to position_m, not to {given[0]}')
        if self.duration_s is not None and given[0] in ('position_m', 'dwell_s'):
            raise ValueError(f'duration_s does not belong to {given[0]}')
        return self


class TaskConfig(ConfigBlock):
    """A sequence of steps; each begins when the previous one is done."""

    description: str = ''
    speed_m_s: Speed = Field(default=0.05, description='default speed of position steps')
    steps: tuple[TaskStep, ...] = Field(min_length=1)
