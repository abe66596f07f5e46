"""
Compiled local law of a rod with cables: section wrench -> strain.

The rod and its cables are cut together. The wrench (M, N) over such a cut (moment and force in
the local frame, z along the tangent) is the sum of what the rod carries and what the cables carry
(Rucker & Webster 2011, summed up before differentiation):

    M = K_uu (u - u0) + K_uv (v - v0) + sum_i t_i r_i x tau_i
    N = K_vu (u - u0) + K_vv (v - v0) + sum_i t_i tau_i
    e_i = v + u x r_i + r_i',   tau_i = e_i / |e_i|

This is the gradient by (u, v) of the energy density 1/2 |xi - xi0|_K^2 + sum_i t_i |e_i|, which
is convex for t_i >= 0: at most one strain belongs to a wrench, and its Hessian is factorised by
Cholesky. No distributed cable load, no derivative of the strain and no jump where a cable ends is
needed. Order of strains: u (3) [1/m], then v (3) [-].
"""

from __future__ import annotations

import math

from numba import njit

from softarm_ros.models.arm_model import Array

OK, CRUSHED, NO_STRAIN = 0, 1, 2
# Below this stretch of rod or cable path the law has no meaning: the rod is squeezed to nothing.
MIN_STRETCH = 0.05


@njit(cache=True, fastmath=False, error_model='numpy', inline='never')
def factorise(matrix: Array, n: int) -> bool:
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor, 1/diagonal."""
    for j in range(n):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 0.0:
            return False
        inverse = 1.0 / math.sqrt(pivot)
        matrix[j, j] = inverse
        for i in range(j + 1, n):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value * inverse
    return True


@njit(cache=True, fastmath=False, error_model='numpy', inline='never')
def substitute(factor: Array, b: Array, n: int) -> None:
    """Solve in place with a factor of `factorise`."""
    for i in range(n):
        value = b[i]
        for k in range(i):
            value -= factor[i, k] * b[k]
        b[i] = value * factor[i, i]
    for i in range(n - 1, -1, -1):
        value = b[i]
        for k in range(i + 1, n):
            value -= factor[k, i] * b[k]
        b[i] = value * factor[i, i]


@njit(cache=True, fastmath=False, error_model='numpy')
def local_strain(
    stiffness_table: Array,
    rest_table: Array,
    routes_table: Array,
    j: int,
    node: int,
    active: Array,
    segment: int,
    n_active: int,
    tensions: Array,
    wrench: Array,
    n: int,
    curvature_scale: float,
    strain: Array,
    factor: Array,
    step: Array,
    tangents: Array,
) -> int:
    """
    Find the strain that carries a wrench, by Newton from `strain`; return a status.

    Parameters
    ----------
    stiffness_table, rest_table : (steps, 5, 6, 6), (steps, 5, 6)
        Stiffness of the rod and strain at rest; here the entries [j, node] count.
    routes_table : (steps, 5, cables, 6)
        Offset r and its slope r' of each cable.
    active : (segments, cables) int
        Indices of the cables in a segment, `n_active` of them.
    wrench : (6,)
        Local moment [N m] and force [N].
    n : int
        6 for a rod that stretches and shears, 3 for one that does not.
    curvature_scale : float
        Length [m] that makes curvature dimensionless in the convergence test.
    strain : (6,)
        Start and result.
    factor : (6, 6)
        Result: Cholesky factor of the Hessian.
    step : (6,)
        Work space.
    tangents : (cables, 4)
        Result: tau_i and |e_i|.

    """
    if n == 3:
        for k in range(3, 6):
            strain[k] = rest_table[j, node, k]
    for _ in range(25):
        u0, u1, u2 = strain[0], strain[1], strain[2]
        v0, v1, v2 = strain[3], strain[4], strain[5]
        if not v2 > MIN_STRETCH:
            return CRUSHED
        for i in range(n):
            value = wrench[i]
            for k in range(6):
                value -= stiffness_table[j, node, i, k] * (strain[k] - rest_table[j, node, k])
            step[i] = value
            for k in range(i + 1):
                factor[i, k] = stiffness_table[j, node, i, k]
        for a in range(n_active):
            c = active[segment, a]
            t = tensions[c]
            r0, r1, r2 = routes_table[j, node, c, 0], routes_table[j, node, c, 1], routes_table[j, node, c, 2]
            e0 = v0 + u1 * r2 - u2 * r1 + routes_table[j, node, c, 3]
            e1 = v1 + u2 * r0 - u0 * r2 + routes_table[j, node, c, 4]
            e2 = v2 + u0 * r1 - u1 * r0 + routes_table[j, node, c, 5]
            length = math.sqrt(e0 * e0 + e1 * e1 + e2 * e2)
            if not length > MIN_STRETCH:
                return CRUSHED
            inverse = 1.0 / length
            e0 *= inverse
            e1 *= inverse
            e2 *= inverse
            tangents[c, 0], tangents[c, 1], tangents[c, 2] = e0, e1, e2
            tangents[c, 3] = length
            # b = r x tau; the Hessian of |e| is A P A^T / |e|, A = [hat(r); 1],
            # P = 1 - tau tau^T, that is (A A^T - (A tau) (A tau)^T) / |e|.
            b0 = r1 * e2 - r2 * e1
            b1 = r2 * e0 - r0 * e2
            b2 = r0 * e1 - r1 * e0
            step[0] -= t * b0
            step[1] -= t * b1
            step[2] -= t * b2
            w = t * inverse
            rr = r0 * r0 + r1 * r1 + r2 * r2
            factor[0, 0] += w * (rr - r0 * r0 - b0 * b0)
            factor[1, 0] += w * (-r1 * r0 - b1 * b0)
            factor[1, 1] += w * (rr - r1 * r1 - b1 * b1)
            factor[2, 0] += w * (-r2 * r0 - b2 * b0)
            factor[2, 1] += w * (-r2 * r1 - b2 * b1)
            factor[2, 2] += w * (rr - r2 * r2 - b2 * b2)
            if n == 6:
                step[3] -= t * e0
                step[4] -= t * e1
                step[5] -= t * e2
                factor[3, 0] -= w * e0 * b0
                factor[3, 1] += w * (r2 - e0 * b1)
                factor[3, 2] += w * (-r1 - e0 * b2)
                factor[4, 0] += w * (-r2 - e1 * b0)
                factor[4, 1] -= w * e1 * b1
                factor[4, 2] += w * (r0 - e1 * b2)
                factor[5, 0] += w * (r1 - e2 * b0)
                factor[5, 1] += w * (-r0 - e2 * b1)
                factor[5, 2] -= w * e2 * b2
                factor[3, 3] += w * (1.0 - e0 * e0)
                factor[4, 3] -= w * e1 * e0
                factor[4, 4] += w * (1.0 - e1 * e1)
                factor[5, 3] -= w * e2 * e0
                factor[5, 4] -= w * e2 * e1
                factor[5, 5] += w * (1.0 - e2 * e2)
        if not factorise(factor, n):
            return NO_STRAIN
        substitute(factor, step, n)
        size = 0.0
        for k in range(3):
            strain[k] += step[k]
            size = max(size, abs(step[k]) * curvature_scale)
        for k in range(3, n):
            strain[k] += step[k]
            size = max(size, abs(step[k]))
        # Newton squares the error; the last shot starts nearer than this and leaves rounding.
        if size < 1e-5:
            return OK
        if not size < 1e6:
            return NO_STRAIN
    return NO_STRAIN
