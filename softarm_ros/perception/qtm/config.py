"""Configuration of Qualisys Track Manager."""

from __future__ import annotations

from pydantic import Field

from softarm_ros.geometry.configs import Host, NonNegative
from softarm_ros.perception.config import PoseSensorConfig

PORT = 22223  # little endian


class QtmConfig(PoseSensorConfig):
    """Qualisys Track Manager (QTM), over its RT protocol."""

    host: Host = Field(description='address of the computer that runs QTM')
    port: int = Field(
        default=PORT, gt=0, lt=65536, description='port of the little-endian protocol'
    )
    device_latency_s: NonNegative = Field(
        default=0.0,
        le=1.0,
        description='delay from exposure to sending, which the stream does not contain; QTM '
        'shows it as real-time latency',
    )

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return f'{self.host}:{self.port}'
