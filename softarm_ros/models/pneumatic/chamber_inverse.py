"""Least extensions of the chambers that bring a pneumatic arm's tip to a point."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import daqp
import numpy as np

from softarm_ros.models.arm_model import Array, ModelError

if TYPE_CHECKING:
    from softarm_ros.models.pneumatic.chamber_arm import ChamberArm

_STEPS = 60
_TOLERANCE = 1e-8  # of the arm's length
_PULL, _FADING = 1e-2, 0.5  # of the least extensions beside the way to the point; per step
_DAMPING = 1e-9
_MAX_STEP = 0.25  # of the coordinates' scales
_MIN_GAIN = 0.7  # errors shrink at least so fast once the pull has faded, else there is no way
_OPTIMAL = (1, 2)


def search_extensions(arm: ChamberArm, point: Array, guess: Array | None) -> tuple[Array, float]:
    """
    Return extensions (dof,) [m] within their ranges and the distance [m] of the tip they leave.

    Bounded least squares in steps: each takes the tip to the point as far as it is linear, with
    the least extensions, a wish that fades. From the guess; from other starts too where it does
    not lead there, or without one.
    """
    starts = [] if guess is None else [guess]
    best, least, value = arm.rest_configuration, math.inf, math.inf
    enough = _TOLERANCE * arm.rest_length_m
    for start in itertools.chain(starts, _starts(arm, point)):
        extensions, missed = _reach(arm, point, start)
        size = float(np.linalg.norm(extensions))
        better = size < value if missed <= enough and least <= enough else missed < least
        if better:
            best, least, value = extensions, missed, size
        if guess is not None and least <= enough:
            break
    return best, least


def _reach(arm: ChamberArm, point: Array, start: Array) -> tuple[Array, float]:
    scale, most = arm.configuration_scale, arm.max_extension_m
    length, dof = arm.rest_length_m, start.size
    extensions = np.clip(start, 0.0, most)
    best, least = extensions, math.inf
    pull, last = _PULL, math.inf
    for _ in range(_STEPS):
        try:
            tip, J = arm.tip_and_jacobian(extensions)
        except ModelError:
            break
        missed = float(np.linalg.norm(point - tip))
        if missed < least:
            best, least = extensions, missed
        if missed <= _TOLERANCE * length and pull < 1e-6:
            break
        if pull < 1e-6 and missed > _MIN_GAIN * last:
            break
        last = missed
        # In units of the scales and of the length.
        J = J * scale / length
        H = J.T @ J + (pull**2 + _DAMPING) * np.eye(dof)
        f = -(J.T @ ((point - tip) / length) - pull**2 * extensions / scale)
        low = np.maximum(-extensions / scale, -_MAX_STEP)
        high = np.minimum((most - extensions) / scale, _MAX_STEP)
        step, _, flag, _ = daqp.solve(H, f, np.eye(dof), high, low, np.zeros(dof, dtype=np.int32))
        if flag not in _OPTIMAL:
            break
        extensions = np.clip(extensions + scale * np.asarray(step), 0.0, most)
        pull *= _FADING
    return best, least


def _starts(arm: ChamberArm, point: Array) -> list[Array]:
    """Return extensions (dof,): sections bent towards the point, alike or against each other."""
    azimuth = math.atan2(point[1], point[0])
    shares = np.linspace(0.0, 1.0, len(arm.arm.sections))
    starts = []
    for twist, bend in itertools.product((0.0, 1.5, -1.5), (0.4, 0.8)):
        angles = azimuth + twist * (shares - 0.3)
        bends = bend * np.stack([np.cos(angles), np.sin(angles)], axis=1).ravel()
        starts.append(arm.of_bends(bends))
    return starts
