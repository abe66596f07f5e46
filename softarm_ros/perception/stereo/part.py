"""The part `sensors.stereo_cameras`."""

from __future__ import annotations

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.sensor_builder import sensor_builder
from softarm_ros.perception.stereo.config import StereoCamerasConfig

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

build = sensor_builder('softarm_ros.perception.stereo.sensor:StereoCameraSensor', library='cv2')
