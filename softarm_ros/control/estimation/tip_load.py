"""The load at the tip, from how far it has moved the tip since it was known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.control.estimator import Estimate
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ArmModel


@dataclass(frozen=True)
class TipLoad:
    """A force (3,) [N] on the tip, base frame, beside what was there before; with covariance."""

    force: Array
    covariance: Array


def tip_compliance(model: ArmModel, actuation: Array, step_N: float) -> Array:
    """
    Return how the tip's pose gives way to a force on it (6, 3) [m/N, rad/N], base frame.

    Central differences of the model; raises what its `forward` does where it knows no loads.
    """
    columns = np.empty((6, 3))
    for axis in range(3):
        force = np.zeros(3)
        force[axis] = step_N
        after, before = (model.forward(actuation, tuple(s * force)).tip for s in (1.0, -1.0))
        columns[:, axis] = displacement(before, after) / (2.0 * step_N)
    return columns


def tip_load(
    before: Estimate, now: Estimate, compliance: Array, spread_N: float, drift: Array
) -> TipLoad:
    """
    Return the force that has come since `before`, the command being the same.

    Parameters
    ----------
    before, now : Estimate
        With covariances; the model error is in both, and falls out.
    compliance : (6, 3)
        `tip_compliance`.
    spread_N : float
        Standard deviation of forces that may come: it decides what the tip does not tell, such as
        a force along a straight arm.
    drift : (6,)
        By how much model error may have changed in between [m, rad].

    Raises
    ------
    ValueError
        If an estimate has no covariance: it is not one of a filter.

    """
    if before.tip_covariance is None or now.tip_covariance is None:
        raise ValueError('tip load: the estimates have no covariance; expected those of a filter')
    moved = displacement(before.tip, now.tip)
    noise = before.tip_covariance + now.tip_covariance + np.diag(np.square(drift))
    prior = spread_N**2 * np.eye(3)
    gain = np.linalg.solve(compliance @ prior @ compliance.T + noise, compliance @ prior).T
    left = np.eye(3) - gain @ compliance
    return TipLoad(gain @ moved, left @ prior)
