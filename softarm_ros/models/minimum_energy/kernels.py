"""
Compiled energy of a rod of quaternion nodes, its gradient and its exact Hessian.

The nodes are q_0..q_n (scalar first, body -> base), with q_0 clamped; interval i joins q_i = a and
q_{i+1} = b. With rho = a* b the strain is w = 2 vec(rho) / ds. The position follows Chen et al.
2022 eq. 47, exact for linearly interpolated quaternions: dr = ds/3 (a e3 a* + a e3 b* + b e3 b*).

Derivatives are by the coordinates u of q -> q (sqrt(1 - |u|^2), u), three per node, so unit length
needs no constraint. To first order u rotates by the vector 2 u, so moments are half the gradients.
Every term is a polynomial of the quaternions; nothing is divided by an angle.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import inlined, kernel

Quaternion = tuple[float, float, float, float]


@inlined
def product(
    a0: float, a1: float, a2: float, a3: float, b0: float, b1: float, b2: float, b3: float
) -> Quaternion:
    """Return the Hamilton product, scalar first."""
    return (
        a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
        a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
        a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
        a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
    )


@kernel(allocates=False)
def relative(a: Array, b: Array) -> Quaternion:
    """Return a* b."""
    return product(a[0], -a[1], -a[2], -a[3], b[0], b[1], b[2], b[3])


@kernel(allocates=False)
def times_unit(q0: float, q1: float, q2: float, q3: float, k: int) -> Quaternion:
    """Return q e_k, k = 0, 1, 2."""
    if k == 0:
        return -q1, q0, q3, -q2
    if k == 1:
        return -q2, -q3, q0, q1
    return -q3, q2, -q1, q0


@kernel(allocates=False)
def unit_times(q0: float, q1: float, q2: float, q3: float, k: int) -> Quaternion:
    """Return e_k q, k = 0, 1, 2."""
    if k == 0:
        return -q1, q0, -q3, q2
    if k == 1:
        return -q2, q3, q0, -q1
    return -q3, -q2, q1, q0


@kernel(allocates=False)
def rotate(q: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the vector q (x, y, z) q*."""
    p0, p1, p2, p3 = product(q[0], q[1], q[2], q[3], 0.0, x, y, z)
    _, r1, r2, r3 = product(p0, p1, p2, p3, q[0], -q[1], -q[2], -q[3])
    return r1, r2, r3


@kernel(allocates=False)
def rotate_back(q: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the vector q* (x, y, z) q."""
    p0, p1, p2, p3 = product(q[0], -q[1], -q[2], -q[3], 0.0, x, y, z)
    _, r1, r2, r3 = product(p0, p1, p2, p3, q[0], q[1], q[2], q[3])
    return r1, r2, r3


@kernel(allocates=False)
def positions_into(q: Array, ds: float, r: Array) -> None:
    """Write the node positions (n + 1, 3) [m] of eq. 47."""
    r[0, :] = 0.0
    for i in range(q.shape[0] - 1):
        a, b = q[i], q[i + 1]
        ax, ay, az = rotate(a, 0.0, 0.0, 1.0)
        bx, by, bz = rotate(b, 0.0, 0.0, 1.0)
        e0, e1, e2, e3 = times_unit(a[0], a[1], a[2], a[3], 2)
        _, cx, cy, cz = product(e0, e1, e2, e3, b[0], -b[1], -b[2], -b[3])
        r[i + 1, 0] = r[i, 0] + ds / 3.0 * (ax + cx + bx)
        r[i + 1, 1] = r[i, 1] + ds / 3.0 * (ay + cy + by)
        r[i + 1, 2] = r[i, 2] + ds / 3.0 * (az + cz + bz)


@kernel(allocates=False)
def curvatures_into(q: Array, ds: float, curvatures: Array) -> None:
    """Write the strains (n, 3) [1/m] between the nodes (n + 1, 4)."""
    for i in range(q.shape[0] - 1):
        a, b = q[i], q[i + 1]
        for k in range(3):
            u, v = (k + 1) % 3 + 1, (k + 2) % 3 + 1
            vector = a[0] * b[k + 1] - b[0] * a[k + 1] - (a[u] * b[v] - a[v] * b[u])
            curvatures[i, k] = 2.0 / ds * vector


@kernel(allocates=False)
def poses_into(q: Array, r: Array, poses: Array) -> None:
    """Write the transforms (m, 4, 4) of nodes (m, 4) at positions (m, 3)."""
    for i in range(q.shape[0]):
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        poses[i, 0, 0] = 1 - 2 * (y * y + z * z)
        poses[i, 0, 1] = 2 * (x * y - w * z)
        poses[i, 0, 2] = 2 * (x * z + w * y)
        poses[i, 1, 0] = 2 * (x * y + w * z)
        poses[i, 1, 1] = 1 - 2 * (x * x + z * z)
        poses[i, 1, 2] = 2 * (y * z - w * x)
        poses[i, 2, 0] = 2 * (x * z - w * y)
        poses[i, 2, 1] = 2 * (y * z + w * x)
        poses[i, 2, 2] = 1 - 2 * (x * x + y * y)
        for k in range(3):
            poses[i, k, 3] = r[i, k]
            poses[i, 3, k] = 0.0
        poses[i, 3, 3] = 1.0


@kernel(allocates=False)
def turns_into(lengths: Array, anchors: Array, weight: float, stride: int, turn: Array) -> None:
    """
    Write half the turn (modules, 2) of an interval about x and y, from lengths (modules, 3) [m].

    `anchors` are (modules, 3, 3) [m], `weight` [1/m^2] gives the turn of a module [rad] from the
    sum of lengths times anchors, and `stride` is the number of intervals of a module.
    """
    for t in range(lengths.shape[0]):
        about_x, about_y = 0.0, 0.0
        for i in range(3):
            about_x += lengths[t, i] * anchors[t, i, 1]
            about_y += lengths[t, i] * anchors[t, i, 0]
        turn[t, 0] = 0.5 * (weight * about_x) / stride
        turn[t, 1] = 0.5 * (weight * -about_y) / stride


@kernel(allocates=False)
def bend_modules(turn: Array, cosine: Array, sine: Array, q: Array) -> None:
    """
    Write nodes (n + 1, 4) of modules of constant curvature; the first node must be set.

    Each interval of a module turns by the quaternion (cosine, sine * turn); `turn` (modules, 2) is
    about the x and y axes, `cosine` and `sine` are (modules,).
    """
    stride = (q.shape[0] - 1) // turn.shape[0]
    for i in range(q.shape[0] - 1):
        module = i // stride
        x, y, c, s = turn[module, 0], turn[module, 1], cosine[module], sine[module]
        w0, w1, w2, w3 = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        q[i + 1, 0] = w0 * c - s * (w1 * x + w2 * y)
        q[i + 1, 1] = w1 * c + s * (w0 * x - w3 * y)
        q[i + 1, 2] = w2 * c + s * (w0 * y + w3 * x)
        q[i + 1, 3] = w3 * c + s * (w1 * y - w2 * x)


@kernel(allocates=False)
def elastic_energy(q: Array, ds: float, stiffness: Array) -> float:
    """Return sum of k_j w_j^2 ds / 2 [J]; `stiffness` (3,) = EI, EI, GJ [N m^2]."""
    energy = 0.0
    for i in range(q.shape[0] - 1):
        _, r1, r2, r3 = relative(q[i], q[i + 1])
        energy += stiffness[0] * r1 * r1 + stiffness[1] * r2 * r2 + stiffness[2] * r3 * r3
    return 2.0 * energy / ds


@kernel(allocates=False)
def add_vector_term(
    q: Array, g: Array, m: Array, row: int, gradient: Array, band: Array, second: bool
) -> None:
    """
    Add the derivatives of -g . (q m q*) by u at the node of `row`; g in base, m in body frame.

    `gradient` (N,) and `band` (N, w + 1) are laid out as for `banded_ldl_into`.
    """
    b0, b1, b2 = rotate_back(q, g[0], g[1], g[2])
    gradient[row] -= 2.0 * (m[1] * b2 - m[2] * b1)
    gradient[row + 1] -= 2.0 * (m[2] * b0 - m[0] * b2)
    gradient[row + 2] -= 2.0 * (m[0] * b1 - m[1] * b0)
    if second:
        level = 4.0 * (b0 * m[0] + b1 * m[1] + b2 * m[2])
        band[row, 0] += level - 4.0 * b0 * m[0]
        band[row + 1, 0] += level - 4.0 * b1 * m[1]
        band[row + 2, 0] += level - 4.0 * b2 * m[2]
        band[row + 1, 1] -= 2.0 * (b1 * m[0] + b0 * m[1])
        band[row + 2, 1] -= 2.0 * (b2 * m[1] + b1 * m[2])
        band[row + 2, 2] -= 2.0 * (b2 * m[0] + b0 * m[2])


@kernel
def derivatives_into(
    q: Array,
    ds: float,
    stiffness: Array,
    forces: Array,
    gradient: Array,
    band: Array,
    second: bool,
) -> None:
    """
    Write the derivatives of elastic energy - sum_i forces_i . dr_i.

    Parameters
    ----------
    q, ds, stiffness
        Nodes (n + 1, 4), step [m], (3,) [N m^2].
    forces
        Force (n, 3) [N] in each interval, base frame, constant.
    gradient, band
        (3 n,) and (3 n, w + 1), w >= 5, by u of the nodes 1..n; overwritten.
    second
        Whether to write `band` too.

    """
    gradient[:] = 0.0
    if second:
        band[:, :] = 0.0
    axis, third = np.array([0.0, 0.0, 1.0]), np.empty(3)
    da, db = np.empty((3, 3)), np.empty((3, 3))
    add_intervals(q, ds, stiffness, forces, axis, third, da, db, gradient, band, second)


@kernel(allocates=False)
def add_intervals(
    q: Array,
    ds: float,
    stiffness: Array,
    forces: Array,
    axis: Array,
    third: Array,
    da: Array,
    db: Array,
    gradient: Array,
    band: Array,
    second: bool,
) -> None:
    """Add what `derivatives_into` writes; `axis` (3,) is e3; `third` to `db` are overwritten."""
    n = q.shape[0] - 1
    for i in range(n):
        a, b = q[i], q[i + 1]
        row_a, row_b = 3 * i - 3, 3 * i
        r0, r1, r2, r3 = relative(a, b)
        rho = (r1, r2, r3)
        for k in range(3):
            _, x, y, z = unit_times(r0, r1, r2, r3, k)
            da[0, k], da[1, k], da[2, k] = -x, -y, -z
            _, x, y, z = times_unit(r0, r1, r2, r3, k)
            db[0, k], db[1, k], db[2, k] = x, y, z
        # Elastic part: c_j rho_j^2 / 2.
        level = 0.0
        for j in range(3):
            c = 4.0 * stiffness[j] / ds
            level += c * rho[j] * rho[j]
            for k in range(3):
                gradient[row_b + k] += c * rho[j] * db[j, k]
                if i > 0:
                    gradient[row_a + k] += c * rho[j] * da[j, k]
        # Load part. The cross term -g . (a e3 b*) = <a, g b e3>.
        g = forces[i]
        third[0], third[1], third[2] = ds / 3.0 * g[0], ds / 3.0 * g[1], ds / 3.0 * g[2]
        add_vector_term(b, third, axis, row_b, gradient, band, second)
        if i > 0:
            add_vector_term(a, third, axis, row_a, gradient, band, second)
        t0, t1, t2, t3 = product(0.0, third[0], third[1], third[2], b[0], b[1], b[2], b[3])
        t0, t1, t2, t3 = times_unit(t0, t1, t2, t3, 2)  # g b e3
        cross = a[0] * t0 + a[1] * t1 + a[2] * t2 + a[3] * t3
        s0, s1, s2, s3 = product(0.0, third[0], third[1], third[2], a[0], a[1], a[2], a[3])
        s0, s1, s2, s3 = times_unit(s0, s1, s2, s3, 2)  # g a e3
        for k in range(3):
            x0, x1, x2, x3 = times_unit(b[0], b[1], b[2], b[3], k)
            gradient[row_b + k] += x0 * s0 + x1 * s1 + x2 * s2 + x3 * s3
            if i > 0:
                x0, x1, x2, x3 = times_unit(a[0], a[1], a[2], a[3], k)
                gradient[row_a + k] += x0 * t0 + x1 * t1 + x2 * t2 + x3 * t3
        if not second:
            continue
        for k in range(3):
            band[row_b + k, 0] -= level + cross
            for m in range(k + 1):
                for j in range(3):
                    band[row_b + k, k - m] += 4.0 * stiffness[j] / ds * db[j, k] * db[j, m]
        if i == 0:
            continue
        for k in range(3):
            band[row_a + k, 0] -= level + cross
            for m in range(k + 1):
                for j in range(3):
                    band[row_a + k, k - m] += 4.0 * stiffness[j] / ds * da[j, k] * da[j, m]
        for k in range(3):  # b e_k against a e_m
            x0, x1, x2, x3 = times_unit(b[0], b[1], b[2], b[3], k)
            y0, y1, y2, y3 = product(0.0, third[0], third[1], third[2], x0, x1, x2, x3)
            y0, y1, y2, y3 = times_unit(y0, y1, y2, y3, 2)
            z0, z1, z2, z3 = times_unit(r0, r1, r2, r3, k)
            for m in range(3):
                x0, x1, x2, x3 = times_unit(a[0], a[1], a[2], a[3], m)
                value = x0 * y0 + x1 * y1 + x2 * y2 + x3 * y3
                _, w1, w2, w3 = unit_times(z0, z1, z2, z3, m)
                value -= (
                    4.0
                    / ds
                    * (stiffness[0] * r1 * w1 + stiffness[1] * r2 * w2 + stiffness[2] * r3 * w3)
                )
                for j in range(3):
                    value += 4.0 * stiffness[j] / ds * db[j, k] * da[j, m]
                band[row_b + k, 3 + k - m] += value


@kernel(allocates=False)
def step_jacobian_into(a: Array, b: Array, ds: float, by_a: Array, by_b: Array) -> None:
    """Write d(dr)/du_a and d(dr)/du_b (3, 3) [m] of one interval."""
    for k in range(3):
        x0, x1, x2, x3 = times_unit(a[0], a[1], a[2], a[3], k)
        y0, y1, y2, y3 = times_unit(b[0], b[1], b[2], b[3], k)
        # 2 vec(q e_k e3 q*) is the derivative of q e3 q*: both factors contribute equally.
        z0, z1, z2, z3 = times_unit(x0, x1, x2, x3, 2)
        _, p1, p2, p3 = product(z0, z1, z2, z3, a[0], -a[1], -a[2], -a[3])
        _, s1, s2, s3 = product(z0, z1, z2, z3, b[0], -b[1], -b[2], -b[3])
        by_a[0, k] = ds / 3.0 * (2.0 * p1 + s1)
        by_a[1, k] = ds / 3.0 * (2.0 * p2 + s2)
        by_a[2, k] = ds / 3.0 * (2.0 * p3 + s3)
        z0, z1, z2, z3 = times_unit(y0, y1, y2, y3, 2)
        _, p1, p2, p3 = product(z0, z1, z2, z3, b[0], -b[1], -b[2], -b[3])
        _, s1, s2, s3 = product(z0, z1, z2, z3, a[0], -a[1], -a[2], -a[3])
        by_b[0, k] = ds / 3.0 * (2.0 * p1 + s1)
        by_b[1, k] = ds / 3.0 * (2.0 * p2 + s2)
        by_b[2, k] = ds / 3.0 * (2.0 * p3 + s3)


@kernel
def tip_jacobian_into(q: Array, ds: float, jacobian: Array) -> None:
    """Write d r_n / du (3 n, 3) [m] into the first three columns of `jacobian`, transposed."""
    n = q.shape[0] - 1
    jacobian[:, :3] = 0.0
    by_a, by_b = np.empty((3, 3)), np.empty((3, 3))
    for i in range(n):
        step_jacobian_into(q[i], q[i + 1], ds, by_a, by_b)
        for k in range(3):
            for j in range(3):
                jacobian[3 * i + k, j] += by_b[j, k]
                if i > 0:
                    jacobian[3 * i - 3 + k, j] += by_a[j, k]


@kernel(allocates=False)
def retract_into(q: Array, step: Array, scale: float, moved: Array) -> None:
    """Write the nodes moved by scale * step (3 n,), |u| < 1; node 0 does not move."""
    for k in range(4):
        moved[0, k] = q[0, k]
    for i in range(1, q.shape[0]):
        x = scale * step[3 * i - 3]
        y = scale * step[3 * i - 2]
        z = scale * step[3 * i - 1]
        w = math.sqrt(max(0.0, 1.0 - x * x - y * y - z * z))
        m0, m1, m2, m3 = product(q[i, 0], q[i, 1], q[i, 2], q[i, 3], w, x, y, z)
        norm = 1.0 / math.sqrt(m0 * m0 + m1 * m1 + m2 * m2 + m3 * m3)
        moved[i, 0], moved[i, 1], moved[i, 2], moved[i, 3] = (
            m0 * norm,
            m1 * norm,
            m2 * norm,
            m3 * norm,
        )
