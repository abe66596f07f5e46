"""The part `sensors.em_tracker`: NDI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.em_tracker.config import EmTrackerConfig

if TYPE_CHECKING:
    from softarm_ros.perception.em_tracker.sensor import EmTrackerSensor

PART = Part(
    'sensors',
    'em_tracker',
    EmTrackerConfig,
    {'driver': f'{__name__}:build', 'emulated': 'softarm_ros.emulation.ndi_device:build'},
    'NDI Aurora: coils over its serial line',
)


def build(config: EmTrackerConfig, frame_id: str) -> EmTrackerSensor:
    """Return the sensor, not open; `frame_id` is the name of the base frame."""
    from softarm_ros.perception.em_tracker.sensor import EmTrackerSensor
    from softarm_ros.perception.import_library import require_library

    require_library('sksurgerynditracker')
    return EmTrackerSensor(config, frame_id)
