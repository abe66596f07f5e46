"""Compiled drag of the water around the bodies of the chain, linearised for one step."""

from __future__ import annotations

from typing import NamedTuple

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.hydrodynamics.morison_kernels import drag_into
from softarm_ros.plant.layout import Medium, Scratch


class Water(NamedTuple):
    """
    Drag of the water around the arm; empty arrays in air.

    Attributes
    ----------
    coefficients : (5,)
        See `morison_kernels`.
    length, diameter : (n,)
        Of the piece at each body's origin [m].
    tangent, relative : (n, 3)
        Working memory: axis of each body, velocity of the water relative to it [m/s].

    """

    coefficients: Array
    length: Array
    diameter: Array
    tangent: Array
    relative: Array


@kernel(allocates=False)
def wet(scratch: Scratch, water: Water, still: Medium, medium: Medium) -> None:
    """Write `medium`: `still` plus the water's drag, linearised about the present velocity."""
    n = water.length.shape[0]
    tangent, relative, c = water.tangent, water.relative, still.current
    for g in range(n):
        V, r = scratch.twist[g], scratch.origin[g + 1]
        relative[g, 0] = c[0] - (V[3] + V[1] * r[2] - V[2] * r[1])
        relative[g, 1] = c[1] - (V[4] + V[2] * r[0] - V[0] * r[2])
        relative[g, 2] = c[2] - (V[5] + V[0] * r[1] - V[1] * r[0])
        for k in range(3):
            tangent[g, k] = scratch.rotation[g + 1, k, 2]
    drag_into(
        water.coefficients, water.length, water.diameter, tangent, relative, medium.force,
        medium.drag,
    )  # fmt: skip
    for g in range(n):
        for i in range(3):
            for j in range(3):
                # drag = D (w - w_0) + drag_0 with w = c - u: constant is drag_0 + D (c - w_0).
                medium.force[g, i] += medium.drag[g, i, j] * (c[j] - relative[g, j])
        for i in range(3):
            medium.force[g, i] += still.force[g, i]
            for j in range(3):
                medium.drag[g, i, j] += still.drag[g, i, j]
