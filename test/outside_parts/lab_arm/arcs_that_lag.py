"""A simulated arm: one section, an arc that follows its cables with a lag."""

from collections import deque

import numpy as np
from pydantic import Field

from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.faults import inject
from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem


class ArcsConfig(PlantBase):
    length_m: Positive = Field(description='of the arc')
    cable_radius_m: Positive
    lag_s: Positive = Field(description='of the arc behind its cables')


class LaggingArc:
    def __init__(self, config, drives, seed):
        self.time_s = 0.0
        self.mocap_enabled = True
        self._config = config
        self._random = np.random.default_rng(seed)
        angles = [cable.angle_rad for cable in drives.cables]
        self._pull = config.cable_radius_m * np.array([np.cos(angles), np.sin(angles)]).T
        self._target = np.zeros(len(drives.names))
        self._reached = self._target.copy()
        self._bend = np.zeros(2)
        self._frames, self._under_way, self._true_tips = 0, deque(), []

    def step(self, command, duration_s):
        if command is not None:
            command = np.asarray(command, dtype=float)
            if command.shape != self._target.shape or not np.all(np.isfinite(command)):
                raise ValueError(f'command {command}: expected {len(self._target)} finite numbers')
            self._target = command
        if not duration_s > 0.0:
            raise ValueError(f'duration_s = {duration_s}: expected more than 0')
        end_s = self.time_s + duration_s
        while self.time_s < end_s - 1e-9:
            h = min(self._config.time_step_s, end_s - self.time_s)
            self._reached = self._target
            bend = np.linalg.lstsq(self._pull, self._target, rcond=None)[0]
            self._bend = self._bend + (bend - self._bend) * (1.0 - np.exp(-h / self._config.lag_s))
            self.time_s += h
            self._look()

    def hold(self):
        self._target = self._reached

    def actuator_state(self):
        still = np.zeros_like(self._reached)
        return ActuatorState(self._reached.copy(), still, still.copy())

    def poll_poses(self):
        arrived = []
        while self._under_way and self._under_way[0].stamp_s + self._config.mocap.delay_s <= (
            self.time_s + 1e-9
        ):
            arrived.append(self._under_way.popleft())
        return arrived

    def poll_true_tips(self):
        tips, self._true_tips = self._true_tips, []
        return tips

    def faults(self):
        return {}

    def inject(self, fault):
        return inject(self.faults(), fault)

    def true_section_tips(self):
        return self._pose(1.0)[None]

    def true_centerline(self, n):
        return np.array([self._pose(s)[:3, 3] for s in np.linspace(0.0, 1.0, n)])

    def _look(self):
        mocap = self._config.mocap
        if self.time_s + 1e-9 < self._frames / mocap.rate_hz:
            return
        self._frames += 1
        tips = self.true_section_tips()
        self._true_tips.append((self.time_s, tips[-1, :3, 3].copy()))
        tips[:, :3, 3] += mocap.position_noise_m * self._random.standard_normal((1, 3))
        if self.mocap_enabled:
            self._under_way.append(PoseMeasurement(self.time_s, tips))

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


def build(config, drives, world, seed):
    return LaggingArc(config, drives, seed)


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
