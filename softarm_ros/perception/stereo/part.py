"""The part `sensors.stereo_cameras`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.stereo.config import StereoCamerasConfig

if TYPE_CHECKING:
    from softarm_ros.perception.stereo.sensor import StereoCameraSensor

PART = Part(
    'sensors',
    'stereo_cameras',
    StereoCamerasConfig,
    {
        'driver': f'{__name__}:build',
        'emulated': 'softarm_ros.emulation.stereo_camera_process:build',
    },
    'two cameras: markers on the arm, in air or through a window into water',
)


def build(config: StereoCamerasConfig, frame_id: str) -> StereoCameraSensor:
    """Return the sensor, not open; `frame_id` is the name of the base frame."""
    from softarm_ros.perception.import_library import import_library

    import_library('cv2')
    from softarm_ros.perception.stereo.sensor import StereoCameraSensor

    return StereoCameraSensor(config, frame_id)
