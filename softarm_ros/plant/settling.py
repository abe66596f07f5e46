"""Extra damping to bring a chain of joints to rest: changes the way there, not the end."""

from __future__ import annotations

import numpy as np

from softarm_ros.plant.layout import BodyParameters

STILL_RAD_S = 1e-8  # largest velocities of an arm at rest
SETTLE_S = 240.0  # longest simulated time
_DAMPING_S = 0.05  # least damping time


def calm(body: BodyParameters) -> BodyParameters:
    """Return a body with increased damping."""
    return body._replace(damping_time=np.maximum(body.damping_time, _DAMPING_S))


def calm_time(damping_s: float) -> float:
    """Return the damping time [s] of an element attached to such a body, increased likewise."""
    return max(damping_s, _DAMPING_S)
