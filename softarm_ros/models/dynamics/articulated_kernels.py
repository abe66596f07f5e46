"""
Compiled articulated-body solve of (M + a C + b D + c K) x = r, linear in the segments.

M is the mass matrix, C the drag, D and K are material damping and stiffness. With (a, b, c) =
(0, 0, 0) the solve is forward dynamics; with the factors of a time step, it is the linear algebra
of an implicit integrator. Each segment is a rod piece between its two end frames. Eliminating the
strains segment by segment, from the tip to the base, carries a (6, 6) inertia inward
(Featherstone's algorithm for elastic joints with mass of their own).
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import inlined, kernel
from softarm_ros.geometry.symmetric_kernels import invert_symmetric_4
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch
from softarm_ros.models.dynamics.recursion_kernels import across, cross, turn, turn_back


@kernel
def factorise(
    body: Body,
    loads: Loads,
    drag_time: float,
    damping_time: float,
    stiffness_time2: float,
    scratch: Scratch,
) -> bool:
    """
    Factorise M + drag_time C + damping_time D + stiffness_time2 K; False if not definite.

    `place_arm` must have been called for the strains.
    """
    ll, la, aa = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    work, more = np.empty((3, 3)), np.empty((3, 3))
    U = np.empty((6, 4))
    for k in range(body.length.shape[0] - 1, -1, -1):
        if loads.added_mass.shape[0] > 0:
            A = loads.added_mass[k]
            for i in range(3):
                for j in range(3):
                    ll[i, j] += A[i, j]
                    la[i, j] += A[i, j + 3]
                    aa[i, j] += A[i + 3, j + 3]
        if loads.node_damping.shape[0] > 0:
            B = loads.node_damping[k]
            for i in range(3):
                for j in range(3):
                    ll[i, j] += drag_time * B[i, j]
                    la[i, j] += drag_time * B[i, j + 3]
                    aa[i, j] += drag_time * B[i + 3, j + 3]
        if body.has_connector[k]:
            _turn_inertia(body.turn[k], ll, la, aa, work)
            _shift_inertia(body.connector[k], ll, la, aa, work)
        if body.has_body[k]:
            d, s = drag_time * body.tip_drag[k, 0], drag_time * body.tip_drag[k, 1]
            _add_point(body.tip_mass[k], body.tip_centre[k], ll, la, aa)
            for i in range(3):
                ll[i, i] += d
                aa[i, i] += s
                for j in range(3):
                    aa[i, j] += body.tip_inertia[k, i, j]
        _turn_inertia(scratch.turned[k], ll, la, aa, work)
        # Wrench at the distal frame per strain acceleration.
        P, W = scratch.end_map[k], scratch.end_turn[k]
        for i in range(3):
            U[i, 0] = ll[i, 0] * P[0, 0] + ll[i, 1] * P[1, 0] + ll[i, 2] * P[2, 0]
            U[i + 3, 0] = la[0, i] * P[0, 0] + la[1, i] * P[1, 0] + la[2, i] * P[2, 0]
            for j in range(3):
                U[i, j + 1] = (
                    ll[i, 0] * P[0, j + 1]
                    + ll[i, 1] * P[1, j + 1]
                    + ll[i, 2] * P[2, j + 1]
                    + la[i, 0] * W[0, j]
                    + la[i, 1] * W[1, j]
                    + la[i, 2] * W[2, j]
                )
                U[i + 3, j + 1] = (
                    la[0, i] * P[0, j + 1]
                    + la[1, i] * P[1, j + 1]
                    + la[2, i] * P[2, j + 1]
                    + aa[i, 0] * W[0, j]
                    + aa[i, 1] * W[1, j]
                    + aa[i, 2] * W[2, j]
                )
        mass = body.mass[k] + drag_time * body.drag[k, 0]
        J = scratch.inertia[k]
        for i in range(3):
            for j in range(3):
                more[i, j] = J[i, j]
            more[i, i] += drag_time * body.drag[k, 1]
        H = scratch.inverse[k]
        _own_inertia(body, k, damping_time, stiffness_time2, mass, more, U, scratch, H)
        if not invert_symmetric_4(H):
            return False
        _shift_inertia(scratch.end[k], ll, la, aa, work)
        c = scratch.centre[k]
        _add_point(mass, c, ll, la, aa)
        for i in range(3):
            for j in range(3):
                aa[i, j] += more[i, j]
        # Wrench at the proximal frame per strain acceleration.
        p, C, V = scratch.end[k], scratch.centre_map[k], scratch.middle_turn[k]
        for j in range(4):
            x, y, z = cross(p[0], p[1], p[2], U[0, j], U[1, j], U[2, j])
            fx, fy, fz = mass * C[0, j], mass * C[1, j], mass * C[2, j]
            mx, my, mz = cross(c[0], c[1], c[2], fx, fy, fz)
            U[0, j] += fx
            U[1, j] += fy
            U[2, j] += fz
            U[3, j] += x + mx
            U[4, j] += y + my
            U[5, j] += z + mz
            if j > 0:
                x, y, z = turn(more, V[0, j - 1], V[1, j - 1], V[2, j - 1])
                U[3, j] += x
                U[4, j] += y
                U[5, j] += z
        _eliminate(U, H, scratch.gain[k], ll, la, aa)
    return True


@inlined
def _own_inertia(
    body: Body,
    k: int,
    damping_time: float,
    stiffness_time2: float,
    mass: float,
    J: Array,
    U: Array,
    scratch: Scratch,
    H: Array,
) -> None:
    """Write the lower triangle of the matrix (4, 4) of a segment's own strains."""
    P, W = scratch.end_map[k], scratch.end_turn[k]
    C, V = scratch.centre_map[k], scratch.middle_turn[k]
    length, D, K = body.length[k], body.damping[k], body.stiffness[k]
    for i in range(4):
        for j in range(i + 1):
            total = length * (damping_time * D[i, j] + stiffness_time2 * K[i, j])
            for s in range(3):
                total += P[s, i] * U[s, j] + mass * C[s, i] * C[s, j]
            H[i, j] = total
        H[i, i] += body.inner[k, i]
    for j in range(1, 4):
        x, y, z = turn(J, V[0, j - 1], V[1, j - 1], V[2, j - 1])
        for i in range(j, 4):
            H[i, j] += V[0, i - 1] * x + V[1, i - 1] * y + V[2, i - 1] * z
    for i in range(1, 4):
        for j in range(i + 1):
            H[i, j] += W[0, i - 1] * U[3, j] + W[1, i - 1] * U[4, j] + W[2, i - 1] * U[5, j]


@inlined
def _eliminate(U: Array, H: Array, gain: Array, ll: Array, la: Array, aa: Array) -> None:
    """Write gain = U H^-1 and subtract gain U^T from the carried inertia."""
    for i in range(6):
        for j in range(4):
            gain[i, j] = (
                U[i, 0] * H[0, j] + U[i, 1] * H[1, j] + U[i, 2] * H[2, j] + U[i, 3] * H[3, j]
            )
    for i in range(3):
        for j in range(3):
            la[i, j] -= (
                gain[i, 0] * U[j + 3, 0]
                + gain[i, 1] * U[j + 3, 1]
                + gain[i, 2] * U[j + 3, 2]
                + gain[i, 3] * U[j + 3, 3]
            )
        for j in range(i + 1):
            ll[i, j] -= (
                gain[i, 0] * U[j, 0]
                + gain[i, 1] * U[j, 1]
                + gain[i, 2] * U[j, 2]
                + gain[i, 3] * U[j, 3]
            )
            aa[i, j] -= (
                gain[i + 3, 0] * U[j + 3, 0]
                + gain[i + 3, 1] * U[j + 3, 1]
                + gain[i + 3, 2] * U[j + 3, 2]
                + gain[i + 3, 3] * U[j + 3, 3]
            )
            ll[j, i] = ll[i, j]
            aa[j, i] = aa[i, j]


@inlined
def _turn_inertia(R: Array, ll: Array, la: Array, aa: Array, work: Array) -> None:
    """Replace each block A of a spatial inertia by R A R^T."""
    for A in (ll, la, aa):
        for i in range(3):
            for j in range(3):
                work[i, j] = R[i, 0] * A[0, j] + R[i, 1] * A[1, j] + R[i, 2] * A[2, j]
        for i in range(3):
            for j in range(3):
                A[i, j] = work[i, 0] * R[j, 0] + work[i, 1] * R[j, 1] + work[i, 2] * R[j, 2]


@inlined
def _shift_inertia(p: Array, ll: Array, la: Array, aa: Array, work: Array) -> None:
    """Refer a spatial inertia at point p (3,) to the origin of the axes."""
    # With X = [[1, -hat p], [0, 1]]: X^T A X, the velocity of p being u - p x w.
    for i in range(3):
        # row i of A_la^T times hat p, before la changes
        x, y, z = la[0, i], la[1, i], la[2, i]
        work[i, 0] = y * p[2] - z * p[1]
        work[i, 1] = z * p[0] - x * p[2]
        work[i, 2] = x * p[1] - y * p[0]
    for i in range(3):
        for j in range(3):
            aa[i, j] -= work[i, j]
        x, y, z = ll[i, 0], ll[i, 1], ll[i, 2]
        la[i, 0] -= y * p[2] - z * p[1]
        la[i, 1] -= z * p[0] - x * p[2]
        la[i, 2] -= x * p[1] - y * p[0]
    for j in range(3):
        x, y, z = cross(p[0], p[1], p[2], la[0, j], la[1, j], la[2, j])
        aa[0, j] += x
        aa[1, j] += y
        aa[2, j] += z


@inlined
def _add_point(mass: float, c: Array, ll: Array, la: Array, aa: Array) -> None:
    """Add a point mass at c (3,) to a spatial inertia at the origin."""
    x, y, z = c[0], c[1], c[2]
    ll[0, 0] += mass
    ll[1, 1] += mass
    ll[2, 2] += mass
    # -m hat(c)
    la[0, 1] += mass * z
    la[0, 2] -= mass * y
    la[1, 0] -= mass * z
    la[1, 2] += mass * x
    la[2, 0] += mass * y
    la[2, 1] -= mass * x
    aa[0, 0] += mass * (y * y + z * z)
    aa[1, 1] += mass * (x * x + z * z)
    aa[2, 2] += mass * (x * x + y * y)
    aa[0, 1] -= mass * x * y
    aa[1, 0] -= mass * x * y
    aa[0, 2] -= mass * x * z
    aa[2, 0] -= mass * x * z
    aa[1, 2] -= mass * y * z
    aa[2, 1] -= mass * y * z


@kernel
def solve(body: Body, scratch: Scratch, right: Array, out: Array) -> None:
    """Write the solution for a right-hand side (n, 4) of the last factorisation to `out`."""
    n = body.length.shape[0]
    f0, f1, f2, m0, m1, m2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    load = scratch.load
    for k in range(n - 1, -1, -1):
        if body.has_connector[k]:
            f0, f1, f2, m0, m1, m2 = across(
                body.connector[k], body.turn[k], f0, f1, f2, m0, m1, m2
            )
        R, p = scratch.turned[k], scratch.end[k]
        P, W, G = scratch.end_map[k], scratch.end_turn[k], scratch.gain[k]
        f0, f1, f2 = turn(R, f0, f1, f2)
        m0, m1, m2 = turn(R, m0, m1, m2)
        r0 = right[k, 0] - P[0, 0] * f0 - P[1, 0] * f1 - P[2, 0] * f2
        r1 = right[k, 1] - P[0, 1] * f0 - P[1, 1] * f1 - P[2, 1] * f2
        r2 = right[k, 2] - P[0, 2] * f0 - P[1, 2] * f1 - P[2, 2] * f2
        r3 = right[k, 3] - P[0, 3] * f0 - P[1, 3] * f1 - P[2, 3] * f2
        r1 -= W[0, 0] * m0 + W[1, 0] * m1 + W[2, 0] * m2
        r2 -= W[0, 1] * m0 + W[1, 1] * m1 + W[2, 1] * m2
        r3 -= W[0, 2] * m0 + W[1, 2] * m1 + W[2, 2] * m2
        load[k, 0], load[k, 1], load[k, 2], load[k, 3] = r0, r1, r2, r3
        x, y, z = cross(p[0], p[1], p[2], f0, f1, f2)
        f0 += G[0, 0] * r0 + G[0, 1] * r1 + G[0, 2] * r2 + G[0, 3] * r3
        f1 += G[1, 0] * r0 + G[1, 1] * r1 + G[1, 2] * r2 + G[1, 3] * r3
        f2 += G[2, 0] * r0 + G[2, 1] * r1 + G[2, 2] * r2 + G[2, 3] * r3
        m0 += x + G[3, 0] * r0 + G[3, 1] * r1 + G[3, 2] * r2 + G[3, 3] * r3
        m1 += y + G[4, 0] * r0 + G[4, 1] * r1 + G[4, 2] * r2 + G[4, 3] * r3
        m2 += z + G[5, 0] * r0 + G[5, 1] * r1 + G[5, 2] * r2 + G[5, 3] * r3
    a0, a1, a2, b0, b1, b2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        R, p = scratch.turned[k], scratch.end[k]
        P, W, G, H = scratch.end_map[k], scratch.end_turn[k], scratch.gain[k], scratch.inverse[k]
        r0, r1, r2, r3 = load[k, 0], load[k, 1], load[k, 2], load[k, 3]
        for j in range(4):
            out[k, j] = (
                H[j, 0] * r0
                + H[j, 1] * r1
                + H[j, 2] * r2
                + H[j, 3] * r3
                - G[0, j] * a0
                - G[1, j] * a1
                - G[2, j] * a2
                - G[3, j] * b0
                - G[4, j] * b1
                - G[5, j] * b2
            )
        r0, r1, r2, r3 = out[k, 0], out[k, 1], out[k, 2], out[k, 3]
        x, y, z = cross(b0, b1, b2, p[0], p[1], p[2])
        a0 += x + P[0, 0] * r0 + P[0, 1] * r1 + P[0, 2] * r2 + P[0, 3] * r3
        a1 += y + P[1, 0] * r0 + P[1, 1] * r1 + P[1, 2] * r2 + P[1, 3] * r3
        a2 += z + P[2, 0] * r0 + P[2, 1] * r1 + P[2, 2] * r2 + P[2, 3] * r3
        b0 += W[0, 0] * r1 + W[0, 1] * r2 + W[0, 2] * r3
        b1 += W[1, 0] * r1 + W[1, 1] * r2 + W[1, 2] * r3
        b2 += W[2, 0] * r1 + W[2, 1] * r2 + W[2, 2] * r3
        a0, a1, a2 = turn_back(R, a0, a1, a2)
        b0, b1, b2 = turn_back(R, b0, b1, b2)
        if body.has_connector[k]:
            c, T = body.connector[k], body.turn[k]
            x, y, z = cross(b0, b1, b2, c[0], c[1], c[2])
            a0, a1, a2 = turn_back(T, a0 + x, a1 + y, a2 + z)
            b0, b1, b2 = turn_back(T, b0, b1, b2)
