"""A configuration near a given one that puts the tip at its measured position: for drawing."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, ModelError, Vector3

_ROUNDS = 6
_THERE = 1e-3  # of the arm's length: the tip counts as reached
_STEP = 0.1  # of the arm's length: the largest tip motion in one round
_DAMPING = 1e-3  # of the arm's length, before squaring


def configuration_at_tip(model: ArmModel, configuration: Array, tip: Vector3) -> Array:
    """
    Return a configuration (dof,) near a given one with its tip at a measured position (3,) [m].

    Damped Gauss-Newton steps from the given configuration change its coordinates, in units of
    their scales, about as little as possible. If the position is out of reach or beyond the model,
    the nearest configuration found is returned. So use the result for drawing, not for control.
    """
    length, scale = model.rest_length_m, model.configuration_scale
    goal = np.asarray(tip, dtype=float)
    best = np.asarray(configuration, dtype=float)
    damping = (_DAMPING * length) ** 2 * np.eye(3)
    nearest, move = np.inf, np.zeros(best.size)
    for _ in range(_ROUNDS):
        try:
            place, jacobian = model.tip_and_jacobian(best + move)
            miss = goal - place
            distance = float(np.linalg.norm(miss))
        except ModelError:
            distance = np.inf
        if distance >= nearest or not np.isfinite(distance):
            move = 0.3 * move  # the step was too long or left the validity of the model
            continue
        best, nearest = best + move, distance
        if distance < _THERE * length:
            break
        step = miss * min(1.0, _STEP * length / distance)
        by_scale = jacobian * scale
        move = scale * (by_scale.T @ np.linalg.solve(by_scale @ by_scale.T + damping, step))
    return best
