"""
Compiled shape and energy of bending sections under weight and a load at the tip.

Curvature and twist of section k are sums of Legendre polynomials P_j of the arc length,

    kappa(s) = 1/L sum_j q_j P_j(2 s/L - 1)  (2 components, j < bends),    tau(s) likewise,

so the mean q_0 = b is the bending vector that the cables set. All other q are free; they minimise

    V(b, q) = sum_k K_b/(2 L) sum_j |q_j|^2/(2 j + 1) + K_tau/(2 L) ... - sum of weights . places.

D = dV/db at that minimum is the moment, of bending and weight, that the cables must hold.

The rod consists of pieces. In each piece, the rotation vector phi is the mean of the polynomials
over the piece, and the chord is that of an arc. The gradient is the exact derivative of this sum.
Dead forces act on the ends of pieces and endcaps.

Unknowns q (S u,): per section b_x, b_y, then the other bends in pairs, then the twists. Arrays are
those of `weight_layout`.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import cross_into
from softarm_ros.geometry.rotation_kernels import exp_so3_into, stumpff
from softarm_ros.models.cable_driven.weight_layout import Frames, Loads, Rod


@kernel
def _place_piece(q: Array, s: int, bends: int, twists: int, row: Array, phi: Array) -> None:
    """Write the rotation vector (3,) [rad] of a piece of the section whose unknowns start at s."""
    x, y, twist = 0.0, 0.0, 0.0
    for j in range(bends):
        x += row[j] * q[s + 2 * j]
        y += row[j] * q[s + 2 * j + 1]
    for j in range(twists):
        twist += row[j] * q[s + 2 * bends + j]
    phi[0], phi[1], phi[2] = -y, x, twist


@kernel
def frames_into(
    q: Array,
    rod: Rod,
    frames: Frames,
) -> None:
    """
    Write rotations (E + 1, 3, 3) and places (E + 1, 3) [m] of the elements' ends.

    Also write, for each element, `phi` (E, 3) [rad], zero for endcaps, and the `tangent` (E, 3) of
    its chord.
    """
    sections, basis, bends, twists = rod
    rotation, place, phi, tangent = frames
    pieces = basis.shape[0]
    per_section = pieces + 2
    unknowns = 2 * bends + twists
    half = np.empty((3, 3))
    rotation[0, :, :] = 0.0
    place[0, :] = 0.0
    for i in range(3):
        rotation[0, i, i] = 1.0
    for e in range(phi.shape[0]):
        k, n = e // per_section, e % per_section
        R, after = rotation[e], rotation[e + 1]
        if n == 0 or n == pieces + 1:
            phi[e, :] = 0.0
            length = sections[k, 1]
            for i in range(3):
                tangent[e, i] = R[i, 2]
                for j in range(3):
                    after[i, j] = R[i, j]
        else:
            _place_piece(q, unknowns * k, bends, twists, basis[n - 1], phi[e])
            x, y, z = phi[e, 0], phi[e, 1], phi[e, 2]
            c1, _, _, _ = stumpff(0.25 * (x * x + y * y))
            length = sections[k, 0] / pieces * c1
            exp_so3_into(0.5 * x, 0.5 * y, 0.5 * z, half)
            for i in range(3):
                tangent[e, i] = R[i, 0] * half[0, 2] + R[i, 1] * half[1, 2] + R[i, 2] * half[2, 2]
            exp_so3_into(x, y, z, half)
            for i in range(3):
                for j in range(3):
                    after[i, j] = (
                        R[i, 0] * half[0, j] + R[i, 1] * half[1, j] + R[i, 2] * half[2, j]
                    )
        for i in range(3):
            place[e + 1, i] = place[e, i] + length * tangent[e, i]


@kernel
def _add_turned(
    R: Array, x: float, y: float, z: float, sign: float, v: Array, scale: float, out: Array
) -> None:
    """Add scale Jl(sign phi) R^T v to `out` (3,), Jl the left Jacobian, phi = (x, y, z)."""
    _, c2, c3, _ = stumpff(x * x + y * y + z * z)
    a0 = R[0, 0] * v[0] + R[1, 0] * v[1] + R[2, 0] * v[2]
    a1 = R[0, 1] * v[0] + R[1, 1] * v[1] + R[2, 1] * v[2]
    a2 = R[0, 2] * v[0] + R[1, 2] * v[1] + R[2, 2] * v[2]
    b0, b1, b2 = y * a2 - z * a1, z * a0 - x * a2, x * a1 - y * a0
    d0, d1, d2 = y * b2 - z * b1, z * b0 - x * b2, x * b1 - y * b0
    c2 *= sign
    out[0] += scale * (a0 + c2 * b0 + c3 * d0)
    out[1] += scale * (a1 + c2 * b1 + c3 * d1)
    out[2] += scale * (a2 + c2 * b2 + c3 * d2)


@kernel
def stiffness_of(rod: Rod, k: int, n: int) -> float:
    """Return the elastic part of d2 V / dq^2 [N m] for unknown n of section k."""
    sections, bends = rod.sections, rod.bends
    if n < 2 * bends:
        return float(sections[k, 2] / (sections[k, 0] * (2 * (n // 2) + 1)))
    return float(sections[k, 3] / (sections[k, 0] * (2 * (n - 2 * bends) + 1)))


@kernel
def gradient_into(
    q: Array,
    rod: Rod,
    load: Loads,
    frames: Frames,
    gradient: Array,
) -> float:
    """Write dV/dq (S u,) [N m]; return V [J] without `load.moment`, which has no potential."""
    frames_into(q, rod, frames)
    sections, basis, bends, twists = rod
    rotation, place, phi, tangent = frames
    pieces = basis.shape[0]
    per_section = pieces + 2
    unknowns = 2 * bends + twists
    energy = 0.0
    for a in range(q.shape[0]):
        stiffness = stiffness_of(rod, a // unknowns, a % unknowns)
        gradient[a] = stiffness * q[a]
        energy += 0.5 * stiffness * q[a] * q[a]
    elements = phi.shape[0]
    force, torque = np.empty(3), np.empty(3)
    turned, arm, pull = np.empty(3), np.empty(3), np.empty(3)
    for i in range(3):
        force[i] = load.forces[elements, i]
        torque[i] = load.moment[i]
        energy -= force[i] * place[elements, i]
    for e in range(elements - 1, -1, -1):
        k, n = e // per_section, e % per_section
        if 0 < n <= pieces:
            x, y, z = phi[e, 0], phi[e, 1], phi[e, 2]
            c1, c2, c3, _ = stumpff(0.25 * (x * x + y * y))
            ds = sections[k, 0] / pieces
            turned[:] = 0.0
            _add_turned(rotation[e], x, y, z, -1.0, torque, 1.0, turned)
            cross_into(tangent[e], force, pull)
            _add_turned(rotation[e], 0.5 * x, 0.5 * y, 0.5 * z, -1.0, pull, 0.5 * ds * c1, turned)
            along = force[0] * tangent[e, 0] + force[1] * tangent[e, 1] + force[2] * tangent[e, 2]
            shrinks = 0.25 * ds * (c3 - c2) * along
            turned[0] += shrinks * x
            turned[1] += shrinks * y
            s = unknowns * k
            for j in range(bends):
                gradient[s + 2 * j] -= basis[n - 1, j] * turned[1]
                gradient[s + 2 * j + 1] += basis[n - 1, j] * turned[0]
            for j in range(twists):
                gradient[s + 2 * bends + j] -= basis[n - 1, j] * turned[2]
        for i in range(3):
            arm[i] = place[e + 1, i] - place[e, i]
        cross_into(arm, force, pull)
        for i in range(3):
            torque[i] += pull[i]
            force[i] += load.forces[e, i]
            energy -= load.forces[e, i] * place[e, i]
    return energy


@kernel
def tip_twist_into(
    q: Array,
    rod: Rod,
    frames: Frames,
    twist: Array,
) -> None:
    """Write the derivative of the tip's pose (6, S u) by q, base frame, linear rows first."""
    frames_into(q, rod, frames)
    sections, basis, bends, twists = rod
    rotation, place, phi, tangent = frames
    pieces = basis.shape[0]
    per_section = pieces + 2
    unknowns = 2 * bends + twists
    twist[:, :] = 0.0
    tip = place[phi.shape[0]]
    turn, middle, axis = np.empty(3), np.empty(3), np.empty(3)
    arm, way, moved = np.empty(3), np.empty(3), np.empty(3)
    for e in range(phi.shape[0]):
        k, n = e // per_section, e % per_section
        if n == 0 or n == pieces + 1:
            continue
        x, y, z = phi[e, 0], phi[e, 1], phi[e, 2]
        c1, c2, c3, _ = stumpff(0.25 * (x * x + y * y))
        ds = sections[k, 0] / pieces
        R = rotation[e]
        for c in range(3):  # axis of the piece's rotation vector
            for i in range(3):
                axis[i] = 1.0 if i == c else 0.0
            _turn_by(R, x, y, z, axis, 1.0, turn)
            _turn_by(R, 0.5 * x, 0.5 * y, 0.5 * z, axis, 0.5, middle)
            for i in range(3):
                arm[i] = tip[i] - place[e + 1, i]
            cross_into(turn, arm, moved)
            cross_into(middle, tangent[e], way)
            shrinks = 0.0 if c == 2 else 0.25 * (c3 - c2) * phi[e, c]
            for i in range(3):
                moved[i] += ds * (c1 * way[i] + shrinks * tangent[e, i])
            count = bends if c < 2 else twists
            for j in range(count):
                if c == 2:
                    a, sign = unknowns * k + 2 * bends + j, 1.0
                elif c == 1:
                    a, sign = unknowns * k + 2 * j, 1.0
                else:
                    a, sign = unknowns * k + 2 * j + 1, -1.0
                weight = sign * basis[n - 1, j]
                for i in range(3):
                    twist[i, a] += weight * moved[i]
                    twist[3 + i, a] += weight * turn[i]


@kernel
def _turn_by(R: Array, x: float, y: float, z: float, v: Array, scale: float, out: Array) -> None:
    """Write scale R Jl(phi) v (3,), phi = (x, y, z)."""
    _, c2, c3, _ = stumpff(x * x + y * y + z * z)
    b0, b1, b2 = y * v[2] - z * v[1], z * v[0] - x * v[2], x * v[1] - y * v[0]
    d0, d1, d2 = y * b2 - z * b1, z * b0 - x * b2, x * b1 - y * b0
    a0, a1, a2 = v[0] + c2 * b0 + c3 * d0, v[1] + c2 * b1 + c3 * d1, v[2] + c2 * b2 + c3 * d2
    for i in range(3):
        out[i] = scale * (R[i, 0] * a0 + R[i, 1] * a1 + R[i, 2] * a2)
