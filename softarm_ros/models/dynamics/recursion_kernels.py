"""
Compiled recursive Newton-Euler passes of an arm of constant-strain segments.

Outward: poses, velocities and accelerations in each segment's own frame. Inward: wrenches, and
their projection on the strains. Cost is linear in the number of segments. The kernels compile for
complex arguments too, so that complex steps differentiate them to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import inlined, kernel
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch
from softarm_ros.models.dynamics.segment_kernels import place_segment, segment_rates

Triple = tuple[float, float, float]
Numbers = NDArray[Any]  # real or complex


@kernel(allocates=False)
def turn(R: Array, x: float, y: float, z: float) -> Triple:
    """Return R (x, y, z)."""
    return (
        R[0, 0] * x + R[0, 1] * y + R[0, 2] * z,
        R[1, 0] * x + R[1, 1] * y + R[1, 2] * z,
        R[2, 0] * x + R[2, 1] * y + R[2, 2] * z,
    )


@kernel(allocates=False)
def turn_back(R: Array, x: float, y: float, z: float) -> Triple:
    """Return R^T (x, y, z)."""
    return (
        R[0, 0] * x + R[1, 0] * y + R[2, 0] * z,
        R[0, 1] * x + R[1, 1] * y + R[2, 1] * z,
        R[0, 2] * x + R[1, 2] * y + R[2, 2] * z,
    )


@kernel(allocates=False)
def cross(a: float, b: float, c: float, x: float, y: float, z: float) -> Triple:
    """Return (a, b, c) x (x, y, z)."""
    return b * z - c * y, c * x - a * z, a * y - b * x


@kernel(allocates=False)
def across(
    offset: Array, turn_: Array, f0: float, f1: float, f2: float, m0: float, m1: float, m2: float
) -> tuple[float, float, float, float, float, float]:
    """Return force and moment at a segment's distal frame, from those at its connector's end."""
    f0, f1, f2 = turn(turn_, f0, f1, f2)
    m0, m1, m2 = turn(turn_, m0, m1, m2)
    x, y, z = cross(offset[0], offset[1], offset[2], f0, f1, f2)
    return f0, f1, f2, m0 + x, m1 + y, m2 + z


@kernel
def place_arm(body: Body, q: Numbers, scratch: Scratch) -> None:
    """Write poses and strain maps of every segment for strains `q` (n, 4)."""
    rotation, origin = scratch.rotation, scratch.origin
    for i in range(3):
        origin[0, i] = 0.0
        for j in range(3):
            rotation[0, i, j] = 1.0 if i == j else 0.0
    for k in range(body.length.shape[0]):
        _strain_segment(body, q, k, scratch)
    _place_from(body, 0, scratch)


@kernel
def replace_segment(body: Body, q: Numbers, first: int, scratch: Scratch) -> None:
    """Update what `place_arm` has written after a change of the strains of segment `first`."""
    _strain_segment(body, q, first, scratch)
    _place_from(body, first, scratch)


@kernel
def _strain_segment(body: Body, q: Numbers, k: int, scratch: Scratch) -> None:
    """Write the strain maps of segment k, and its end in its own axes."""
    place_segment(
        body.length[k],
        body.rotary,
        q,
        k,
        scratch.turned,
        scratch.end,
        scratch.end_map,
        scratch.centre,
        scratch.centre_map,
        scratch.end_turn,
        scratch.middle_turn,
        scratch.inertia,
    )


@kernel
def _place_from(body: Body, first: int, scratch: Scratch) -> None:
    """Write the poses of the ends of the segments from `first` on."""
    rotation, origin = scratch.rotation, scratch.origin
    turned, end = scratch.turned, scratch.end
    for k in range(first, body.length.shape[0]):
        for i in range(3):
            x, y, z = rotation[k, i, 0], rotation[k, i, 1], rotation[k, i, 2]
            origin[k + 1, i] = origin[k, i] + x * end[k, 0] + y * end[k, 1] + z * end[k, 2]
            for j in range(3):
                rotation[k + 1, i, j] = (
                    x * turned[k, 0, j] + y * turned[k, 1, j] + z * turned[k, 2, j]
                )
        if body.has_connector[k]:
            _pass_connector(body.connector[k], body.turn[k], rotation[k + 1], origin[k + 1])


@kernel
def _pass_connector(offset: Array, turn_: Array, R: Array, r: Array) -> None:
    """Move a pose from a segment's distal frame to the far end of its connector, in place."""
    for i in range(3):
        r[i] += R[i, 0] * offset[0] + R[i, 1] * offset[1] + R[i, 2] * offset[2]
        x, y, z = R[i, 0], R[i, 1], R[i, 2]
        for j in range(3):
            R[i, j] = x * turn_[0, j] + y * turn_[1, j] + z * turn_[2, j]


@kernel
def residual(
    body: Body, loads: Loads, q: Numbers, v: Numbers, a: Numbers, scratch: Scratch, out: Numbers
) -> None:
    """
    Write the forces that strains `q`, rates `v`, accelerations `a` need, all (n, 4).

    out = M a + coriolis + elastic + damping - weight - drive - cables - node wrenches, in
    N m per unit stretch and N m^2 per curvature. `place_arm` must have been called for `q`.
    """
    n = body.length.shape[0]
    _outward(body, loads, q, v, a, scratch)
    f0, f1, f2 = q[0, 0] * 0.0, q[0, 0] * 0.0, q[0, 0] * 0.0
    m0, m1, m2 = f0, f0, f0
    for k in range(n - 1, -1, -1):
        if body.has_connector[k]:
            f0, f1, f2, m0, m1, m2 = across(
                body.connector[k], body.turn[k], f0, f1, f2, m0, m1, m2
            )
        t, s = scratch.tip_force[k], scratch.tip_moment[k]
        R, p = scratch.turned[k], scratch.end[k]
        f0, f1, f2 = turn(R, f0 + t[0], f1 + t[1], f2 + t[2])
        m0, m1, m2 = turn(R, m0 + s[0], m1 + s[1], m2 + s[2])
        g, u = scratch.force[k], scratch.moment[k]
        P, C = scratch.end_map[k], scratch.centre_map[k]
        W, V = scratch.end_turn[k], scratch.middle_turn[k]
        for j in range(4):
            out[k, j] = (
                P[0, j] * f0
                + P[1, j] * f1
                + P[2, j] * f2
                + C[0, j] * g[0]
                + C[1, j] * g[1]
                + C[2, j] * g[2]
                + body.inner[k, j] * a[k, j]
            )
        for j in range(3):
            out[k, j + 1] += (
                W[0, j] * m0
                + W[1, j] * m1
                + W[2, j] * m2
                + V[0, j] * u[0]
                + V[1, j] * u[1]
                + V[2, j] * u[2]
            )
        _add_material(body, loads, q, v, k, out)
        x, y, z = cross(p[0], p[1], p[2], f0, f1, f2)
        c = scratch.centre[k]
        b0, b1, b2 = cross(c[0], c[1], c[2], g[0], g[1], g[2])
        m0, m1, m2 = m0 + x + b0 + u[0], m1 + y + b1 + u[1], m2 + z + b2 + u[2]
        f0, f1, f2 = f0 + g[0], f1 + g[1], f2 + g[2]


@kernel
def static_residual(
    body: Body, loads: Loads, q: Numbers, still: Numbers, scratch: Scratch, out: Numbers
) -> None:
    """
    Write the forces that strains `q` (n, 4) need at rest, as `residual` without rates.

    `still` (n, 4) is zero. `place_arm` must have been called for `q`.
    """
    n = body.length.shape[0]
    _weigh(body, loads, scratch)
    f0, f1, f2 = q[0, 0] * 0.0, q[0, 0] * 0.0, q[0, 0] * 0.0
    m0, m1, m2 = f0, f0, f0
    for k in range(n - 1, -1, -1):
        if body.has_connector[k]:
            f0, f1, f2, m0, m1, m2 = across(
                body.connector[k], body.turn[k], f0, f1, f2, m0, m1, m2
            )
        t, s = scratch.tip_force[k], scratch.tip_moment[k]
        R, p = scratch.turned[k], scratch.end[k]
        f0, f1, f2 = turn(R, f0 + t[0], f1 + t[1], f2 + t[2])
        m0, m1, m2 = turn(R, m0 + s[0], m1 + s[1], m2 + s[2])
        g = scratch.force[k]
        P, C, W = scratch.end_map[k], scratch.centre_map[k], scratch.end_turn[k]
        for j in range(4):
            out[k, j] = (
                P[0, j] * f0
                + P[1, j] * f1
                + P[2, j] * f2
                + C[0, j] * g[0]
                + C[1, j] * g[1]
                + C[2, j] * g[2]
            )
        for j in range(3):
            out[k, j + 1] += W[0, j] * m0 + W[1, j] * m1 + W[2, j] * m2
        _add_material(body, loads, q, still, k, out)
        x, y, z = cross(p[0], p[1], p[2], f0, f1, f2)
        c = scratch.centre[k]
        b0, b1, b2 = cross(c[0], c[1], c[2], g[0], g[1], g[2])
        m0, m1, m2 = m0 + x + b0, m1 + y + b1, m2 + z + b2
        f0, f1, f2 = f0 + g[0], f1 + g[1], f2 + g[2]


@kernel
def _weigh(body: Body, loads: Loads, scratch: Scratch) -> None:
    """Write the wrenches that hold the rod pieces and the loads on the distal frames at rest."""
    zero = scratch.end[0, 0] * 0.0
    g0, g1, g2 = zero + loads.gravity[0], zero + loads.gravity[1], zero + loads.gravity[2]
    for k in range(body.length.shape[0]):
        weight, force = body.weight[k], scratch.force[k]
        force[0], force[1], force[2] = -weight * g0, -weight * g1, -weight * g2
        g0, g1, g2 = turn_back(scratch.turned[k], g0, g1, g2)
        fx, fy, fz, mx, my, mz = zero, zero, zero, zero, zero, zero
        if body.has_body[k]:
            weight, c = body.tip_weight[k], body.tip_centre[k]
            fx, fy, fz = -weight * g0, -weight * g1, -weight * g2
            mx, my, mz = cross(c[0], c[1], c[2], fx, fy, fz)
        R, F = scratch.rotation, loads.wrench
        wx, wy, wz = _turn_back_at(R, k + 1, -F[k, 0], -F[k, 1], -F[k, 2])
        ux, uy, uz = _turn_back_at(R, k + 1, -F[k, 3], -F[k, 4], -F[k, 5])
        if body.has_connector[k]:
            T, c = body.turn[k], body.connector[k]
            g0, g1, g2 = turn_back(T, g0, g1, g2)
            wx, wy, wz = turn(T, wx, wy, wz)
            ux, uy, uz = turn(T, ux, uy, uz)
            x, y, z = cross(c[0], c[1], c[2], wx, wy, wz)
            ux, uy, uz = ux + x, uy + y, uz + z
        force, moment = scratch.tip_force[k], scratch.tip_moment[k]
        force[0], force[1], force[2] = fx + wx, fy + wy, fz + wz
        moment[0], moment[1], moment[2] = mx + ux, my + uy, mz + uz


@inlined
def _add_material(body: Body, loads: Loads, q: Numbers, v: Numbers, k: int, out: Numbers) -> None:
    """Add elastic, viscous and drive resultants of segment k to out[k]."""
    length, K, D, rest = body.length[k], body.stiffness[k], body.damping[k], body.rest[k]
    e0, e1, e2, e3 = q[k, 0] - rest[0], q[k, 1] - rest[1], q[k, 2] - rest[2], q[k, 3] - rest[3]
    for j in range(4):
        out[k, j] += length * (
            K[j, 0] * e0
            + K[j, 1] * e1
            + K[j, 2] * e2
            + K[j, 3] * e3
            + D[j, 0] * v[k, 0]
            + D[j, 1] * v[k, 1]
            + D[j, 2] * v[k, 2]
            + D[j, 3] * v[k, 3]
            - loads.drive[k, j]
        )
    for i in range(loads.cable_tension.shape[1]):
        tension = loads.cable_tension[k, i]
        if tension != 0.0:
            x, y = loads.cable_offset[k, i, 0], loads.cable_offset[k, i, 1]
            # Cable length per rest length |(1 + eps) e3 + kappa x offset|.
            along = 1.0 + q[k, 0] + q[k, 1] * y - q[k, 2] * x
            radius2 = x * x + y * y
            pull = length * tension / np.sqrt(along * along + q[k, 3] * q[k, 3] * radius2)
            out[k, 0] += pull * along
            out[k, 1] += pull * along * y
            out[k, 2] -= pull * along * x
            out[k, 3] += pull * q[k, 3] * radius2


@kernel
def _outward(
    body: Body, loads: Loads, q: Numbers, v: Numbers, a: Numbers, scratch: Scratch
) -> None:
    """Write the wrenches that the rod pieces and the loads on the distal frames need."""
    zero = q[0, 0] * 0.0
    w0, w1, w2, u0, u1, u2 = zero, zero, zero, zero, zero, zero
    b0, b1, b2, a0, a1, a2 = zero, zero, zero, zero, zero, zero
    g0, g1, g2 = zero + loads.gravity[0], zero + loads.gravity[1], zero + loads.gravity[2]
    for k in range(body.length.shape[0]):
        end, centre, spin, middle = segment_rates(body.length[k], q, v, k)
        e0, e1, e2, e3 = a[k, 0], a[k, 1], a[k, 2], a[k, 3]
        # The piece: its centre of mass and its middle frame.
        p, C = scratch.centre[k], scratch.centre_map[k]
        x, y, z = cross(w0, w1, w2, p[0], p[1], p[2])
        rx, ry, rz = cross(
            w0, w1, w2, x + 2.0 * centre[0], y + 2.0 * centre[1], z + 2.0 * centre[2]
        )
        tx, ty, tz = cross(b0, b1, b2, p[0], p[1], p[2])
        mass, weight, drag = body.mass[k], body.weight[k], body.drag[k, 0]
        ax = a0 + rx + tx + centre[3] + C[0, 0] * e0 + C[0, 1] * e1 + C[0, 2] * e2 + C[0, 3] * e3
        ay = a1 + ry + ty + centre[4] + C[1, 0] * e0 + C[1, 1] * e1 + C[1, 2] * e2 + C[1, 3] * e3
        az = a2 + rz + tz + centre[5] + C[2, 0] * e0 + C[2, 1] * e1 + C[2, 2] * e2 + C[2, 3] * e3
        force = scratch.force[k]
        force[0] = mass * ax - weight * g0 + drag * (u0 + x + centre[0])
        force[1] = mass * ay - weight * g1 + drag * (u1 + y + centre[1])
        force[2] = mass * az - weight * g2 + drag * (u2 + z + centre[2])
        V, J = scratch.middle_turn[k], scratch.inertia[k]
        ox, oy, oz = w0 + middle[0], w1 + middle[1], w2 + middle[2]
        x, y, z = cross(w0, w1, w2, middle[0], middle[1], middle[2])
        ax = b0 + x + middle[3] + V[0, 0] * e1 + V[0, 1] * e2 + V[0, 2] * e3
        ay = b1 + y + middle[4] + V[1, 0] * e1 + V[1, 1] * e2 + V[1, 2] * e3
        az = b2 + z + middle[5] + V[2, 0] * e1 + V[2, 1] * e2 + V[2, 2] * e3
        hx, hy, hz = turn(J, ox, oy, oz)
        x, y, z = cross(ox, oy, oz, hx, hy, hz)
        hx, hy, hz = turn(J, ax, ay, az)
        drag, moment = body.drag[k, 1], scratch.moment[k]
        moment[0] = hx + x + drag * ox
        moment[1] = hy + y + drag * oy
        moment[2] = hz + z + drag * oz
        # On to the distal frame, in its own axes.
        p, P, W = scratch.end[k], scratch.end_map[k], scratch.end_turn[k]
        x, y, z = cross(w0, w1, w2, p[0], p[1], p[2])
        rx, ry, rz = cross(w0, w1, w2, x + 2.0 * end[0], y + 2.0 * end[1], z + 2.0 * end[2])
        tx, ty, tz = cross(b0, b1, b2, p[0], p[1], p[2])
        a0 += rx + tx + end[3] + P[0, 0] * e0 + P[0, 1] * e1 + P[0, 2] * e2 + P[0, 3] * e3
        a1 += ry + ty + end[4] + P[1, 0] * e0 + P[1, 1] * e1 + P[1, 2] * e2 + P[1, 3] * e3
        a2 += rz + tz + end[5] + P[2, 0] * e0 + P[2, 1] * e1 + P[2, 2] * e2 + P[2, 3] * e3
        u0, u1, u2 = u0 + x + end[0], u1 + y + end[1], u2 + z + end[2]
        x, y, z = cross(w0, w1, w2, spin[0], spin[1], spin[2])
        b0 += x + spin[3] + W[0, 0] * e1 + W[0, 1] * e2 + W[0, 2] * e3
        b1 += y + spin[4] + W[1, 0] * e1 + W[1, 1] * e2 + W[1, 2] * e3
        b2 += z + spin[5] + W[2, 0] * e1 + W[2, 1] * e2 + W[2, 2] * e3
        w0, w1, w2 = w0 + spin[0], w1 + spin[1], w2 + spin[2]
        R = scratch.turned[k]
        w0, w1, w2 = turn_back(R, w0, w1, w2)
        u0, u1, u2 = turn_back(R, u0, u1, u2)
        b0, b1, b2 = turn_back(R, b0, b1, b2)
        a0, a1, a2 = turn_back(R, a0, a1, a2)
        g0, g1, g2 = turn_back(R, g0, g1, g2)
        force, moment = scratch.tip_force[k], scratch.tip_moment[k]
        for i in range(3):
            force[i] = zero
            moment[i] = zero
        if body.has_body[k]:
            _distal_body(
                body, k, (w0, w1, w2), (u0, u1, u2), (b0, b1, b2), (a0, a1, a2),
                (g0, g1, g2), force, moment,
            )  # fmt: skip
        if body.has_connector[k]:
            c, T = body.connector[k], body.turn[k]
            x, y, z = cross(w0, w1, w2, c[0], c[1], c[2])
            rx, ry, rz = cross(w0, w1, w2, x, y, z)
            tx, ty, tz = cross(b0, b1, b2, c[0], c[1], c[2])
            u0, u1, u2 = turn_back(T, u0 + x, u1 + y, u2 + z)
            a0, a1, a2 = turn_back(T, a0 + rx + tx, a1 + ry + ty, a2 + rz + tz)
            w0, w1, w2 = turn_back(T, w0, w1, w2)
            b0, b1, b2 = turn_back(T, b0, b1, b2)
            g0, g1, g2 = turn_back(T, g0, g1, g2)
        # Pass single arrays: passing whole tuples of arrays costs more than the rest of the pass.
        R, F = scratch.rotation, loads.wrench
        fx, fy, fz = _turn_back_at(R, k + 1, -F[k, 0], -F[k, 1], -F[k, 2])
        mx, my, mz = _turn_back_at(R, k + 1, -F[k, 3], -F[k, 4], -F[k, 5])
        if loads.added_mass.shape[0] > 0:
            f, m = _fluid_wrench(
                loads.added_mass[k], (w0, w1, w2), (u0, u1, u2), (b0, b1, b2), (a0, a1, a2)
            )
            fx, fy, fz = fx + f[0], fy + f[1], fz + f[2]
            mx, my, mz = mx + m[0], my + m[1], mz + m[2]
        if loads.node_damping.shape[0] > 0:
            f, m = _damping_wrench(loads.node_damping[k], (w0, w1, w2), (u0, u1, u2))
            fx, fy, fz = fx + f[0], fy + f[1], fz + f[2]
            mx, my, mz = mx + m[0], my + m[1], mz + m[2]
        if body.has_connector[k]:
            fx, fy, fz = turn(body.turn[k], fx, fy, fz)
            mx, my, mz = turn(body.turn[k], mx, my, mz)
            c = body.connector[k]
            x, y, z = cross(c[0], c[1], c[2], fx, fy, fz)
            mx, my, mz = mx + x, my + y, mz + z
        force[0] += fx
        force[1] += fy
        force[2] += fz
        moment[0] += mx
        moment[1] += my
        moment[2] += mz


@kernel(allocates=False)
def _turn_back_at(R: Array, k: int, x: float, y: float, z: float) -> Triple:
    """Return R[k]^T (x, y, z)."""
    return (
        R[k, 0, 0] * x + R[k, 1, 0] * y + R[k, 2, 0] * z,
        R[k, 0, 1] * x + R[k, 1, 1] * y + R[k, 2, 1] * z,
        R[k, 0, 2] * x + R[k, 1, 2] * y + R[k, 2, 2] * z,
    )


@inlined
def _distal_body(
    body: Body,
    k: int,
    w: Triple,
    u: Triple,
    b: Triple,
    a: Triple,
    g: Triple,
    force: Array,
    moment: Array,
) -> None:
    """Add the wrench that the rigid body on the distal frame needs, and the viscous load there."""
    mass, weight, c, J = (
        body.tip_mass[k],
        body.tip_weight[k],
        body.tip_centre[k],
        body.tip_inertia[k],
    )
    x, y, z = cross(w[0], w[1], w[2], c[0], c[1], c[2])
    x, y, z = cross(w[0], w[1], w[2], x, y, z)
    tx, ty, tz = cross(b[0], b[1], b[2], c[0], c[1], c[2])
    fx = mass * (a[0] + x + tx) - weight * g[0]
    fy = mass * (a[1] + y + ty) - weight * g[1]
    fz = mass * (a[2] + z + tz) - weight * g[2]
    hx, hy, hz = turn(J, w[0], w[1], w[2])
    x, y, z = cross(w[0], w[1], w[2], hx, hy, hz)
    hx, hy, hz = turn(J, b[0], b[1], b[2])
    tx, ty, tz = cross(c[0], c[1], c[2], fx, fy, fz)
    d, s = body.tip_drag[k, 0], body.tip_drag[k, 1]
    force[0] += fx + d * u[0]
    force[1] += fy + d * u[1]
    force[2] += fz + d * u[2]
    moment[0] += hx + x + tx + s * w[0]
    moment[1] += hy + y + ty + s * w[1]
    moment[2] += hz + z + tz + s * w[2]


@kernel
def _fluid_wrench(A: Array, w: Triple, u: Triple, b: Triple, a: Triple) -> tuple[Triple, Triple]:
    """Return the force and moment that accelerate the added mass A (6, 6) of a node."""
    # Spatial momentum h = A (u, w) and A (u', w'), u' the rate of the node-axes velocity.
    x, y, z = cross(w[0], w[1], w[2], u[0], u[1], u[2])
    ax, ay, az = a[0] - x, a[1] - y, a[2] - z
    h0 = A[0, 0] * u[0] + A[0, 1] * u[1] + A[0, 2] * u[2]
    h0 += A[0, 3] * w[0] + A[0, 4] * w[1] + A[0, 5] * w[2]
    h1 = A[1, 0] * u[0] + A[1, 1] * u[1] + A[1, 2] * u[2]
    h1 += A[1, 3] * w[0] + A[1, 4] * w[1] + A[1, 5] * w[2]
    h2 = A[2, 0] * u[0] + A[2, 1] * u[1] + A[2, 2] * u[2]
    h2 += A[2, 3] * w[0] + A[2, 4] * w[1] + A[2, 5] * w[2]
    l0 = A[3, 0] * u[0] + A[3, 1] * u[1] + A[3, 2] * u[2]
    l0 += A[3, 3] * w[0] + A[3, 4] * w[1] + A[3, 5] * w[2]
    l1 = A[4, 0] * u[0] + A[4, 1] * u[1] + A[4, 2] * u[2]
    l1 += A[4, 3] * w[0] + A[4, 4] * w[1] + A[4, 5] * w[2]
    l2 = A[5, 0] * u[0] + A[5, 1] * u[1] + A[5, 2] * u[2]
    l2 += A[5, 3] * w[0] + A[5, 4] * w[1] + A[5, 5] * w[2]
    x, y, z = cross(w[0], w[1], w[2], h0, h1, h2)
    f0, f1, f2 = x, y, z
    x, y, z = cross(w[0], w[1], w[2], l0, l1, l2)
    m0, m1, m2 = x, y, z
    x, y, z = cross(u[0], u[1], u[2], h0, h1, h2)
    m0, m1, m2 = m0 + x, m1 + y, m2 + z
    f0 += A[0, 0] * ax + A[0, 1] * ay + A[0, 2] * az
    f0 += A[0, 3] * b[0] + A[0, 4] * b[1] + A[0, 5] * b[2]
    f1 += A[1, 0] * ax + A[1, 1] * ay + A[1, 2] * az
    f1 += A[1, 3] * b[0] + A[1, 4] * b[1] + A[1, 5] * b[2]
    f2 += A[2, 0] * ax + A[2, 1] * ay + A[2, 2] * az
    f2 += A[2, 3] * b[0] + A[2, 4] * b[1] + A[2, 5] * b[2]
    m0 += A[3, 0] * ax + A[3, 1] * ay + A[3, 2] * az
    m0 += A[3, 3] * b[0] + A[3, 4] * b[1] + A[3, 5] * b[2]
    m1 += A[4, 0] * ax + A[4, 1] * ay + A[4, 2] * az
    m1 += A[4, 3] * b[0] + A[4, 4] * b[1] + A[4, 5] * b[2]
    m2 += A[5, 0] * ax + A[5, 1] * ay + A[5, 2] * az
    m2 += A[5, 3] * b[0] + A[5, 4] * b[1] + A[5, 5] * b[2]
    return (f0, f1, f2), (m0, m1, m2)


@kernel
def _damping_wrench(D: Array, w: Triple, u: Triple) -> tuple[Triple, Triple]:
    """Return D (u, w) of a node."""
    a, b, c = u
    x, y, z = w
    return (
        D[0, 0] * a + D[0, 1] * b + D[0, 2] * c + D[0, 3] * x + D[0, 4] * y + D[0, 5] * z,
        D[1, 0] * a + D[1, 1] * b + D[1, 2] * c + D[1, 3] * x + D[1, 4] * y + D[1, 5] * z,
        D[2, 0] * a + D[2, 1] * b + D[2, 2] * c + D[2, 3] * x + D[2, 4] * y + D[2, 5] * z,
    ), (
        D[3, 0] * a + D[3, 1] * b + D[3, 2] * c + D[3, 3] * x + D[3, 4] * y + D[3, 5] * z,
        D[4, 0] * a + D[4, 1] * b + D[4, 2] * c + D[4, 3] * x + D[4, 4] * y + D[4, 5] * z,
        D[5, 0] * a + D[5, 1] * b + D[5, 2] * c + D[5, 3] * x + D[5, 4] * y + D[5, 5] * z,
    )
