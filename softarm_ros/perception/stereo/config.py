"""What a rig file says about a pair of cameras."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import Positive
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.stereo.detection import MarkerLooks

Source = Annotated[str, Field(min_length=1)]


class StereoCamerasConfig(PoseSensorConfig):
    """Two calibrated cameras that see markers on the arm."""

    left: Source = Field(
        description='/dev/video0, a GStreamer pipeline, http://... of a network camera, '
        'rtsp://..., a video, or a folder or pattern of images'
    )
    right: Source = Field(description='the same, of the right camera')
    base_from: Literal['calibration'] = 'calibration'
    base_calibration: str = Field(
        min_length=1, description='file of softarm calibrate stereo, base (and window)'
    )
    max_skew_s: Positive = Field(
        default=0.004, description='between two exposures of a pair; less than half a period'
    )
    markers: MarkerLooks = Field(default_factory=MarkerLooks)
    marker_diameter_m: Positive | None = Field(
        default=None, description='of balls; a ball that looks smaller is partly hidden'
    )
    spacing_m: Positive = Field(
        description='largest distance of neighbouring markers, and of the first from the base'
    )
    expected_within_m: Positive = Field(
        default=0.01, description='standard deviation of where a marker is expected'
    )

    @model_validator(mode='after')
    def _cameras(self) -> StereoCamerasConfig:
        if self.bodies:
            raise ValueError('bodies: a pair of cameras sees points: expected none')
        if self.left == self.right:
            raise ValueError(f'left, right = {self.left!r}: expected two cameras')
        if self.max_skew_s >= 0.5 / self.rate_hz:
            raise ValueError(
                f'max_skew_s = {self.max_skew_s}: expected less than half a period, '
                f'{0.5 / self.rate_hz:.4g} s'
            )
        return self
