"""Compiled fabric around the sections: stops in parallel with their bending stiffness."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.hydraulic.layout import Stops
from softarm_ros.plant.hysteresis import move_stops
from softarm_ros.plant.joint_kernels import log_of_quaternion
from softarm_ros.plant.layout import ArmState


@kernel(allocates=False)
def section_bends_into(state: ArmState, per: int, bends: Array) -> None:
    """Write the rotation vectors (sections, 2) [rad] about x and y, summed over the joints."""
    bends[:] = 0.0
    for g in range(state.extension.shape[0]):
        x, y, _, _ = log_of_quaternion(state.quaternion[g])
        bends[g // per, 0] += x
        bends[g // per, 1] += y


@kernel(allocates=False)
def follow_bends(stops: Stops, bends: Array, moment: Array) -> None:
    """Move the stops to bends (sections, 2) [rad]; write their moments on the joints."""
    for k in range(stops.weight.shape[0]):
        for j in range(2):
            held = stops.held[k, j]
            move_stops(bends[k, j] - stops.bend[k, j], stops.threshold, stops.weight[k], held)
            stops.bend[k, j] = bends[k, j]
            total = 0.0
            for i in range(held.shape[0]):
                total += stops.weight[k, i] * held[i]
            moment[k, j] = -total
