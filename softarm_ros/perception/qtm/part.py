"""The part `sensors.qtm`: Qualisys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.qtm.config import QtmConfig

if TYPE_CHECKING:
    from softarm_ros.perception.qtm.sensor import QtmSensor

PART = Part(
    'sensors',
    'qtm',
    QtmConfig,
    {'driver': f'{__name__}:build', 'emulated': 'softarm_ros.emulation.qtm_server:build'},
    'Qualisys: bodies and markers over the RT protocol of QTM',
)


def build(config: QtmConfig, frame_id: str) -> QtmSensor:
    """Return the sensor, not open; `frame_id` is the name of the base frame."""
    from softarm_ros.perception.import_library import import_library

    import_library('qtm_rt')
    from softarm_ros.perception.qtm.sensor import QtmSensor

    return QtmSensor(config, frame_id)
