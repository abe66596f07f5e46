"""A simulated arm of one section: a circular arc that follows its cables with a lag."""

import numpy as np
from pydantic import Field

from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.plant import Plant
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem


class ArcsConfig(PlantBase):
    length_m: Positive = Field(description='of the arc')
    cable_radius_m: Positive
    lag_s: Positive = Field(description='of the arc behind its cables')


class LaggingArc:
    def __init__(self, config, drives):
        self._config = config
        angles = [cable.angle_rad for cable in drives.cables]
        self._pull = config.cable_radius_m * np.array([np.cos(angles), np.sin(angles)]).T
        self._bend = np.zeros(2)

    def follow(self, contraction_m, duration_s):
        bend = np.linalg.lstsq(self._pull, contraction_m, rcond=None)[0]
        share = 1.0 - np.exp(-duration_s / self._config.lag_s)
        self._bend = self._bend + (bend - self._bend) * share

    def section_tips(self):
        return self._pose(1.0)[None]

    def centerline(self, n):
        return np.array([self._pose(s)[:3, 3] for s in np.linspace(0.0, 1.0, n)])

    def _pose(self, share):
        angle = share * np.hypot(*self._bend)
        x, y = self._bend / max(np.hypot(*self._bend), 1e-12)
        length = share * self._config.length_m
        pose = np.eye(4)
        K = np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])
        pose[:3, :3] += np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
        across = length * (angle / 2.0 if angle < 1e-6 else (1.0 - np.cos(angle)) / angle)
        pose[:3, 3] = x * across, y * across, length * np.sinc(angle / np.pi)
        return pose


class InstantWinches:
    def __init__(self, count, arc):
        self._arc = arc
        self._target = np.zeros(count)
        self._reached = self._target.copy()

    def command(self, target, now_s, duration_s):
        target = np.asarray(target, dtype=float)
        if target.shape != self._target.shape or not np.all(np.isfinite(target)):
            raise ValueError(f'command {target}: expected {len(self._target)} finite numbers')
        self._target = target

    def hold(self, now_s):
        self._target = self._reached

    def advance(self, now_s, h, steps):
        self._reached = self._target
        for _ in range(steps):
            self._arc.follow(self._reached, h)

    def state(self):
        still = np.zeros_like(self._reached)
        return ActuatorState(self._reached.copy(), still, still.copy())

    def faults(self):
        return {}


def build(config, drives, world, seed):
    arc = LaggingArc(config, drives)
    return Plant(config, arc, InstantWinches(len(drives.names), arc))


@check('sections', 'plant')
def _one_section(rig):
    if len(rig.sections) != 1:
        yield Problem(('plant', 'kind'), 'expected an arm of one section', repr(rig.plant.kind))


CHECKS = checks_in(globals())
PART = Part(
    'body',
    'lab_arcs',
    ArcsConfig,
    {'wound_cables': f'{__name__}:build'},
    'an arc that lags behind its cables',
    (f'{__name__}:CHECKS',),
)
