"""Resolved rate with a Jacobian that learns from the measured motion of the tip."""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from softarm_ros.control.controller import (
    ControlState,
    Motion,
    TipReference,
    VelocityBounds,
)
from softarm_ros.control.controllers.resolved_rate import ResolvedRate, ResolvedRateConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel

_SLOWEST_M_S = 1e-3  # slower tip motion cannot be told from noise
_PATIENCE = 3.0  # least ratio of learning time to filter time


class AdaptiveRateConfig(ResolvedRateConfig):
    """Gains of the resolved-rate controller, and the learning speed of its Jacobian."""

    filter_time_s: Positive = Field(
        default=0.3,
        description='time constant of the low-pass on commanded and measured motion; about the '
        'lag of the arm',
    )
    learning_time_s: Positive = Field(
        default=1.5,
        description='time in which the Jacobian adopts a measured change; at least some swings '
        'of the arm',
    )
    forgetting_time_s: Positive = Field(
        default=30.0,
        description='time in which the Jacobian forgets a change that is not measured again',
    )
    max_change: Positive = Field(
        default=0.5, lt=1.0, description='bound on |E|, the learned share of the motion'
    )

    @model_validator(mode='after')
    def _learns_slower_than_it_looks(self) -> AdaptiveRateConfig:
        least = _PATIENCE * self.filter_time_s
        if self.learning_time_s < least:
            raise ValueError(
                f'learning_time_s is {self.learning_time_s:g}, below {_PATIENCE:g} times '
                f'filter_time_s ({least:g} s): the loop would learn from its own lag'
            )
        return self


class AdaptiveRate(ResolvedRate):
    """
    Resolved rate that corrects the model's Jacobian by the tip's measured motion (Broyden's rule).

    Because of friction, cables that share a load and stiffness that varies with the pose, the tip
    moves less, more or in another direction than the model says; feedback of gain K then lags by
    the missing velocity over K. This controller compares the measured velocity of the tip (that of
    the reference less the change of the error) with the velocity expected from the commanded
    motion, both through the same low-pass. It slowly adopts the change of least norm that explains
    the difference:

        D' = (v - (J + D) q') q'^T / (|q'|^2 + floor) / learning_time - D / forgetting_time

    (Broyden 1965; on continuum arms without a model Yip and Camarillo, IEEE T-RO 2014). For
    directions in which nothing has moved, the model stays as it is. In open loop the tip is that
    of the model, and nothing is learned.
    """

    config: AdaptiveRateConfig

    def reset(self) -> None:
        """Forget the integral and what was learned."""
        super().reset()
        self._change = np.zeros((3, 3))  # E
        # Motion of the tip [m/s], filtered.
        self._seen, self._modelled = np.zeros(3), np.zeros(3)
        self._last: tuple[Array, Array] | None = None  # configuration and error at the newest pose
        self._asked = np.zeros(3)  # displacement of the reference since then [m]
        self._drifted = np.zeros(3)  # drift of the tip since then [m]
        self._waited_s = 0.0

    def velocity(
        self,
        state: ControlState,
        reference: TipReference,
        bounds: VelocityBounds,
        period_s: float,
    ) -> Motion:
        """Learn from the motion since the last period, then solve with the corrected Jacobian."""
        self._learn(state, reference, period_s)
        return super().velocity(state, reference, bounds, period_s)

    def _wanted(self, reference: TipReference, period_s: float) -> Array:
        """Return the velocity (3,) [m/s] to ask of the model for the wanted motion of the tip."""
        wanted = super()._wanted(reference, period_s) + reference.drift
        return np.asarray(np.linalg.solve(np.eye(3) + self._change, wanted)) - reference.drift

    def _learn(self, state: ControlState, reference: TipReference, period_s: float) -> None:
        configuration, error = state.command.configuration, reference.error
        if self._last is None:
            self._last = configuration, error
            return
        before, error_before = self._last
        self._asked = self._asked + reference.velocity * period_s
        self._drifted = self._drifted + reference.drift * period_s
        self._waited_s += period_s
        if np.array_equal(error, error_before):
            return  # no newer pose, so nothing to learn from
        waited = self._waited_s
        seen = (self._asked - (error - error_before)) / waited
        modelled = (state.jacobian @ (configuration - before) + self._drifted) / waited
        self._last = configuration, error
        self._asked, self._drifted, self._waited_s = np.zeros(3), np.zeros(3), 0.0
        share = min(waited / self.config.filter_time_s, 1.0)
        self._seen = self._seen + share * (seen - self._seen)
        self._modelled = self._modelled + share * (modelled - self._modelled)
        self._change = self._updated(self._change, waited)

    def _updated(self, change: Array, waited_s: float) -> Array:
        moved = self._modelled
        missing = self._seen - moved - change @ moved
        share = min(waited_s / self.config.learning_time_s, 1.0)
        change = change + share * np.outer(missing, moved) / (moved @ moved + _SLOWEST_M_S**2)
        change = change * max(0.0, 1.0 - waited_s / self.config.forgetting_time_s)
        size = float(np.linalg.norm(change, 2))
        return np.asarray(change * min(1.0, self.config.max_change / max(size, 1e-12)))


def build(config: AdaptiveRateConfig, model: ArmModel) -> AdaptiveRate:
    """Return the controller of an arm."""
    return AdaptiveRate(config, model)


PART = Part(
    'controller',
    'adaptive_rate',
    AdaptiveRateConfig,
    {'controller': f'{__name__}:build'},
    'resolved_rate whose Jacobian learns from the measured motion of the tip; Broyden 1965',
)
