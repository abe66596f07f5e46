"""Compiled energies, losses and node velocities of an arm, one outward pass each."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch
from softarm_ros.models.dynamics.recursion_kernels import cross, turn, turn_back
from softarm_ros.models.dynamics.segment_kernels import segment_rates


@kernel
def energies(
    body: Body, loads: Loads, q: Array, v: Array, scratch: Scratch
) -> tuple[float, float, float, float]:
    """
    Return kinetic, elastic and weight energy [J] and the power lost in damping and drag [W].

    `place_arm` must have been called for `q`. The kinetic energy includes that of the fluid.
    """
    kinetic, elastic, weight, loss = 0.0, 0.0, 0.0, 0.0
    w0, w1, w2, u0, u1, u2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(body.length.shape[0]):
        end, centre, spin, middle = segment_rates(body.length[k], q, v, k)
        R, r = scratch.rotation[k], scratch.origin[k]
        p, J = scratch.centre[k], scratch.inertia[k]
        x, y, z = cross(w0, w1, w2, p[0], p[1], p[2])
        x, y, z = u0 + x + centre[0], u1 + y + centre[1], u2 + z + centre[2]
        speed2 = x * x + y * y + z * z
        x, y, z = w0 + middle[0], w1 + middle[1], w2 + middle[2]
        hx, hy, hz = turn(J, x, y, z)
        kinetic += 0.5 * (body.mass[k] * speed2 + x * hx + y * hy + z * hz)
        loss += body.drag[k, 0] * speed2 + body.drag[k, 1] * (x * x + y * y + z * z)
        x, y, z = turn(R, p[0], p[1], p[2])
        g = loads.gravity
        weight -= body.weight[k] * (g[0] * (r[0] + x) + g[1] * (r[1] + y) + g[2] * (r[2] + z))
        for i in range(4):
            kinetic += 0.5 * body.inner[k, i] * v[k, i] * v[k, i]
            for j in range(4):
                stretch = (q[k, i] - body.rest[k, i]) * (q[k, j] - body.rest[k, j])
                elastic += 0.5 * body.length[k] * body.stiffness[k, i, j] * stretch
                loss += body.length[k] * body.damping[k, i, j] * v[k, i] * v[k, j]
        p, T = scratch.end[k], scratch.turned[k]
        x, y, z = cross(w0, w1, w2, p[0], p[1], p[2])
        u0, u1, u2 = turn_back(T, u0 + x + end[0], u1 + y + end[1], u2 + z + end[2])
        w0, w1, w2 = turn_back(T, w0 + spin[0], w1 + spin[1], w2 + spin[2])
        if body.has_body[k]:
            c, J = body.tip_centre[k], body.tip_inertia[k]
            x, y, z = cross(w0, w1, w2, c[0], c[1], c[2])
            x, y, z = u0 + x, u1 + y, u2 + z
            hx, hy, hz = turn(J, w0, w1, w2)
            kinetic += 0.5 * body.tip_mass[k] * (x * x + y * y + z * z)
            kinetic += 0.5 * (w0 * hx + w1 * hy + w2 * hz)
            loss += body.tip_drag[k, 0] * (u0 * u0 + u1 * u1 + u2 * u2)
            loss += body.tip_drag[k, 1] * (w0 * w0 + w1 * w1 + w2 * w2)
            x, y, z = turn(T, c[0], c[1], c[2])
            x, y, z = turn(R, x + p[0], y + p[1], z + p[2])
            weight -= body.tip_weight[k] * (
                g[0] * (r[0] + x) + g[1] * (r[1] + y) + g[2] * (r[2] + z)
            )
        if body.has_connector[k]:
            c, T = body.connector[k], body.turn[k]
            x, y, z = cross(w0, w1, w2, c[0], c[1], c[2])
            u0, u1, u2 = turn_back(T, u0 + x, u1 + y, u2 + z)
            w0, w1, w2 = turn_back(T, w0, w1, w2)
        if loads.added_mass.shape[0] > 0:
            twist = (u0, u1, u2, w0, w1, w2)
            for i in range(6):
                for j in range(6):
                    kinetic += 0.5 * loads.added_mass[k, i, j] * twist[i] * twist[j]
        if loads.node_damping.shape[0] > 0:
            twist = (u0, u1, u2, w0, w1, w2)
            for i in range(6):
                for j in range(6):
                    loss += loads.node_damping[k, i, j] * twist[i] * twist[j]
    return kinetic, elastic, weight, loss


@kernel
def tip_twists(body: Body, scratch: Scratch, out: Array) -> None:
    """Write the tip twist per strain rate (6, 4 n), as `node_twists`."""
    n = body.length.shape[0]
    unit, twists = np.zeros((n, 4)), np.empty((n, 6))
    for j in range(4 * n):
        unit[j // 4, j % 4] = 1.0
        node_twists(body, unit, scratch, twists)
        unit[j // 4, j % 4] = 0.0
        for i in range(6):
            out[i, j] = twists[n - 1, i]


@kernel
def node_twists(body: Body, v: Array, scratch: Scratch, out: Array) -> None:
    """Write the twists (n, 6) of the nodes, base axes, linear first; call `place_arm` before."""
    w0, w1, w2, u0, u1, u2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(body.length.shape[0]):
        p, P, W = scratch.end[k], scratch.end_map[k], scratch.end_turn[k]
        x, y, z = cross(w0, w1, w2, p[0], p[1], p[2])
        u0 += x + P[0, 0] * v[k, 0] + P[0, 1] * v[k, 1] + P[0, 2] * v[k, 2] + P[0, 3] * v[k, 3]
        u1 += y + P[1, 0] * v[k, 0] + P[1, 1] * v[k, 1] + P[1, 2] * v[k, 2] + P[1, 3] * v[k, 3]
        u2 += z + P[2, 0] * v[k, 0] + P[2, 1] * v[k, 1] + P[2, 2] * v[k, 2] + P[2, 3] * v[k, 3]
        w0 += W[0, 0] * v[k, 1] + W[0, 1] * v[k, 2] + W[0, 2] * v[k, 3]
        w1 += W[1, 0] * v[k, 1] + W[1, 1] * v[k, 2] + W[1, 2] * v[k, 3]
        w2 += W[2, 0] * v[k, 1] + W[2, 1] * v[k, 2] + W[2, 2] * v[k, 3]
        T = scratch.turned[k]
        u0, u1, u2 = turn_back(T, u0, u1, u2)
        w0, w1, w2 = turn_back(T, w0, w1, w2)
        if body.has_connector[k]:
            c, T = body.connector[k], body.turn[k]
            x, y, z = cross(w0, w1, w2, c[0], c[1], c[2])
            u0, u1, u2 = turn_back(T, u0 + x, u1 + y, u2 + z)
            w0, w1, w2 = turn_back(T, w0, w1, w2)
        R = scratch.rotation[k + 1]
        out[k, 0], out[k, 1], out[k, 2] = turn(R, u0, u1, u2)
        out[k, 3], out[k, 4], out[k, 5] = turn(R, w0, w1, w2)
