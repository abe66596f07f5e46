"""
Compiled hysteresis of chambers: extension over pressure, the inverse of stops in parallel.

A chamber resists like a Prandtl-Ishlinskii element (`models/hysteresis.py`): pressure = elastic
part + stops over the extension. Pressure being given, the extension lags behind it and a cycle
loses energy.
"""

from __future__ import annotations

from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.layout import Array

_MAX_STEPS = 400


@kernel
def follow_pressures(
    pressures: Array,
    elastic: float,
    thresholds: Array,
    weights: Array,
    share: Array,
    stops: Array,
) -> None:
    """
    Move the extensions `share` (m,) and `stops` (m, n), in place, to the pressures (m,).

    Each step divides what is missing by the largest stiffness there may be, so that it never goes
    too far: no stop is turned back that should not be.
    """
    stiffest = elastic
    for i in range(weights.size):
        stiffest += weights[i]
    for k in range(pressures.size):
        for _ in range(_MAX_STEPS):
            held = elastic * share[k]
            for i in range(weights.size):
                held += weights[i] * stops[k, i]
            missing = pressures[k] - held
            if abs(missing) <= 1e-12 * (1.0 + abs(pressures[k])):
                break
            move = missing / stiffest
            share[k] += move
            for i in range(weights.size):
                stops[k, i] = min(max(stops[k, i] + move, -thresholds[i]), thresholds[i])
