"""An extended Kalman filter around the commanded motion: what the arm does now."""

from __future__ import annotations

from softarm_ros.control.estimation.config import PredictingConfig
from softarm_ros.control.estimation.predicting import PredictingEstimator
from softarm_ros.control.estimator import Surroundings
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel


class FilterConfig(PredictingConfig):
    """The same."""


class Filter(PredictingEstimator):
    """The estimator as it is: every measurement is used once, at the state predicted for it."""


def build(
    config: FilterConfig, model: ArmModel, surroundings: Surroundings | None = None
) -> Filter:
    """Return the estimator of an arm."""
    return Filter(config, model, surroundings or Surroundings())


PART = Part(
    'estimator',
    'filter',
    FilterConfig,
    {'estimator': f'{__name__}:build'},
    'extended Kalman filter on SE(3) around the commanded motion, with its delay and outliers',
)
