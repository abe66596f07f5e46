"""Configuration of a pair of cameras."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from softarm_ros.geometry.configs import TOPIC_NAME, FileName, NonNegative, Positive, Timeout
from softarm_ros.geometry.sightings import Place
from softarm_ros.perception.config import BASE, PoseSensorConfig, SeenBody, Vector
from softarm_ros.perception.stereo.detection import MarkerLooks

ROS = 'ros:'  # prefix of the name of a topic


def _checked_topic(source: str) -> str:
    if source.startswith(ROS) and not re.match(TOPIC_NAME, source.removeprefix(ROS)):
        raise ValueError(f'expected the name of a topic after {ROS}, such as /left/image_raw')
    return source


Source = Annotated[str, Field(min_length=1), AfterValidator(_checked_topic)]


class MarkedBody(SeenBody):
    """A rigid disk with markers on the arm; its pose follows from three visible markers."""

    markers: tuple[Vector, ...] = Field(
        description='positions in the frame of the body [m]; their names are NAME:1, NAME:2, ...'
    )

    @field_validator('markers')
    @classmethod
    def _not_on_a_line(cls, markers: tuple[Vector, ...]) -> tuple[Vector, ...]:
        if len(markers) < 3:
            raise ValueError(f'{len(markers)} markers: expected at least 3')
        places = np.array(markers)
        twice = [k for k, marker in enumerate(markers) if marker in markers[:k]]
        if twice:
            raise ValueError(
                f'markers[{markers.index(markers[twice[0]])}] and markers[{twice[0]}] are at one '
                f'place, {list(markers[twice[0]])}: expected a place of its own for each'
            )
        sizes = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)
        if sizes[1] < 0.1 * sizes[0]:
            raise ValueError('the markers lie on a line: expected three that do not')
        return markers

    def marker_names(self) -> tuple[str, ...]:
        """Return the names of the body's markers."""
        return tuple(f'{self.name}:{k + 1}' for k in range(len(self.markers)))


class StereoCamerasConfig(PoseSensorConfig):
    """Two calibrated cameras that see markers on the arm."""

    bodies: tuple[MarkedBody, ...] = Field(
        default=(), description='rigid disks with three markers or more'
    )

    left: Source = Field(
        description='/dev/video0, a GStreamer pipeline, http://... of a network camera, '
        'rtsp://..., ros:/left/image_raw (or .../compressed), a video, or a folder or pattern of '
        'images'
    )
    right: Source = Field(description='source of the right camera, as for left')
    base_from: Literal['calibration'] = 'calibration'
    base_calibration: FileName = Field(
        min_length=1, description='file of softarm calibrate stereo, base (and window)'
    )
    max_skew_s: Timeout = Field(
        default=0.004,
        description='time between the two exposures of a pair; less than half a period',
    )
    markers: MarkerLooks = Field(default_factory=MarkerLooks)
    marker_diameter_m: Positive | None = Field(
        default=None, description='diameter of balls; a ball that appears smaller is partly hidden'
    )
    spacing_m: Positive = Field(
        default=0.1,
        description='largest distance between neighbouring single points, and of the first from '
        'the base',
    )
    mounted_within_m: NonNegative = Field(
        default=2.0e-4, description='standard deviation of the positions of markers on their body'
    )
    expected_within_m: Positive = Field(
        default=0.01, description='standard deviation of the expected position of a marker'
    )

    @model_validator(mode='after')
    def _cameras(self) -> StereoCamerasConfig:
        if any(body.section == BASE for body in self.bodies):
            raise ValueError(
                'bodies: the base is as the calibration file says: expected none there'
            )
        seen = self.markers_seen()
        same = sorted({name for name in seen if seen.count(name) > 1})
        if same:
            raise ValueError(
                f'points: {", ".join(same)}: the name of a marker of a body: expected another'
            )
        if self.left == self.right:
            raise ValueError(f'left, right = {self.left!r}: expected two cameras')
        if self.max_skew_s >= 0.5 / self.rate_hz:
            raise ValueError(
                f'max_skew_s = {self.max_skew_s}: expected less than half a period, '
                f'{0.5 / self.rate_hz:.4g} s'
            )
        return self

    @property
    def address(self) -> str:
        """Sources of both cameras, as text for people."""
        return f'{self.left}, {self.right}'

    def not_emulated(self, sections: tuple[str, ...]) -> str:
        """See `PoseSensorConfig`: the emulated cameras look at the whole arm."""
        return ''

    def markers_seen(self) -> tuple[str, ...]:
        """Return the names of single markers, then of those of bodies, in publishing order."""
        of_bodies = (name for body in self.bodies for name in body.marker_names())
        return (*super().markers_seen(), *of_bodies)

    def marker_places(self, sections: tuple[str, ...]) -> dict[str, Place]:
        """Return the place of every marker, those of bodies included, by name."""
        found = {point.name: point.place(sections) for point in self.points}
        for body in self.bodies:
            at = body.place(sections)
            for name, marker in zip(body.marker_names(), body.markers):
                offset = np.eye(4)
                offset[:3, 3] = at.offset[:3, :3] @ marker + at.offset[:3, 3]
                found[name] = Place(at.section, at.fraction, offset)
        return found
