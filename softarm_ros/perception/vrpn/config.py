"""Configuration of a VRPN server."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

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
    port: int = Field(default=PORT, gt=0, lt=65536, description='UDP port of the server')
    unit: Literal['m', 'mm'] = Field(
        default='m',
        description='unit of positions; VRPN prescribes m, but not every server complies',
    )
    device_latency_s: NonNegative = Field(
        default=0.0,
        le=1.0,
        description="delay from the exposure to the server's stamp, which VRPN does not report",
    )

    @model_validator(mode='after')
    def _poses_only(self) -> VrpnConfig:
        if self.points:
            raise ValueError(
                f'points[0].name = {self.points[0].name!r}: VRPN sends poses of bodies, and no '
                'single markers: expected bodies only'
            )
        return self

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return f'{self.host}:{self.port}'
