"""
Compiled chambers: hysteresis of extension over pressure, creep, curve, free strains.

A chamber resists like a Prandtl-Ishlinskii element (`plant/hysteresis.py`): pressure = elastic
part + stops, as functions of the extension. The extension lags behind a given pressure, and a
cycle loses energy.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.pneumatic.layout import Chambers

_MAX_STEPS = 400


@kernel(allocates=False)
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

    Each step divides the missing pressure by the largest possible stiffness, so it never
    overshoots: no stop reverses wrongly.
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


@kernel(allocates=False)
def advance_chambers(chambers: Chambers, k: int, pressures: Array, h: float) -> None:
    """
    Advance section k by h [s] under `pressures` (3,), shares of the full one; write its `output`.

    The creep is exact for an extension that is linear in time within the step. `pressures` may be
    the section's own `output`.
    """
    for j in range(3):
        share = chambers.share[k, j : j + 1]
        before = share[0]
        follow_pressures(
            pressures[j : j + 1], chambers.elastic[k], chambers.thresholds[k],
            chambers.weights[k], share, chambers.stops[k, j : j + 1],
        )  # fmt: skip
        slope = (share[0] - before) / h
        total = share[0]
        for i in range(chambers.creep_lag.shape[1]):
            lag = chambers.creep_lag[k, i]
            away = chambers.crept[k, j, i] - (before - lag * slope)
            chambers.crept[k, j, i] = away * math.exp(-h / lag) + (share[0] - lag * slope)
            total += chambers.creep_share[k, i] * chambers.crept[k, j, i]
        chambers.output[k, j] = chambers.scale[k] * total


@kernel(allocates=False)
def free_extension(chambers: Chambers, k: int, j: int, share: float) -> float:
    """Return the extension [m] of chamber j of section k at a share of the full pressure."""
    linear = chambers.linear[k]
    return chambers.extension[k, j] * share * (linear + (1.0 - linear) * abs(share))


@kernel(allocates=False)
def free_strain_into(chambers: Chambers, k: int, shares: Array, free: Array) -> None:
    """
    Write the free strain (4,) of section k at shares (3,) of the full pressure.

    Curvatures about x, y, z [1/m], stretch.
    """
    free[:] = 0.0
    for j in range(3):
        extension = free_extension(chambers, k, j, shares[j])
        free[0] += chambers.bending[k, j, 0] * extension
        free[1] += chambers.bending[k, j, 1] * extension
        free[3] += chambers.stretching[k] * extension
