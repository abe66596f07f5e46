"""The minimum-jerk motion from 0 to 1: begins and ends at rest."""

from __future__ import annotations

import math

PEAK_SPEED = 1.875  # largest first derivative by the share of time
PEAK_ACCELERATION = 10.0 / math.sqrt(3.0)  # largest second derivative by it


def blend(share: float) -> float:
    """Return the share of the way at a share of the time; at rest before 0 and after 1."""
    r = min(max(share, 0.0), 1.0)
    return r**3 * (10.0 - 15.0 * r + 6.0 * r * r)
