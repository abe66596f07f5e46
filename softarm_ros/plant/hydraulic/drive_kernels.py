"""Compiled servo motors and pressure sensors of the water-hydraulic arm."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.drivers import pressure_loop
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.hydraulic.layout import Gauges, Motors

# The driver's own formulas.
filtered_error = kernel(allocates=False)(pressure_loop.filtered_error)
loop_torque = kernel(allocates=False)(pressure_loop.loop_torque)


@kernel(allocates=False)
def aim(motors: Motors, i: int) -> None:
    """Write the target torque of motor i from the loop, with the drive's resolution and limit."""
    torque = loop_torque(
        motors.torque_per_pressure[i], motors.wanted[i], motors.error[i], motors.gain
    )
    rounded = motors.torque_step * np.rint(torque / motors.torque_step)
    motors.target[i] = min(max(rounded, -motors.max_torque), motors.max_torque)


@kernel(allocates=False)
def advance_motors(motors: Motors, held: bool, reading: Array, h: float) -> None:
    """
    Advance by h [s], with the pressures (m,) [Pa] that the sensors read at the beginning.

    `held`: the targets stay constant, and the loop's torque is ignored.
    """
    keep = math.exp(-h / motors.filter_s)
    left = math.exp(-h / motors.lag_s)
    for i in range(motors.torque.shape[0]):
        motors.error[i] = filtered_error(motors.error[i], motors.wanted[i], reading[i], keep)
        if not held:
            aim(motors, i)
        before, target = motors.torque[i], motors.target[i]
        away = before - target
        motors.mean[i] = target + away * (motors.lag_s / h) * (1.0 - left)
        motors.torque[i] = target + away * left
        motors.rate[i] = (motors.torque[i] - before) / h


@kernel(allocates=False)
def read_gauge(gauges: Gauges, i: int, pressure: float, deviate: float) -> None:
    """Take a reading of a pressure [Pa], with its noise in standard deviations."""
    gauges.signal[i] = pressure + gauges.offset[i] + gauges.noise * deviate
    gauges.reading[i] = gauges.step * np.rint(gauges.signal[i] / gauges.step)
