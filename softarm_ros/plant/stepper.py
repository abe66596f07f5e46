"""Simulated stepper motors with pulleys: open loop, the position is the counted steps."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.config import StepperConfig
from softarm_ros.plant.stepper_kernels import StepperParameters, StepperState, step_motors


class Steppers:
    """
    The motors of all cables.

    Targets are rounded to microsteps and approached within the limits of speed and acceleration,
    without overshoot; a new target may arrive at any time. Between motor and cable there is play
    (`backlash_m`) and slack of the cable (`slack_m`). Between two microsteps the rotor's inertia
    smooths the motion: motion is continuous, rest is at whole steps.
    """

    def __init__(self, config: StepperConfig, count: int) -> None:
        self.config = config
        self.parameters = StepperParameters(
            np.full(count, config.max_speed_m_s),
            np.full(count, config.max_acceleration_m_s2),
            np.full(count, config.backlash_m),
            np.full(count, config.slack_m),
        )
        self.state = StepperState(
            np.zeros(count),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count),
            np.full(count, -config.slack_m),
        )
        self._holding = False

    @property
    def position(self) -> Array:
        """Contraction (m,) [m] in whole microsteps, as counted."""
        return self._whole_steps(self.state.position)

    @property
    def velocity(self) -> Array:
        """Velocity (m,) [m/s] of the motors."""
        return self.state.velocity.copy()

    @property
    def contraction(self) -> Array:
        """Contraction (m,) [m] of the cables, after play and slack."""
        return self.state.contraction.copy()

    def command(self, contraction: Array) -> None:
        """Set the targets (m,) [m]."""
        self.state.target[:] = self._whole_steps(contraction)
        self._holding = False

    def hold(self) -> None:
        """Brake at the limit and stop at the first whole step after that."""
        if self._holding:
            return
        v = self.state.velocity
        stop = self.state.position + 0.5 * v * np.abs(v) / self.config.max_acceleration_m_s2
        step = self.config.step_m
        beyond = np.where(v > 0.0, np.ceil(stop / step), np.floor(stop / step))
        self.state.target[:] = np.where(v == 0.0, self._whole_steps(stop), beyond * step)
        self._holding = True

    def begin_turn(self, position: Array, duration_s: float) -> None:
        """Turn the motors evenly from outside, to reach `position` (m,) [m] in a time [s]."""
        self.state.velocity[:] = (position - self.state.position) / duration_s

    def end_turn(self, position: Array) -> None:
        """Set the exact end position (m,) [m] of such a motion, free of rounding, and stay."""
        self.state.position[:] = position
        self.state.target[:] = position
        self._holding = False

    def advance(self, duration_s: float) -> None:
        """Advance the motors by a duration [s]."""
        step_motors(self.parameters, self.state, duration_s)

    def _whole_steps(self, contraction: Array) -> Array:
        return np.rint(contraction / self.config.step_m) * self.config.step_m
