"""The part `sensors.vrpn`: Vicon, and whatever else speaks VRPN."""

from __future__ import annotations

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.sensor_builder import sensor_builder
from softarm_ros.perception.vrpn.config import VrpnConfig

PART = Part(
    'sensors',
    'vrpn',
    VrpnConfig,
    {'driver': f'{__name__}:build', 'emulated': 'softarm_ros.emulation.vrpn_server:build'},
    'Vicon and others: bodies as trackers of a VRPN server',
)

build = sensor_builder('softarm_ros.perception.vrpn.sensor:VrpnSensor')
