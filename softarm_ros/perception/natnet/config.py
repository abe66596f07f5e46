"""Configuration of a NatNet server."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import Ipv4Host, MulticastGroup
from softarm_ros.perception.config import PoseSensorConfig

COMMAND_PORT = 1510
DATA_PORT = 1511
MULTICAST = '239.255.42.99'
MOST_NUMBER = 65_535  # NatNet has two bytes for the number of a marker
# Markers of an emulated body; more if labels of the rig file need them.
FEWEST_MARKERS, MOST_MARKERS = 4, 20
MARKER = 'Marker'  # names of the emulated bodies' markers begin with this


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

    @model_validator(mode='after')
    def _labels(self) -> NatNetConfig:
        for k, point in enumerate(self.points):
            body, of_body, marker = point.name.rpartition(':')
            numbered = marker.isascii() and marker.isdecimal()
            exists = 1 <= int(marker) <= MOST_NUMBER if numbered else bool(marker and of_body)
            if not exists or (of_body and not body) or (numbered and marker[0] == '0'):
                raise ValueError(
                    f'points[{k}].name = {point.name!r}: no such label: expected BODY:MARKER '
                    f'such as tip:1, or a number; numbers are 1 to {MOST_NUMBER}'
                )
        return self

    @property
    def address(self) -> str:
        """Address of the device, as text for people."""
        return f'{self.server}:{self.command_port}'

    def emulated_marker(self, label: str) -> tuple[int, int]:
        """
        Return the emulated server's id of a label's body (0: none), and the marker's number.

        Raises
        ------
        ValueError
            If the emulated server has no such body or marker.

        """
        name, of_body, marker = label.rpartition(':')
        if not of_body:
            return 0, int(marker)
        bodies = [body.name for body in self.bodies]
        if name not in bodies:
            raise ValueError(
                f'body {name!r}: expected one of `bodies`, which the emulated server has: '
                f'{", ".join(bodies) or "none"}'
            )
        number = marker.removeprefix(MARKER)
        if not (number.isdecimal() and 1 <= int(number) <= MOST_MARKERS):
            raise ValueError(
                f'marker {marker!r}: expected 1 to {MOST_MARKERS}, or {MARKER}1 to '
                f'{MARKER}{MOST_MARKERS}: the markers of an emulated body'
            )
        return bodies.index(name) + 1, int(number)

    def not_emulated(self, sections: tuple[str, ...]) -> str:
        """See `PoseSensorConfig`."""
        for k, point in enumerate(self.points):
            try:
                self.emulated_marker(point.name)
            except ValueError as error:
                return f'points[{k}].name = {point.name!r}: {error}'
        return super().not_emulated(sections)
