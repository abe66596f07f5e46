"""Configuration of frames that another ROS 2 driver publishes."""

from __future__ import annotations

from pydantic import Field, model_validator

from softarm_ros.perception.config import PoseSensorConfig, Seen


class TfConfig(PoseSensorConfig):
    """
    Frames on /tf and /tf_static from a driver of another package. A body's name is its frame.

    The stamps are those of the transforms, so the clocks of both computers must agree.
    """

    frame: Seen = Field(
        description='frame of the bodies, directly or through other frames: map, world'
    )

    @model_validator(mode='after')
    def _poses_only(self) -> TfConfig:
        if self.points:
            raise ValueError('points: a frame has a pose: expected bodies only')
        named = [body.name for body in self.bodies if body.name.startswith('/')]
        if named or self.frame.startswith('/'):
            raise ValueError(f'{(named or [self.frame])[0]!r}: frames have no leading slash')
        return self

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return f'/tf, frame {self.frame}'
