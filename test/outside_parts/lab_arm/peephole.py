"""A sensor driver without a device, which fails as its field `fails` states."""

import sys
import time
from typing import Literal

import numpy as np
from pydantic import Field

from softarm_ros.geometry.parts import Part
from softarm_ros.geometry.sightings import BodySighting, Sighting
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.sensor import SensorHealth


class PeepholeConfig(PoseSensorConfig):
    fails: Literal['open', 'find', 'read', 'exit', 'poses'] = Field(description='what fails')


class Peephole:
    def __init__(self, config, frame_id):
        self._config, self._frame_id = config, frame_id

    def open(self):
        if self._config.fails == 'open':
            raise KeyError('lens')
        if self._config.fails == 'find':
            raise OSError('no such lens')

    def read(self, timeout_s):
        if self._config.fails == 'read':
            raise KeyError('frame')
        if self._config.fails == 'exit':
            sys.exit(3)
        pose = np.full((4, 4), np.nan)
        bodies = [BodySighting(body.name, pose) for body in self._config.bodies]
        return [Sighting(time.time_ns(), self._frame_id, tuple(bodies))]

    def health(self):
        return SensorHealth(connected=True)

    def close(self):
        """Do nothing: there is no device."""


def build(config, frame_id):
    return Peephole(config, frame_id)


PART = Part(
    'sensors', 'lab_peephole', PeepholeConfig, {'driver': f'{__name__}:build'}, 'fails on purpose'
)
