"""Compiled bends and elongations from measured section tips."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.turn_kernels import turns_between


@kernel
def seen_configuration(tips: Array, lengths: Array) -> Array:
    """
    Return the configuration (3 s,) of section tips (s, 4, 4) for rest lengths (s,) [m].

    Each section is treated as a helix: the rotation between its ends gives the bend, and their
    distance gives the elongation.
    """
    turns, seen = turns_between(tips), np.empty(3 * len(tips))
    for k in range(len(tips)):
        squared = 0.0
        for i in range(3):
            squared += (tips[k, i, 3] - (tips[k - 1, i, 3] if k > 0 else 0.0)) ** 2
        stretch = math.sqrt(squared) / (lengths[k] * _chord_share(turns[k]))
        seen[3 * k], seen[3 * k + 1] = turns[k, 1], -turns[k, 0]
        seen[3 * k + 2] = lengths[k] * (stretch - 1.0)
    return seen


@kernel(allocates=False)
def _chord_share(turn: Array) -> float:
    """Return the end-to-end distance of a unit-length helix with rotation (3,) [rad]."""
    angle = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
    if angle < 1e-4:
        return 1.0 - (turn[0] ** 2 + turn[1] ** 2) / 24.0
    # Along the rotation axis the cosine, across it the chord of a circle.
    along = turn[2] / angle
    across = math.sqrt(max(1.0 - along * along, 0.0))
    return math.hypot(along, across * 2.0 * math.sin(0.5 * angle) / angle)
