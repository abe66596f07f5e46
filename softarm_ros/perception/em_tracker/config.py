"""Configuration of an NDI tracker."""

from __future__ import annotations

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import NonNegative
from softarm_ros.perception.config import PoseSensorConfig


class EmTrackerConfig(PoseSensorConfig):
    """NDI Aurora: coils on a serial line. A body's name is its port handle, such as 0A."""

    port: str = Field(min_length=1, description='/dev/serial/by-id/...')
    device_latency_s: NonNegative = Field(
        default=0.025, le=1.0, description='delay from the exposure until its frame can be read'
    )

    @model_validator(mode='after')
    def _handles(self) -> EmTrackerConfig:
        for body in self.bodies:
            try:
                handle = int(body.name, 16)
            except ValueError:
                handle = -1
            if body.name != f'{handle:02X}' or not 1 <= handle <= 255:
                raise ValueError(f'bodies: name = {body.name!r}: expected a handle, 01 to FF')
        if self.points:
            raise ValueError('points: an NDI tracker reports bodies alone')
        return self

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return self.port
