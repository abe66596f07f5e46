"""The part `sensors.natnet`: OptiTrack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.natnet.config import NatNetConfig

if TYPE_CHECKING:
    from softarm_ros.perception.natnet.sensor import NatNetSensor

PART = Part(
    'sensors',
    'natnet',
    NatNetConfig,
    {
        'driver': f'{__name__}:build',
        'emulated': 'softarm_ros.emulation.natnet_server:build',
    },
    'OptiTrack: bodies and markers over NatNet 3.1 to 4.2',
)


def build(config: NatNetConfig, frame_id: str) -> NatNetSensor:
    """Return the sensor, not open; `frame_id` is the name of the base frame."""
    from softarm_ros.perception.import_library import import_library

    import_library('natnet')
    from softarm_ros.perception.natnet.sensor import NatNetSensor

    return NatNetSensor(config, frame_id)
