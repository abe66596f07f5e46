"""A pose sensor with noise that grows with the distance of a tip from the base."""

import numpy as np

from softarm_ros.geometry.configs import NonNegative
from softarm_ros.geometry.parts import Part
from softarm_ros.plant.config import MocapConfig
from softarm_ros.plant.mocap import Mocap


class NearSightedConfig(MocapConfig):
    noise_per_distance: NonNegative


class NearSighted(Mocap):
    def __init__(self, config, seed):
        super().__init__(config, seed)
        self._scatter = np.random.default_rng([seed, 1])

    def capture(self, now_s, section_tips):
        tips = section_tips.copy()
        away = np.linalg.norm(tips[:, :3, 3], axis=1, keepdims=True)
        noise = self._scatter.standard_normal((len(tips), 3))
        tips[:, :3, 3] += self.config.noise_per_distance * away * noise
        super().capture(now_s, tips)


def build(config, seed):
    return NearSighted(config, seed)


PART = Part(
    'sensors',
    'near_sighted',
    NearSightedConfig,
    {'simulated': f'{__name__}:build'},
    'poses that scatter with distance',
)
