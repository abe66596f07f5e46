"""How a chain of joints is brought to rest: what changes the way there, not the end."""

from __future__ import annotations

import numpy as np

from softarm_ros.plant.layout import BodyParameters

STILL_RAD_S = 1e-8  # velocities of an arm at rest
SETTLE_S = 240.0  # simulated, at most
_DAMPING_S = 0.05  # at least


def calm(body: BodyParameters) -> BodyParameters:
    """Return a body with its damping raised."""
    return body._replace(damping_time=np.maximum(body.damping_time, _DAMPING_S))


def calm_time(damping_s: float) -> float:
    """Return a damping time [s] of what is tied to such a body, raised likewise."""
    return max(damping_s, _DAMPING_S)
