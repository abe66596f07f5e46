"""The part `sensors.natnet`: OptiTrack."""

from __future__ import annotations

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.perception.sensor_builder import sensor_builder

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

build = sensor_builder('softarm_ros.perception.natnet.sensor:NatNetSensor', library='natnet')
