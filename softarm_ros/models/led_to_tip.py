"""The shape nearest to a configuration whose tip is where it was measured: for drawing."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, ModelError, Vector3

_ROUNDS = 6
_THERE = 1e-3  # of the arm's length
_STEP = 0.1  # of the arm's length: the furthest that one round leads
_DAMPING = 1e-3  # of the arm's length, squared with it


def configuration_at_tip(model: ArmModel, configuration: Array, tip: Vector3) -> Array:
    """
    Return the configuration (dof,) near another one whose tip is at a measured place (3,) [m].

    Of all with that tip about the one that moves the coordinates least, each by its scale: damped
    Gauss-Newton steps from the given one. Where the model ends or the place is out of its reach,
    the nearest that was found; so this is for drawing, and nothing to be led by.
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
            move = 0.3 * move  # too far, or beyond what the model can be
            continue
        best, nearest = best + move, distance
        if distance < _THERE * length:
            break
        step = miss * min(1.0, _STEP * length / distance)
        by_scale = jacobian * scale
        move = scale * (by_scale.T @ np.linalg.solve(by_scale @ by_scale.T + damping, step))
    return best
