"""Velocity of the configuration from an estimate's strains and their rates."""

from __future__ import annotations

import numpy as np

from softarm_ros.control.estimation.chain_kernels import exp_se3_into
from softarm_ros.control.estimator import Estimate
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel

_STEP_S = 1e-3  # of the central difference


def configuration_rate(model: ArmModel, estimate: Estimate) -> Array | None:
    """
    Return the velocity (dof,) of the estimated configuration, in its unit per second.

    It is the central difference of the configurations that the model observes at the section tips
    a millisecond before and after. None if the estimator does not estimate velocities, or the
    section tips do not determine the configuration.
    """
    strains, rates = estimate.strains, estimate.strain_rates
    if estimate.configuration is None or strains is None or rates is None:
        return None
    sides = []
    for step in (_STEP_S, -_STEP_S):
        try:
            sides.append(model.observed_configuration(_tips(strains + step * rates)))
        except ValueError:
            return None
    after, before = sides
    if after is None or before is None:
        return None
    return np.asarray((after - before) / (2.0 * _STEP_S))


def _tips(strains: Array) -> Array:
    """Return the section tips (sections, 4, 4) of strains (sections, 6)."""
    tips = np.empty((len(strains), 4, 4))
    before, own = np.eye(4), np.eye(4)
    for k, strain in enumerate(strains):
        exp_se3_into(strain, 1.0, own)
        before = before @ own
        tips[k] = before
    return tips
