"""
Compiled local law of a rod with cables: section wrench -> strain.

A cut goes through the rod and its cables. The wrench (M, N) over the cut (moment and force in the
local frame, z along the tangent) is the sum of the wrenches of the rod and of the cables
(Rucker & Webster 2011, summed up before differentiation):

    M = K_uu (u - u0) + K_uv (v - v0) + sum_i t_i r_i x tau_i
    N = K_vu (u - u0) + K_vv (v - v0) + sum_i t_i tau_i
    e_i = v + u x r_i + r_i',   tau_i = e_i / |e_i|

This is the gradient by (u, v) of the energy density 1/2 |xi - xi0|_K^2 + sum_i t_i |e_i|, which
is convex for t_i >= 0: at most one strain belongs to a wrench, and its Hessian is factorised by
Cholesky. No distributed cable load, no derivative of the strain and no jump where a cable ends is
needed. Order of strains: u (3) [1/m], then v (3) [-].

A fluid at pressure p in a bore of constant area A in the section has the energy -p V per length,
V = A e_z: the section sweeps this volume, whatever the angle at which the bore crosses it. A bore
is therefore a path with t = -p A and with e_z in place of |e|. This is linear in the strains: the
bore pushes along the section's normal, adds nothing to the Hessian, and the energy stays convex.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

OK, CRUSHED, NO_STRAIN = 0, 1, 2
# Below this stretch of rod or cable path, the law has no meaning: the rod is crushed.
MIN_STRETCH = 0.05
# One row of the table of an arm: stiffness (36), strain at rest (6), then 6 numbers per path
# present: offset r (3), slope r' (2, offsets stay in the section), 1 for a bore or 0 for a cable.
STIFFNESS, REST, ROUTES = 0, 36, 42
# Work space, one flat array (separate ones cost more than the arithmetic): wrench, strain, step
# (6 each), factor (36), then 5 numbers per cable present: tension, tau, |e|.
WRENCH, STRAIN, STEP, FACTOR, CABLES = 0, 6, 12, 18, 54


@kernel
def factorise(work: Array, n: int) -> bool:
    """Overwrite the lower triangle of FACTOR (rows of 6) by its Cholesky factor, 1/diagonal."""
    for j in range(n):
        row_j = FACTOR + 6 * j
        pivot = work[row_j + j]
        for k in range(j):
            pivot -= work[row_j + k] * work[row_j + k]
        if not pivot > 0.0:
            return False
        inverse = 1.0 / math.sqrt(pivot)
        work[row_j + j] = inverse
        for i in range(j + 1, n):
            row_i = FACTOR + 6 * i
            value = work[row_i + j]
            for k in range(j):
                value -= work[row_i + k] * work[row_j + k]
            work[row_i + j] = value * inverse
    return True


@kernel
def substitute(work: Array, n: int) -> None:
    """Solve for STEP in place, with the factor of `factorise`."""
    for i in range(n):
        value = work[STEP + i]
        for k in range(i):
            value -= work[FACTOR + 6 * i + k] * work[STEP + k]
        work[STEP + i] = value * work[FACTOR + 7 * i]
    for i in range(n - 1, -1, -1):
        value = work[STEP + i]
        for k in range(i + 1, n):
            value -= work[FACTOR + 6 * k + i] * work[STEP + k]
        work[STEP + i] = value * work[FACTOR + 7 * i]


@kernel
def local_strain(row: Array, work: Array, n_active: int, n: int, curvature_scale: float) -> int:
    """
    Find the strain that carries a wrench, by Newton; return a status.

    Parameters
    ----------
    row : (42 + 6 cables,)
        Table row of this cut; here, cables include bores.
    work : (54 + 5 cables,)
        In: WRENCH, the start in STRAIN, the tensions. Out: STRAIN, the factor of the Hessian,
        direction and stretch of each cable path.
    n_active : int
        Number of cables present.
    n : int
        6 for a rod that stretches and shears, 3 for one that does not.
    curvature_scale : float
        Length [m] that makes curvature dimensionless in the convergence test.

    """
    if n == 3:
        for k in range(3, 6):
            work[STRAIN + k] = row[REST + k]
    for _ in range(25):
        u0, u1, u2 = work[STRAIN], work[STRAIN + 1], work[STRAIN + 2]
        v0, v1, v2 = work[STRAIN + 3], work[STRAIN + 4], work[STRAIN + 5]
        if not v2 > MIN_STRETCH:
            return CRUSHED
        d0, d1, d2 = u0 - row[REST], u1 - row[REST + 1], u2 - row[REST + 2]
        d3, d4, d5 = v0 - row[REST + 3], v1 - row[REST + 4], v2 - row[REST + 5]
        for i in range(n):
            k = 6 * i
            work[STEP + i] = work[WRENCH + i] - (
                (row[k] * d0 + row[k + 1] * d1 + row[k + 2] * d2)
                + (row[k + 3] * d3 + row[k + 4] * d4 + row[k + 5] * d5)
            )
            for j in range(i + 1):
                work[FACTOR + k + j] = row[k + j]
        # Sums over the cables, kept in registers.
        p0, p1, p2, p3, p4, p5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        h00, h10, h11, h20, h21, h22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        h30, h31, h32, h40, h41, h42 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        h50, h51, h52, h33, h43, h44 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        h53, h54, h55 = 0.0, 0.0, 0.0
        for a in range(n_active):
            o = ROUTES + 6 * a
            r0, r1, r2 = row[o], row[o + 1], row[o + 2]
            e0 = v0 + u1 * r2 - u2 * r1 + row[o + 3]
            e1 = v1 + u2 * r0 - u0 * r2 + row[o + 4]
            e2 = v2 + u0 * r1 - u1 * r0
            if row[o + 5] != 0.0:
                if not e2 > MIN_STRETCH:
                    return CRUSHED
                o = CABLES + 5 * a
                work[o + 1], work[o + 2], work[o + 3], work[o + 4] = 0.0, 0.0, 1.0, e2
                p0 += work[o] * r1
                p1 -= work[o] * r0
                p5 += work[o]
                continue
            length = math.sqrt(e0 * e0 + e1 * e1 + e2 * e2)
            if not length > MIN_STRETCH:
                return CRUSHED
            inverse = 1.0 / length
            e0 *= inverse
            e1 *= inverse
            e2 *= inverse
            o = CABLES + 5 * a
            t = work[o]
            work[o + 1] = e0
            work[o + 2] = e1
            work[o + 3] = e2
            work[o + 4] = length
            # b = r x tau; the Hessian of |e| is A P A^T / |e|, A = [hat(r); 1],
            # P = 1 - tau tau^T, that is (A A^T - (A tau) (A tau)^T) / |e|.
            b0 = r1 * e2 - r2 * e1
            b1 = r2 * e0 - r0 * e2
            b2 = r0 * e1 - r1 * e0
            p0 += t * b0
            p1 += t * b1
            p2 += t * b2
            w = t * inverse
            rr = r0 * r0 + r1 * r1 + r2 * r2
            h00 += w * (rr - r0 * r0 - b0 * b0)
            h10 -= w * (r1 * r0 + b1 * b0)
            h11 += w * (rr - r1 * r1 - b1 * b1)
            h20 -= w * (r2 * r0 + b2 * b0)
            h21 -= w * (r2 * r1 + b2 * b1)
            h22 += w * (rr - r2 * r2 - b2 * b2)
            if n == 6:
                p3 += t * e0
                p4 += t * e1
                p5 += t * e2
                h30 -= w * e0 * b0
                h31 += w * (r2 - e0 * b1)
                h32 -= w * (r1 + e0 * b2)
                h40 -= w * (r2 + e1 * b0)
                h41 -= w * e1 * b1
                h42 += w * (r0 - e1 * b2)
                h50 += w * (r1 - e2 * b0)
                h51 -= w * (r0 + e2 * b1)
                h52 -= w * e2 * b2
                h33 += w * (1.0 - e0 * e0)
                h43 -= w * e1 * e0
                h44 += w * (1.0 - e1 * e1)
                h53 -= w * e2 * e0
                h54 -= w * e2 * e1
                h55 += w * (1.0 - e2 * e2)
        work[STEP] -= p0
        work[STEP + 1] -= p1
        work[STEP + 2] -= p2
        work[FACTOR] += h00
        work[FACTOR + 6] += h10
        work[FACTOR + 7] += h11
        work[FACTOR + 12] += h20
        work[FACTOR + 13] += h21
        work[FACTOR + 14] += h22
        if n == 6:
            work[STEP + 3] -= p3
            work[STEP + 4] -= p4
            work[STEP + 5] -= p5
            work[FACTOR + 18] += h30
            work[FACTOR + 19] += h31
            work[FACTOR + 20] += h32
            work[FACTOR + 21] += h33
            work[FACTOR + 24] += h40
            work[FACTOR + 25] += h41
            work[FACTOR + 26] += h42
            work[FACTOR + 27] += h43
            work[FACTOR + 28] += h44
            work[FACTOR + 30] += h50
            work[FACTOR + 31] += h51
            work[FACTOR + 32] += h52
            work[FACTOR + 33] += h53
            work[FACTOR + 34] += h54
            work[FACTOR + 35] += h55
        if not factorise(work, n):
            return NO_STRAIN
        substitute(work, n)
        size = 0.0
        for k in range(3):
            work[STRAIN + k] += work[STEP + k]
            size = max(size, abs(work[STEP + k]) * curvature_scale)
        for k in range(3, n):
            work[STRAIN + k] += work[STEP + k]
            size = max(size, abs(work[STEP + k]))
        # Newton squares the error; the last shot starts closer than this and ends at rounding.
        if size < 1e-5:
            # The stretch of the cables is still that before the last step. Without this update,
            # cable lengths would be off by 1e-8 m, depending on the strains at the start.
            s0, s1, s2 = work[STEP], work[STEP + 1], work[STEP + 2]
            d3, d4, d5 = 0.0, 0.0, 0.0
            if n == 6:
                d3, d4, d5 = work[STEP + 3], work[STEP + 4], work[STEP + 5]
            for a in range(n_active):
                o, c = ROUTES + 6 * a, CABLES + 5 * a
                work[c + 4] += (
                    work[c + 1] * (d3 + s1 * row[o + 2] - s2 * row[o + 1])
                    + work[c + 2] * (d4 + s2 * row[o] - s0 * row[o + 2])
                    + work[c + 3] * (d5 + s0 * row[o + 1] - s1 * row[o])
                )
            return OK
        if not size < 1e6:
            return NO_STRAIN
    return NO_STRAIN
