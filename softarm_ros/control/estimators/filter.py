"""Extended Kalman filter around the commanded motion: estimates the present state of the arm."""

from __future__ import annotations

from softarm_ros.control.estimation.config import PredictingConfig
from softarm_ros.control.estimation.predicting import PredictingEstimator
from softarm_ros.control.estimator import Surroundings
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel


class FilterConfig(PredictingConfig):
    """The fields of `PredictingConfig`."""


class Filter(PredictingEstimator):
    """`PredictingEstimator` as it is: uses every measurement once, at its predicted state."""


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
    'extended Kalman filter on SE(3) around the commanded motion, for delayed and wrong poses',
)
