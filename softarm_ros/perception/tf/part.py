"""The part `sensors.tf`: frames of any ROS 2 driver of motion capture."""

from __future__ import annotations

from softarm_ros.geometry.parts import Part
from softarm_ros.perception.sensor_builder import sensor_builder
from softarm_ros.perception.tf.config import TfConfig

PART = Part(
    'sensors',
    'tf',
    TfConfig,
    {'driver': f'{__name__}:build'},
    'frames on /tf that a ROS 2 driver of another package publishes',
    checks=('softarm_ros.rigs.frame_checks:CHECKS',),
)

build = sensor_builder('softarm_ros.perception.tf.sensor:TfSensor')
