"""Compiled electropneumatic regulators: play of the valve, lag and flow, sensor."""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.pneumatic.layout import Valves


@kernel(allocates=False)
def sensed(valves: Valves, i: int, pressure: float) -> float:
    """Return the reading of the sensor of regulator i at a pressure [Pa], without noise."""
    if pressure <= 0.0:
        return 0.0
    return (pressure - valves.offset[i]) / valves.gain[i]


@kernel(allocates=False)
def advance_valves(valves: Valves, noise: Array, h: float) -> None:
    """Advance by h [s]; `noise` (m,) [Pa] is that of the sensors."""
    play = 0.5 * valves.dead_zone
    share = -math.expm1(-h / valves.lag)
    most = valves.fastest * h
    for i in range(valves.signal.shape[0]):
        if valves.signal[i] > 0.0:
            wanted = max(valves.gain[i] * valves.signal[i] + valves.offset[i], 0.0)
            valves.seat[i] = max(min(max(valves.seat[i], wanted - play), wanted + play), 0.0)
        else:
            valves.seat[i] = 0.0
        move = min(max((valves.seat[i] - valves.pressure[i]) * share, -most), most)
        valves.pressure[i] += move
        valves.rate[i] = move / h
        valves.measured[i] = sensed(valves, i, valves.pressure[i]) + noise[i]
