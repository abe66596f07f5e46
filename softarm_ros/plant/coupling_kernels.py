"""Compiled: what one step of the chain does to the lengths of all that pulls on its joints."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.layout import Scratch


@kernel(allocates=False)
def couple_chain(velocity: Array, reach: IntArray, scratch: Scratch, h: float) -> None:
    """
    Add the chain's part of a step to `gap` and the compliance of all lengths.

    Lengths at the end of the step fall with all tensions T: l + h G v - C T, G the gradients and
    C = h^2 G (M + h D + h^2 K)^-1 G^T, from the reduced joint forces of `factorise` alone. `gap`
    gets h G v of the free motion, `compliance` gets C.

    Parameters
    ----------
    velocity : (n, 4)
        Of the joints at the start of the step.
    reach : (m,)
        How many joints, from the base, each length can load.
    scratch, h
        After `factorise` with the gradients in place, for the same step h [s].

    """
    m, n = reach.shape[0], velocity.shape[0]
    compliance, gap = scratch.compliance, scratch.gap
    for g in range(n):
        inverse, response = scratch.inverse[g], scratch.response[g]
        for i in range(m):
            if g >= reach[i]:
                continue
            u = response[i]
            for j in range(4):
                gap[i] += h * scratch.gradient[i, g, j] * velocity[g, j]
            x0 = inverse[0, 0] * u[0] + inverse[0, 1] * u[1]
            x0 += inverse[0, 2] * u[2] + inverse[0, 3] * u[3]
            x1 = inverse[1, 0] * u[0] + inverse[1, 1] * u[1]
            x1 += inverse[1, 2] * u[2] + inverse[1, 3] * u[3]
            x2 = inverse[2, 0] * u[0] + inverse[2, 1] * u[1]
            x2 += inverse[2, 2] * u[2] + inverse[2, 3] * u[3]
            x3 = inverse[3, 0] * u[0] + inverse[3, 1] * u[1]
            x3 += inverse[3, 2] * u[2] + inverse[3, 3] * u[3]
            free = response[m]
            gap[i] -= h * h * (x0 * free[0] + x1 * free[1] + x2 * free[2] + x3 * free[3])
            for j in range(i + 1):
                v = response[j]
                compliance[i, j] += h * h * (x0 * v[0] + x1 * v[1] + x2 * v[2] + x3 * v[3])
    for i in range(m):
        for j in range(i):
            compliance[j, i] = compliance[i, j]
