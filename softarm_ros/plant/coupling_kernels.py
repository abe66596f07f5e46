"""Compiled coupling of lengths: effect of one step of the chain on all cables or muscles."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.layout import Scratch


@kernel(allocates=False)
def couple_chain(velocity: Array, reach: IntArray, scratch: Scratch, h: float) -> None:
    """
    Add the chain's part of a step to `gap` and the compliance of all lengths.

    Lengths at the end of the step decrease with all tensions T: l + h G v - C T, with gradients G
    and C = h^2 G (M + h D + h^2 K)^-1 G^T, computed only from the reduced joint forces of
    `factorise`. Adds h G v of the free motion to `gap`, and C to `compliance`.

    Parameters
    ----------
    velocity : (n, 4)
        Of the joints at the start of the step.
    reach : (m,)
        Number of joints, from the base, that each length can load.
    scratch, h
        After `factorise` with the gradients in place, for the same step h [s].

    """
    m, n = reach.shape[0], velocity.shape[0]
    compliance, gap, gradient = scratch.compliance, scratch.gap, scratch.gradient
    square = h * h
    for g in range(n):
        inverse, response = scratch.inverse[g], scratch.response[g]
        v0, v1, v2, v3 = velocity[g, 0], velocity[g, 1], velocity[g, 2], velocity[g, 3]
        f0, f1, f2, f3 = response[m, 0], response[m, 1], response[m, 2], response[m, 3]
        d00, d10, d20, d30 = inverse[0, 0], inverse[1, 0], inverse[2, 0], inverse[3, 0]
        d11, d21, d31 = inverse[1, 1], inverse[2, 1], inverse[3, 1]
        d22, d32, d33 = inverse[2, 2], inverse[3, 2], inverse[3, 3]
        for i in range(m):
            if g >= reach[i]:
                continue
            u0, u1, u2, u3 = response[i, 0], response[i, 1], response[i, 2], response[i, 3]
            x0 = square * (d00 * u0 + d10 * u1 + d20 * u2 + d30 * u3)
            x1 = square * (d10 * u0 + d11 * u1 + d21 * u2 + d31 * u3)
            x2 = square * (d20 * u0 + d21 * u1 + d22 * u2 + d32 * u3)
            x3 = square * (d30 * u0 + d31 * u1 + d32 * u2 + d33 * u3)
            slide = gradient[i, g, 0] * v0 + gradient[i, g, 1] * v1
            slide += gradient[i, g, 2] * v2 + gradient[i, g, 3] * v3
            gap[i] += h * slide - (x0 * f0 + x1 * f1 + x2 * f2 + x3 * f3)
            for j in range(i + 1):
                v = response[j]
                compliance[i, j] += x0 * v[0] + x1 * v[1] + x2 * v[2] + x3 * v[3]
    for i in range(m):
        for j in range(i):
            compliance[j, i] = compliance[i, j]
