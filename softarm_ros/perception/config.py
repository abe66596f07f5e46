"""Configuration common to all pose sensors."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import (
    Angle,
    ConfigBlock,
    FileName,
    Finite,
    NonNegative,
    PoseRate,
    Positive,
    Timeout,
    WatchedDistance,
    WatchedSpeed,
)
from softarm_ros.geometry.sightings import Place

BASE = 'base'
UNITS_M = {'m': 1.0, 'mm': 1.0e-3}  # units of positions in streams of servers
Seen = Annotated[str, Field(min_length=1, max_length=255)]
Vector = tuple[Finite, Finite, Finite]


class SeenPoint(ConfigBlock):
    """A single marker: its name in the sensor's software and its place on the arm."""

    name: Seen = Field(description="name in the sensor's software")
    section: str = Field(description='name of a section, or base')
    fraction: float = Field(
        default=1.0,
        ge=0.0,
        le=1.0,
        description='place on the section: 1 its tip, 0 its base, the tip of the previous section',
    )
    offset_m: Vector = Field(
        default=(0.0, 0.0, 0.0),
        description='offset from the backbone, in the frame of the cross-section',
    )

    def place(self, sections: tuple[str, ...]) -> Place:
        """
        Return the place of the marker on an arm with these sections, base to tip.

        Raises
        ------
        ValueError
            If there is no such section; the message lists the sections.

        """
        section, fraction = section_index(self.section, sections), self.fraction
        if fraction == 0.0 and section > 0:
            section, fraction = section - 1, 1.0
        return Place(section, fraction, self.place_offset())

    def place_offset(self) -> Array:
        """Return the marker's pose (4, 4) in the frame of its cross-section."""
        offset = np.eye(4)
        offset[:3, 3] = self.offset_m
        return offset


class SeenBody(SeenPoint):
    """A rigid body of markers, or a coil, that a sensor reports as a pose."""

    turn_deg: tuple[Angle, Angle, Angle] = Field(
        default=(0.0, 0.0, 0.0),
        description='rotation vector from the frame of the cross-section to that of the body',
    )

    def place_offset(self) -> Array:
        """Return the body's pose (4, 4) in the frame of its cross-section."""
        from softarm_ros.geometry.rotations import exp_so3  # slow to import; rarely needed here

        offset = super().place_offset()
        offset[:3, :3] = exp_so3(np.radians(self.turn_deg))
        return offset


class PlausibilityConfig(ConfigBlock):
    """Limits of the speed, turn and reach of a body on a soft arm."""

    max_speed_m_s: WatchedSpeed = Field(
        default=2.0, description='speed of a body relative to the base'
    )
    margin_m: NonNegative = Field(
        default=0.02,
        le=10.0,
        description='allowed jump of a position in addition to that; a flip also moves it',
    )
    max_turn_deg: Positive = Field(
        default=45.0, le=60.0, description='turn between consecutive samples of a body'
    )
    max_twist_deg: Positive = Field(
        default=100.0,
        le=180.0,
        description='twist relative to the base, about the axis of its cross-section, of a body '
        'that is first seen or was not seen for recover_s; a section twists little, but a flip of '
        'a symmetric marker pattern twists by 180; sections that bend far in different directions '
        'need more',
    )
    max_bend_deg: Positive = Field(
        default=180.0,
        le=180.0,
        description="bend between the axes of a body's cross-section and of the base, for arms "
        'that cannot bend far; 180: no limit',
    )
    reach_m: WatchedDistance | None = Field(
        default=None, description='largest distance of a body from the base; none: no limit'
    )
    recover_s: Timeout = Field(
        default=0.3,
        description='a steady new position is accepted after this time; a body that was not '
        'seen for this time may have any orientation',
    )


class PoseSensorConfig(ConfigBlock):
    """A sensor that sees bodies or points of the arm."""

    rate_hz: PoseRate = Field(description='expected exposures per second')
    timeout_s: Timeout = Field(
        default=0.25, description='time without a frame after which the device counts as lost'
    )
    bodies: tuple[SeenBody, ...] = Field(default=(), description='bodies with a pose')
    points: tuple[SeenPoint, ...] = Field(
        default=(), description='single markers, with a position only'
    )
    base_from: Literal['body', 'calibration', 'sensor'] = Field(
        default='body',
        description='source of the base frame: the body whose section is base, a calibration '
        "file, or the origin of the sensor's own frame",
    )
    base_calibration: FileName | None = Field(
        default=None, description="file with the pose of the base in the sensor's frame"
    )
    position_noise_m: NonNegative = Field(
        default=2.0e-4,
        le=1.0,
        description='standard deviation of each coordinate of a body or point',
    )
    orientation_noise_rad: NonNegative = Field(
        default=2.0e-3, le=4.0, description='standard deviation of the rotation about each axis'
    )
    plausibility: PlausibilityConfig = Field(
        default=PlausibilityConfig(), description='limits beyond which poses are rejected'
    )

    @model_validator(mode='after')
    def _names(self) -> PoseSensorConfig:
        names = [seen.name for seen in (*self.bodies, *self.points)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f'bodies, points: named more than once: {", ".join(twice)}')
        if not names:
            raise ValueError('bodies, points: expected at least one')
        if self.base_from == 'body' and self.base_body is None:
            raise ValueError("base_from = 'body': expected a body with section: base")
        if (self.base_from == 'calibration') != (self.base_calibration is not None):
            raise ValueError('base_calibration goes with base_from: calibration, and only with it')
        return self

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return 'this computer'

    @property
    def names(self) -> frozenset[str]:
        """Names of all bodies and points."""
        return frozenset(seen.name for seen in (*self.bodies, *self.points))

    @property
    def base_body(self) -> SeenBody | None:
        """The body on the base, or None."""
        return next((body for body in self.bodies if body.section == BASE), None)

    def markers_seen(self) -> tuple[str, ...]:
        """Return the names of single markers, in the order in which they are published."""
        return tuple(point.name for point in self.points)

    def sees_tip(self, sections: tuple[str, ...]) -> bool:
        """Return whether a body or point gives the tip of the last section."""
        ends = [
            seen
            for seen in (*self.bodies, *self.points)
            if seen.section == sections[-1] and seen.fraction == 1.0
        ]
        # From a marker beside the backbone, the tip is unknown: its orientation is missing.
        return any(isinstance(seen, SeenBody) or not any(seen.offset_m) for seen in ends)

    def places(self, sections: tuple[str, ...]) -> dict[str, Place]:
        """Return the place of each body and point by name; ValueError for an unknown section."""
        return {seen.name: seen.place(sections) for seen in (*self.bodies, *self.points)}

    def not_emulated(self, sections: tuple[str, ...]) -> str:
        """
        Return field, value and limit of what no emulated device sees; '' if it sees everything.

        Simulated cameras see section tips alone. A sensor whose emulated device looks at the arm
        itself sees more.
        """
        for field, listed in (('bodies', self.bodies), ('points', self.points)):
            for k, seen in enumerate(listed):
                if seen.place(sections).fraction != 1.0:
                    return (
                        f'{field}[{k}].fraction = {seen.fraction:g} ({seen.name}, section '
                        f'{seen.section}): expected 1: the simulated cameras see the tips of '
                        'sections, and emulate no place within one'
                    )
        return ''


def section_index(name: str, sections: tuple[str, ...]) -> int:
    """Return the index of a section, -1 for the base; raise ValueError if it does not exist."""
    if name == BASE:
        return -1
    if name not in sections:
        raise ValueError(f'section = {name!r}: expected one of {", ".join((BASE, *sections))}')
    return sections.index(name)
