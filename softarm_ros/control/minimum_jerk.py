"""The minimum-jerk motion from 0 to 1, from rest to rest."""

from __future__ import annotations

import math

PEAK_SPEED = 1.875  # largest first derivative with respect to the share of time
PEAK_ACCELERATION = 10.0 / math.sqrt(3.0)  # largest second derivative, likewise


def blend(share: float) -> float:
    """Return the share of the distance at a share of the duration; constant outside 0 to 1."""
    r = min(max(share, 0.0), 1.0)
    return r**3 * (10.0 - 15.0 * r + 6.0 * r * r)
