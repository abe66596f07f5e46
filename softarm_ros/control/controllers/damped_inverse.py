"""Damped inverse: the pseudo-inverse of the Jacobian and proportional feedback, nothing else."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from softarm_ros.control.controller import (
    Controller,
    ControlState,
    Motion,
    TipReference,
    VelocityBounds,
)
from softarm_ros.control.quadratic import within_bounds
from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive, WatchedSpeed
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel

_NEAR = 1e-6  # rounding error, as a share of a velocity


class DampedInverseConfig(ConfigBlock):
    """Gains of the damped inverse."""

    feedback_gain_1_s: NonNegative = Field(description='gain on the error of the tip')
    damping: Positive = Field(
        le=1.0, description='damping of the inverse, relative to the arm length squared'
    )
    max_correction_speed_m_s: WatchedSpeed = Field(
        description='bound on the velocity that the feedback commands'
    )


class DampedInverse(Controller):
    """
    qdot = J^T (J J^T + eps)^-1 (v_d + K e) in scaled coordinates: Wampler's damped inverse.

    If this velocity exceeds the bounds, the nearest one within them is taken. The controller has
    no aim but the tip: coordinates that do not move the tip drift.
    """

    def __init__(self, config: DampedInverseConfig, model: ArmModel) -> None:
        self.config = config
        self._damping = config.damping * model.rest_length_m**2

    def velocity(
        self,
        state: ControlState,
        reference: TipReference,
        bounds: VelocityBounds,
        period_s: float,
    ) -> Motion:
        """Return the damped inverse's velocity, or the nearest one within the bounds."""
        correction = self.config.feedback_gain_1_s * reference.error
        most = self.config.max_correction_speed_m_s / max(float(np.linalg.norm(correction)), 1e-12)
        wanted = reference.velocity - reference.drift + min(most, 1.0) * correction
        J = state.jacobian * state.scale
        aim = J.T @ np.linalg.solve(J @ J.T + self._damping * np.eye(3), wanted)
        x = within_bounds(np.eye(len(aim)), -aim, bounds)
        if x is None:
            return Motion(np.zeros(len(aim)), wanted, True)
        bounded = float(np.linalg.norm(x - aim)) > _NEAR * float(np.linalg.norm(aim))
        return Motion(x * state.scale, wanted, bounded)


def build(config: DampedInverseConfig, model: ArmModel) -> DampedInverse:
    """Return the controller of an arm."""
    return DampedInverse(config, model)


PART = Part(
    'controller',
    'damped_inverse',
    DampedInverseConfig,
    {'controller': f'{__name__}:build'},
    'damped pseudo-inverse and proportional feedback alone',
)
