"""Resolved rate: the damped inverse of the Jacobian under the arm's limits, with feedback."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from softarm_ros.control.bound_kernels import damped_programme, on_a_bound
from softarm_ros.control.controller import (
    Controller,
    ControlState,
    Motion,
    Outcome,
    TipReference,
    VelocityBounds,
)
from softarm_ros.control.quadratic import within_bounds
from softarm_ros.control.swing_filter import SwingConfig, SwingFilter
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive, WatchedSpeed
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel


class ResolvedRateConfig(ConfigBlock):
    """Gains of the resolved-rate controller."""

    feedback_gain_1_s: NonNegative = Field(description='K of eq. 38')
    integral_gain_1_s2: NonNegative = Field(
        default=0.0, description='removes a constant error; frozen while a limit is active'
    )
    damping: Positive = Field(
        le=1.0, description='epsilon of eq. 35, relative to the arm length squared'
    )
    straightening_gain_1_s: NonNegative = Field(
        default=0.0, description='null-space term of eq. 36: pull towards equal bending'
    )
    max_correction_speed_m_s: WatchedSpeed = Field(description='bound on |K e|')
    swing: SwingConfig | None = Field(
        default=None, description='swing of the arm, which the feedback must not excite'
    )


class ResolvedRate(Controller):
    """
    Tracks a tip velocity and position (Qi et al. 2024, eq. 34-38).

    The damped inverse (eq. 35) with null-space term (eq. 36) is the minimiser of
    |J qdot - v|^2 + eps |qdot - w|^2. Here that quadratic programme is solved under the bounds.
    The feedback may have an integral part, which is frozen while limits are active, the correction
    is saturated or the pose is singular (no wind-up). If a swing is stated, errors first pass its
    `SwingFilter`.
    """

    def __init__(self, config: ResolvedRateConfig, model: ArmModel) -> None:
        self.config = config
        self._regulariser = config.damping * model.rest_length_m**2
        self._passed = None if config.swing is None else SwingFilter(config.swing)
        self.reset()

    def reset(self) -> None:
        """Forget the integral and past errors."""
        if self._passed is not None:
            self._passed.reset()
        self._integral = np.zeros(3)
        self._newest: Array | None = np.zeros(3)  # error times period; None while saturated

    def velocity(
        self,
        state: ControlState,
        reference: TipReference,
        bounds: VelocityBounds,
        period_s: float,
    ) -> Motion:
        """Solve for qdot in units of the coordinates' scales, so that eps weighs them alike."""
        wanted = self._wanted(reference, period_s)
        H, f = damped_programme(
            np.ascontiguousarray(state.jacobian),
            state.scale,
            wanted,
            self._null_space_velocity(state),
            self._regulariser,
        )
        x = within_bounds(H, f, bounds)
        if x is None:
            return Motion(np.zeros(len(state.scale)), wanted, True)
        reached = on_a_bound(x, bounds.rows, bounds.low, bounds.high)
        return Motion(x * state.scale, wanted, reached)

    def on_outcome(self, outcome: Outcome) -> None:
        """Add the last error to the integral, unless a limit or a singular pose held it back."""
        if self._newest is not None and outcome.follows and not outcome.limited:
            self._integral += self._newest

    def _wanted(self, reference: TipReference, period_s: float) -> Array:
        """Return the tip velocity (3,) [m/s] to ask of the model."""
        error = reference.error
        if self._passed is not None:
            error = self._passed(error, period_s)
        correction, saturated = self._correction(error)
        self._newest = None if saturated else error * period_s
        return reference.velocity - reference.drift + correction

    def _correction(self, error: Array) -> tuple[Array, bool]:
        correction = (
            self.config.feedback_gain_1_s * error + self.config.integral_gain_1_s2 * self._integral
        )
        speed = math.sqrt(correction @ correction)
        bound = self.config.max_correction_speed_m_s
        return (correction, False) if speed <= bound else (correction * (bound / speed), True)

    def _null_space_velocity(self, state: ControlState) -> Array:
        """Return w (dof,) of eq. 36: pull towards the configuration that is easiest to hold."""
        gain = self.config.straightening_gain_1_s
        if gain == 0.0:
            return np.zeros(len(state.scale))
        return np.asarray(gain * (state.command.preferred - state.command.configuration))


def build(config: ResolvedRateConfig, model: ArmModel) -> ResolvedRate:
    """Return the controller of an arm."""
    return ResolvedRate(config, model)


PART = Part(
    'controller',
    'resolved_rate',
    ResolvedRateConfig,
    {'controller': f'{__name__}:build'},
    'damped inverse under all limits, integral, null space; Qi et al. 2024, eq. 34-38',
)
