"""The part `sensors.vrpn`: Vicon, and whatever else speaks VRPN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.vrpn.config import VrpnConfig

if TYPE_CHECKING:
    from softarm_ros.perception.vrpn.sensor import VrpnSensor

PART = Part(
    'sensors',
    'vrpn',
    VrpnConfig,
    {'driver': f'{__name__}:build', 'emulated': 'softarm_ros.emulation.vrpn_server:build'},
    'Vicon and others: bodies as trackers of a VRPN server',
)


def build(config: VrpnConfig, frame_id: str) -> VrpnSensor:
    """Return the sensor, not open; `frame_id` is the name of the base frame."""
    from softarm_ros.perception.vrpn.sensor import VrpnSensor

    return VrpnSensor(config, frame_id)
