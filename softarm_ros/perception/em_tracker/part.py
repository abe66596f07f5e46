"""The part `sensors.em_tracker`: NDI."""

from __future__ import annotations

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.em_tracker.config import EmTrackerConfig
from softarm_ros.perception.sensor_builder import sensor_builder

PART = Part(
    'sensors',
    'em_tracker',
    EmTrackerConfig,
    {'driver': f'{__name__}:build', 'emulated': 'softarm_ros.emulation.ndi_device:build'},
    'NDI Aurora: coils over its serial line',
)

build = sensor_builder(
    'softarm_ros.perception.em_tracker.sensor:EmTrackerSensor', library_apart='sksurgerynditracker'
)
