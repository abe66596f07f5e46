"""Configuration of a VRPN server."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from softarm_ros.geometry.configs import Ipv4Host, NonNegative
from softarm_ros.perception.config import PoseSensorConfig

PORT = 3883


class VrpnConfig(PoseSensorConfig):
    """
    A VRPN server: Vicon Tracker, or another program that offers its bodies as VRPN trackers.

    A body's name is that of the tracker, followed by the sensor's number in brackets unless it is
    0: `tip`, or `hand[3]`.
    """

    host: Ipv4Host = Field(description='address of the computer that runs the server')
    port: int = Field(default=PORT, gt=0, lt=65536, description='of the server, UDP')
    unit: Literal['m', 'mm'] = Field(
        default='m', description='of positions; VRPN says m, and not every server keeps to it'
    )
    device_latency_s: NonNegative = Field(
        default=0.0,
        le=1.0,
        description='from the exposure to the stamp of the server, which VRPN does not tell',
    )

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return f'{self.host}:{self.port}'
