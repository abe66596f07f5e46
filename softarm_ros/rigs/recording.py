"""How recordings of an arm are read: which column is what, in which frame."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, field_validator, model_validator

from softarm_ros.geometry.configs import ConfigBlock, Finite, NonNegative
from softarm_ros.models.config import GROUPS, Group

Vector = tuple[Finite, Finite, Finite]
_SHORTEST = 1e-6


class MountConfig(ConfigBlock):
    """Where the arm's base frame lies in the frame of the recording."""

    position_m: Vector = Field(description='fixed end of the arm')
    z_axis: Vector = Field(description='along the resting arm, away from the base')
    x_axis: Vector = Field(description='from which the angles of cables count; made normal to z')

    @field_validator('z_axis', 'x_axis')
    @classmethod
    def _has_a_direction(cls, value: Vector) -> Vector:
        if math.hypot(*value) < _SHORTEST:
            raise ValueError('expected a vector that is not zero')
        return value

    @model_validator(mode='after')
    def _independent(self) -> MountConfig:
        z, x = self.z_axis, self.x_axis
        cross = (
            z[1] * x[2] - z[2] * x[1],
            z[2] * x[0] - z[0] * x[2],
            z[0] * x[1] - z[1] * x[0],
        )
        if math.hypot(*cross) < 0.1 * math.hypot(*z) * math.hypot(*x):
            raise ValueError('z_axis and x_axis are (nearly) parallel; expected about 90 deg')
        return self


class RecordingConfig(ConfigBlock):
    """Columns of a CSV file with commands and measured section tips, one row a time."""

    time: str | None = Field(
        default=None, description='column of the time, s; without it rows are poses at rest'
    )
    commands: dict[str, str] = Field(min_length=1, description='actuator: column')
    command_unit: Literal['m', 'deg', 'rad'] = Field(
        default='m', description='contraction, or angle of the motor on its pulley'
    )
    section_tips: dict[str, tuple[str, str, str]] = Field(
        min_length=1, description='section: columns of x, y, z of its tip, m'
    )
    mount: MountConfig
    delay_s: NonNegative = Field(default=0.0, description='from a command to the motion')
    identify: tuple[Group, ...] = Field(
        default=GROUPS,
        min_length=1,
        description='what `softarm identify --data` may change',
    )
