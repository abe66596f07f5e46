"""Configuration of a NatNet server."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from softarm_ros.geometry.configs import Ipv4Host, MulticastGroup
from softarm_ros.perception.config import PoseSensorConfig

COMMAND_PORT = 1510
DATA_PORT = 1511
MULTICAST = '239.255.42.99'


class NatNetConfig(PoseSensorConfig):
    """OptiTrack Motive, or another program that sends NatNet 3.1 to 4.2."""

    server: Ipv4Host = Field(description='address of the computer that runs Motive')
    local: Ipv4Host = Field(
        default='0.0.0.0', description='address of this computer in the network of the cameras'
    )
    mode: Literal['unicast', 'multicast'] = Field(
        default='unicast', description='as in the streaming settings of Motive'
    )
    command_port: int = Field(default=COMMAND_PORT, gt=0, lt=65536)
    data_port: int = Field(default=DATA_PORT, gt=0, lt=65536, description='port of multicast data')
    multicast_group: MulticastGroup = MULTICAST
    up_axis: Literal['y', 'z'] = Field(
        default='y',
        description="as in Motive's streaming settings; relevant for base_from: sensor",
    )
    unit: Literal['m', 'mm'] = Field(default='m', description='unit of positions in the stream')

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return f'{self.server}:{self.command_port}'
