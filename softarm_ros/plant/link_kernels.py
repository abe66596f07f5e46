"""Compiled straight springs between bodies of the chain, with parallel dashpots."""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.coupling_kernels import couple_chain
from softarm_ros.plant.layout import Links, Scratch


@kernel(allocates=False)
def measure_links(links: Links, scratch: Scratch) -> None:
    """
    Write the length of every link and its derivatives by the joint coordinates.

    `load_bodies` must have been called for this state. `scratch.gradient` must be zero at the
    joints that a link does not span.
    """
    for i in range(links.first.shape[0]):
        a, b = links.first[i], links.last[i]
        x, y = links.anchor[i, 0], links.anchor[i, 1]
        A, B, p, r = scratch.rotation[a], scratch.rotation[b], scratch.origin[a], scratch.origin[b]
        b0 = r[0] + B[0, 0] * x + B[0, 1] * y
        b1 = r[1] + B[1, 0] * x + B[1, 1] * y
        b2 = r[2] + B[2, 0] * x + B[2, 1] * y
        u0 = b0 - p[0] - A[0, 0] * x - A[0, 1] * y
        u1 = b1 - p[1] - A[1, 0] * x - A[1, 1] * y
        u2 = b2 - p[2] - A[2, 0] * x - A[2, 1] * y
        length = math.sqrt(u0 * u0 + u1 * u1 + u2 * u2)
        u0, u1, u2 = u0 / length, u1 / length, u2 / length
        scratch.length[i] = length
        m0, m1, m2 = b1 * u2 - b2 * u1, b2 * u0 - b0 * u2, b0 * u1 - b1 * u0
        for g in range(a, b):
            S = scratch.motion[g]
            for j in range(4):
                scratch.gradient[i, g, j] = (
                    m0 * S[0, j] + m1 * S[1, j] + m2 * S[2, j]
                    + u0 * S[3, j] + u1 * S[4, j] + u2 * S[5, j]
                )  # fmt: skip


@kernel(allocates=False)
def couple_links(
    links: Links,
    velocity: Array,
    rest: Array,
    stiffness: Array,
    damping_time: float,
    scratch: Scratch,
    h: float,
) -> None:
    """
    Write compliance and gap of all links for one step.

    T = k (l' - rest + damping_time (l' - l)/h) with l' the length at the end of the step, which
    decreases linearly with the tensions; a link pulls and pushes. `velocity` (n, 4) of the joints;
    `rest` (m,) [m], `stiffness` (m,) [N/m].
    """
    m = links.first.shape[0]
    compliance, gap = scratch.compliance, scratch.gap
    compliance[:] = 0.0
    share = h / (h + damping_time)
    for i in range(m):
        gap[i] = share * (scratch.length[i] - rest[i])
        compliance[i, i] = share / stiffness[i]
        scratch.taut[i] = True
    couple_chain(velocity, links.last, scratch, h)
