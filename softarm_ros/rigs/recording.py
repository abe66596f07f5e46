"""How to read recordings of an arm: the meaning and the frame of each column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from softarm_ros.geometry.configs import ConfigBlock, Delay, Finite, NonNegative, Positive
from softarm_ros.rigs.errors import Problem, did_you_mean, listed

# Units of commands in SI, by the unit of the actuators; motor angles become lengths by the
# radius of their pulley.
COMMAND_UNITS = {
    'm': {'m': 1.0, 'mm': 1e-3},
    'N': {'N': 1.0},
    'Pa': {'Pa': 1.0, 'kPa': 1e3, 'bar': 1e5, 'psi': 6894.757},
}
LENGTH_UNITS = {'m': 1.0, 'mm': 1e-3}
TIME_UNITS = {'s': 1.0, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9}

Columns3 = tuple[str, str, str]
Columns4 = tuple[str, str, str, str]
Vector = tuple[Finite, Finite, Finite]
_SHORTEST = 1e-6


class MountConfig(ConfigBlock):
    """Pose of the arm's base frame in the frame of the recording."""

    position_m: Vector = Field(description='fixed end of the arm')
    z_axis: Vector = Field(description='along the resting arm, away from the base')
    x_axis: Vector = Field(description='zero direction of the cable angles; made normal to z')

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


class MarkerConfig(ConfigBlock):
    """A measured point that moves with the tip of a section."""

    columns: Columns3 = Field(description='of x, y, z')
    section: str = Field(description='name of the section')
    offset_m: Vector = Field(
        default=(0.0, 0.0, 0.0), description="in the frame of the section's tip, z ahead"
    )


class RecordingConfig(ConfigBlock):
    """Columns of a CSV file with commands and measurements, one row per time."""

    time: str | None = Field(
        default=None, description='column of the time; without it rows are poses at rest'
    )
    time_unit: Literal['s', 'ms', 'us', 'ns'] = Field(default='s', description='of `time`')
    commands: dict[str, str] = Field(min_length=1, description='actuator: column')
    command_unit: Literal['m', 'mm', 'deg', 'rad', 'N', 'Pa', 'kPa', 'bar', 'psi'] = Field(
        default='m',
        description='of commands and measured; deg, rad: of the motor on its pulley',
    )
    command_zero: Literal['as_recorded', 'first_row'] = Field(
        default='as_recorded', description='first_row: its commands are subtracted from all rows'
    )
    measured: dict[str, str] = Field(
        default={},
        description='actuator: column of where it was measured to be, as by encoders; taken in '
        'place of its command where a file has all of them',
    )
    reached: dict[str, Positive] = Field(
        default={},
        description='actuator: share of its command that it reaches, if it is not measured',
    )
    section_tips: dict[str, Columns3] = Field(
        default={}, description='section: columns of x, y, z of its tip'
    )
    markers: dict[str, MarkerConfig] = Field(
        default={}, description='other measured points, by any name'
    )
    section_turns: dict[str, Columns4] = Field(
        default={}, description='section: columns of the quaternion x, y, z, w of its tip'
    )
    origin: Columns3 | None = Field(
        default=None, description='columns of a measured point that is subtracted from all others'
    )
    tip_force: Columns3 | None = Field(
        default=None,
        description='columns of a force on the tip, N, in its frame, where a file has them; the '
        'first row is taken off',
    )
    length_unit: Literal['m', 'mm'] = Field(default='m', description='of measured points')
    settled_s: NonNegative = Field(
        default=0.0,
        description='for models of arms at rest: time of constant commands until rows count',
    )
    settled_within: NonNegative = Field(
        default=0.0, description='largest change of a constant command, in its unit'
    )
    mount: MountConfig
    delay_s: Delay = Field(
        default=0.0, description='from a command to the motion; measured actuators have none'
    )

    @model_validator(mode='before')
    @classmethod
    def _reaches_what_is_asked(cls, fields: Any) -> Any:
        # One number per actuator, so that identification can write its results there.
        measured = fields.get('measured') if isinstance(fields, dict) else None
        given = fields.get('reached', {}) if isinstance(fields, dict) else None
        if not isinstance(measured, dict) or not isinstance(given, dict):
            return fields
        return {**fields, 'reached': {**dict.fromkeys(measured, 1.0), **given}}

    @model_validator(mode='after')
    def _measures_something(self) -> RecordingConfig:
        if not (self.section_tips or self.markers or self.section_turns):
            raise ValueError('nothing measured: expected section_tips, markers or section_turns')
        divided = [name for name in self.markers if not name or set(name) & set('.[]')]
        if divided:
            raise ValueError(f'markers {divided[0]!r}: expected a name without ".", "[" and "]"')
        if self.settled_s > 0.0 and self.time is None:
            raise ValueError(f'settled_s = {self.settled_s:g} needs the column `time`')
        return self


def recording_problems(
    recording: RecordingConfig, actuators: Sequence[str], sections: Sequence[str]
) -> Iterator[Problem]:
    """Yield problems for names that the arm does not have, and for actuators without a column."""
    tips, turns, markers = recording.section_tips, recording.section_turns, recording.markers
    named = [
        *((('commands', name), name, actuators, 'actuator') for name in recording.commands),
        *((('measured', name), name, actuators, 'actuator') for name in recording.measured),
        *((('reached', name), name, actuators, 'actuator') for name in recording.reached),
        *((('section_tips', name), name, sections, 'section') for name in tips),
        *((('section_turns', name), name, sections, 'section') for name in turns),
        *((('markers', n, 'section'), m.section, sections, 'section') for n, m in markers.items()),
    ]
    for path, name, known, what in named:
        if name not in known:
            hint = did_you_mean(name, known)
            yield Problem(('recording', *path), f'no such {what}{hint}; known: {listed(known)}')
    for field, columns in (('commands', recording.commands), ('measured', recording.measured)):
        missing = [name for name in actuators if name not in columns]
        if missing and (columns or field == 'commands'):
            yield Problem(('recording', field), f'missing: {", ".join(missing)}')


def names_of_sections(rig: Any) -> list[str] | None:
    """Return the names of an arm's sections or segments, or None if its fields are not known."""
    blocks = getattr(rig, 'sections', None) or getattr(rig, 'segments', None)
    return None if blocks is None else [block.name for block in blocks]
