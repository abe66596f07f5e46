"""A controller: moves along the transposed Jacobian, as far as the bounds allow."""

import numpy as np

from softarm_ros.control.controller import Controller, Motion
from softarm_ros.geometry.configs import ConfigBlock, Positive
from softarm_ros.geometry.parts import Part


class TransposedConfig(ConfigBlock):
    feedback_gain_1_s: Positive


class Transposed(Controller):
    def __init__(self, config):
        self.gain = config.feedback_gain_1_s

    def velocity(self, state, reference, bounds, period_s):
        wanted = reference.velocity + self.gain * reference.error
        J = state.jacobian * state.scale
        aim = J.T @ wanted / max(np.linalg.norm(J, 2) ** 2, 1e-12)
        asked = bounds.rows @ aim
        limit = np.where(asked > 0.0, bounds.high, -bounds.low)
        share = np.clip(np.min(limit / np.maximum(np.abs(asked), 1e-12)), 0.0, 1.0)
        return Motion(share * aim * state.scale, wanted, bool(share < 1.0))


def build(config, model):
    return Transposed(config)


PART = Part(
    'controller',
    'transposed_jacobian',
    TransposedConfig,
    {'controller': f'{__name__}:build'},
    'along the transposed Jacobian',
)
