"""What measured section tips say of bends and elongations, compiled."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.turn_kernels import turns_between


@kernel
def seen_configuration(tips: Array, lengths: Array) -> Array:
    """
    Return the configuration (3 s,) of tips (s, 4, 4) of sections of lengths (s,) [m] at rest.

    Each section is a helix: the turn between its ends gives the bend, their distance the
    elongation.
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
    """Return the distance between the ends of a helix of unit length that turns by (3,) rad."""
    angle = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
    if angle < 1e-4:
        return 1.0 - (turn[0] ** 2 + turn[1] ** 2) / 24.0
    # Along the axis of turning the share cos, across it the chord of a circle.
    along = turn[2] / angle
    across = math.sqrt(max(1.0 - along * along, 0.0))
    return math.hypot(along, across * 2.0 * math.sin(0.5 * angle) / angle)
