"""The part `sensors.qtm`: Qualisys."""

from __future__ import annotations

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.qtm.config import QtmConfig
from softarm_ros.perception.sensor_builder import sensor_builder

PART = Part(
    'sensors',
    'qtm',
    QtmConfig,
    {'driver': f'{__name__}:build', 'emulated': 'softarm_ros.emulation.qtm_server:build'},
    'Qualisys: bodies and markers over the RT protocol of QTM',
)

build = sensor_builder('softarm_ros.perception.qtm.sensor:QtmSensor', library='qtm_rt')
