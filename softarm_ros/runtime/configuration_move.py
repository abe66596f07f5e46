"""A motion from one configuration to another, as fast as the actuator limits permit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.minimum_jerk import blend
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture

_SAMPLES = 60
_USE = 0.7  # share of speed and acceleration limits that the motion uses


@dataclass(frozen=True)
class ConfigurationMove:
    """Minimum-jerk motion in configuration space from `start` to `goal` (dof,)."""

    start: Array
    goal: Array
    duration_s: float

    def at(self, time_s: float) -> Array:
        """Return the configuration (dof,) at a time [s]; at rest before and after the move."""
        share = time_s / self.duration_s if self.duration_s > 0.0 else 1.0
        return np.asarray(self.start + (self.goal - self.start) * blend(share))


def plan_move(
    model: ArmModel, limits: ActuatorLimits, start: Array, goal: Array, least_s: float
) -> ConfigurationMove:
    """Return the quickest move of at least `least_s` [s] within speed and acceleration limits."""
    r = np.linspace(0.0, 1.0, _SAMPLES)
    posture: Posture | None = None
    commands = np.empty((_SAMPLES, len(limits.names)))
    for command, x in zip(commands, r):
        posture = model.posture_of(start + (goal - start) * blend(float(x)), posture)
        command[:] = posture.actuation
    step = r[1] - r[0]
    first = np.max(np.abs(np.diff(commands, axis=0)), axis=0) / step
    second = np.max(np.abs(np.diff(commands, 2, axis=0)), axis=0) / step**2
    by_speed = np.max(first / (_USE * limits.max_speed))
    by_acceleration = np.sqrt(np.max(second / (_USE * limits.max_acceleration)))
    return ConfigurationMove(start, goal, float(max(by_speed, by_acceleration, least_s)))
