"""
Compiled statics of bending sections under weight and a load at the tip, whatever holds them.

Curvature and twist of section k are sums of Legendre polynomials P_j of the arc length,

    kappa(s) = 1/L sum_j q_j P_j(2 s/L - 1)  (2 components, j < bends),    tau(s) likewise,

so the mean q_0 = b is the bending vector that cables set, and all other q find their place by
themselves: they minimise

    V(b, q) = sum_k K_b/(2 L) sum_j |q_j|^2/(2 j + 1) + K_tau/(2 L) ... - sum of weights . places.

D = dV/db at that minimum is what the cables have to hold: the moment of bending and of weight.

The rod is made of pieces; in each the rotation vector phi is the mean of the polynomials over it,
and its chord the one of an arc. The gradient is the exact derivative of this sum. Dead forces act
on the ends of pieces and endcaps.

Arrays, for S sections of N pieces and E = S (N + 2) elements (endcap, pieces, endcap):
`sections` (S, 4): L, h [m], K_b, K_tau [N m^2]; `basis` (N, max(bends, twists)): mean of P_j over
a piece, over N; `forces` (E + 1, 3) [N] on the ends of elements; `moment` (3,) [N m] at the tip.
Unknowns q (S u,): per section b_x, b_y, then the other bends by pairs, then the twists.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import solve_small
from softarm_ros.geometry.rotation_kernels import exp_so3_into, stumpff
from softarm_ros.models.cable_driven.slack_kernels import holding_shares

HELD, UNSTABLE, NOT_FOUND = 0, 1, 2
_STEP = 1e-5  # rad, of the differences of the gradient
_BALANCED = 1e-12  # of K_b / L
_MAX_STEP_RAD = 0.5
_ROUNDED = 1e3  # of that, where steps no longer lead down
_ROUNDS, _CHORD_ROUNDS = 100, 15


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
    sections: Array,
    basis: Array,
    bends: int,
    twists: int,
    rotation: Array,
    place: Array,
    phi: Array,
    tangent: Array,
) -> None:
    """
    Write rotations (E + 1, 3, 3) and places (E + 1, 3) [m] of the elements' ends.

    Also, of each element: `phi` (E, 3) [rad], zero for endcaps, and `tangent` (E, 3) of its chord.
    """
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
def _cross(a: Array, b: Array, out: Array) -> None:
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@kernel
def stiffness_of(sections: Array, k: int, bends: int, n: int) -> float:
    """Return d2 V / dq^2 [N m] by elasticity alone, for unknown n of section k."""
    if n < 2 * bends:
        return float(sections[k, 2] / (sections[k, 0] * (2 * (n // 2) + 1)))
    return float(sections[k, 3] / (sections[k, 0] * (2 * (n - 2 * bends) + 1)))


@kernel
def gradient_into(
    q: Array,
    sections: Array,
    basis: Array,
    bends: int,
    twists: int,
    forces: Array,
    moment: Array,
    rotation: Array,
    place: Array,
    phi: Array,
    tangent: Array,
    gradient: Array,
) -> float:
    """Write dV/dq (S u,) [N m]; return V [J], without the work of `moment`, which has none."""
    frames_into(q, sections, basis, bends, twists, rotation, place, phi, tangent)
    pieces = basis.shape[0]
    per_section = pieces + 2
    unknowns = 2 * bends + twists
    energy = 0.0
    for a in range(q.shape[0]):
        stiffness = stiffness_of(sections, a // unknowns, bends, a % unknowns)
        gradient[a] = stiffness * q[a]
        energy += 0.5 * stiffness * q[a] * q[a]
    elements = phi.shape[0]
    force, torque = np.empty(3), np.empty(3)
    turned, arm, pull = np.empty(3), np.empty(3), np.empty(3)
    for i in range(3):
        force[i] = forces[elements, i]
        torque[i] = moment[i]
        energy -= force[i] * place[elements, i]
    for e in range(elements - 1, -1, -1):
        k, n = e // per_section, e % per_section
        if 0 < n <= pieces:
            x, y, z = phi[e, 0], phi[e, 1], phi[e, 2]
            c1, c2, c3, _ = stumpff(0.25 * (x * x + y * y))
            ds = sections[k, 0] / pieces
            turned[:] = 0.0
            _add_turned(rotation[e], x, y, z, -1.0, torque, 1.0, turned)
            _cross(tangent[e], force, pull)
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
        _cross(arm, force, pull)
        for i in range(3):
            torque[i] += pull[i]
            force[i] += forces[e, i]
            energy -= forces[e, i] * place[e, i]
    return energy


@kernel
def _hessian_into(
    q: Array,
    sections: Array,
    basis: Array,
    bends: int,
    twists: int,
    forces: Array,
    moment: Array,
    rotation: Array,
    place: Array,
    phi: Array,
    tangent: Array,
    hessian: Array,
) -> None:
    """Write the derivative of the gradient (S u, S u), by central differences of it."""
    count = q.shape[0]
    up, down, beside = np.empty(count), np.empty(count), q.copy()
    for a in range(count):
        beside[a] = q[a] + _STEP
        gradient_into(
            beside, sections, basis, bends, twists, forces, moment,
            rotation, place, phi, tangent, up,
        )  # fmt: skip
        beside[a] = q[a] - _STEP
        gradient_into(
            beside, sections, basis, bends, twists, forces, moment,
            rotation, place, phi, tangent, down,
        )  # fmt: skip
        beside[a] = q[a]
        for b in range(count):
            hessian[b, a] = (up[b] - down[b]) / (2.0 * _STEP)


@kernel
def _factorise(
    hessian: Array, free: IntArray, extra: float, diagonal: Array, factor: Array
) -> bool:
    """Write the Cholesky factor of the free block with `extra` diagonals; False if none is."""
    n = free.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = 0.5 * (hessian[free[i], free[j]] + hessian[free[j], free[i]])
            if i == j:
                total += extra * diagonal[i]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
            else:
                if not total > 1e-9 * diagonal[i]:
                    return False
                factor[i, i] = math.sqrt(total)
    return True


@kernel
def _solve(factor: Array, right: Array) -> None:
    """Solve factor factor^T x = right (n,) in place."""
    n = right.shape[0]
    for i in range(n):
        for k in range(i):
            right[i] -= factor[i, k] * right[k]
        right[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            right[i] -= factor[k, i] * right[k]
        right[i] /= factor[i, i]


@kernel
def _largest(gradient: Array, free: IntArray) -> float:
    """Return the largest moment among the free unknowns [N m]."""
    most = 0.0
    for i in range(free.shape[0]):
        most = max(most, abs(gradient[free[i]]))
    return most


@kernel
def _twist_of_cables(
    q: Array,
    gradient: Array,
    sections: Array,
    cables: Array,
    first: IntArray,
    bends: int,
    twists: int,
    added: Array,
    slopes: Array,
) -> None:
    """
    Write what taut cables add to the stiffness against twist, and add that to the gradient.

    A cable at the distance r that pulls with T resists a twist tau with T r^2 tau. The pulls are
    those of the two cables beside the moment D. `added` (S,) [N m^2]; `slopes` (S, 2) by D [m].
    """
    unknowns = 2 * bends + twists
    for k in range(sections.shape[0]):
        mine = cables[first[k] : first[k + 1]]
        dx, dy = gradient[unknowns * k], gradient[unknowns * k + 1]
        added[k], slopes[k, 0], slopes[k, 1] = 0.0, 0.0, 0.0
        if dx == 0.0 and dy == 0.0:
            continue
        i, j, share_i, share_j, _ = holding_shares(dx, dy, mine)
        square = mine[i, 0] * mine[i, 0] + mine[i, 1] * mine[i, 1]
        added[k] = square * (share_i + share_j)
        if i == j:
            slopes[k, 0], slopes[k, 1] = mine[i, 0], mine[i, 1]
        else:
            det = mine[i, 0] * mine[j, 1] - mine[i, 1] * mine[j, 0]
            slopes[k, 0] = square * (mine[j, 1] - mine[i, 1]) / det
            slopes[k, 1] = square * (mine[i, 0] - mine[j, 0]) / det
        for n in range(twists):
            a = unknowns * k + 2 * bends + n
            gradient[a] += added[k] * q[a] / (sections[k, 0] * (2 * n + 1))


@kernel
def settle_into(
    q: Array,
    sections: Array,
    basis: Array,
    bends: int,
    twists: int,
    forces: Array,
    moment: Array,
    cables: Array,
    first: IntArray,
    near: Array,
    held: Array,
    stiffness: Array,
    factor: Array,
    slopes: Array,
) -> int:
    """
    Find the free unknowns of `q` (S u,) for its bends b, from those in it; return the status.

    `cables` (m, 3) as in `slack_kernels`, those of section k from `first[k]` to `first[k + 1]`;
    `near` (f, f) or (0, 0) is the `factor` of a neighbour, with which the search begins. Written
    are `held` (2 S,), D = dV/db [N m]; `stiffness` (2 S, 2 S), dD/db with the free unknowns
    following; `factor` (f, f), Cholesky, of the free unknowns' stiffness; `slopes` (f, 2 S), their
    derivative by b.
    """
    count = q.shape[0]
    unknowns = 2 * bends + twists
    groups = count // unknowns
    f = count - 2 * groups
    free, diagonal = np.empty(f, np.int64), np.empty(f)
    i = 0
    for a in range(count):
        if a % unknowns >= 2:
            free[i] = a
            diagonal[i] = stiffness_of(sections, a // unknowns, bends, a % unknowns)
            i += 1
    elements = forces.shape[0] - 1
    rotation, place = np.empty((elements + 1, 3, 3)), np.empty((elements + 1, 3))
    phi, tangent = np.empty((elements, 3)), np.empty((elements, 3))
    gradient, step, trial = np.empty(count), np.empty(f), q.copy()
    hessian = np.empty((count, count))
    added, by_held = np.empty(groups), np.empty((groups, 2))
    stiffer = sections.copy()
    limit = _BALANCED * sections[0, 2] / sections[0, 0]
    balanced = near.shape[0] == f and _chord(
        q, sections, basis, bends, twists, forces, moment, cables, first, free, near, limit,
        rotation, place, phi, tangent, gradient, step, trial, added, by_held,
    )  # fmt: skip
    for _ in range(_ROUNDS):
        if balanced:
            break
        gradient_into(
            q, sections, basis, bends, twists, forces, moment,
            rotation, place, phi, tangent, gradient,
        )  # fmt: skip
        _twist_of_cables(q, gradient, sections, cables, first, bends, twists, added, by_held)
        for k in range(groups):
            stiffer[k, 3] = sections[k, 3] + added[k]
        if not _descend(
            q, stiffer, basis, bends, twists, forces, moment, free, diagonal, limit,
            rotation, place, phi, tangent, gradient, step, trial, hessian, factor,
        ):  # fmt: skip
            return NOT_FOUND
        balanced = _chord(
            q, sections, basis, bends, twists, forces, moment, cables, first, free, factor, limit,
            rotation, place, phi, tangent, gradient, step, trial, added, by_held,
        )  # fmt: skip
    if not balanced:
        return NOT_FOUND
    _hessian_into(
        q, sections, basis, bends, twists, forces, moment,
        rotation, place, phi, tangent, hessian,
    )  # fmt: skip
    for k in range(groups):
        for n in range(twists):
            a = unknowns * k + 2 * bends + n
            hessian[a, a] += added[k] / (sections[k, 0] * (2 * n + 1))
    if not _factorise(hessian, free, 0.0, diagonal, factor):
        return UNSTABLE
    for k in range(groups):  # the cables' pull grows with the moment they hold
        for n in range(twists):
            a = unknowns * k + 2 * bends + n
            share = q[a] / (sections[k, 0] * (2 * n + 1))
            for b in range(count):
                hessian[a, b] += share * (
                    by_held[k, 0] * hessian[unknowns * k, b]
                    + by_held[k, 1] * hessian[unknowns * k + 1, b]
                )
    matrix, column = np.empty((f, f)), np.empty(f)
    for b in range(2 * groups):
        at = unknowns * (b // 2) + b % 2
        held[b] = gradient[at]
        for i in range(f):
            column[i] = -hessian[free[i], at]
            for j in range(f):
                matrix[i, j] = hessian[free[i], free[j]]
        solve_small(matrix, column)
        slopes[:, b] = column
    for b in range(2 * groups):
        row = unknowns * (b // 2) + b % 2
        for d in range(2 * groups):
            total = hessian[row, unknowns * (d // 2) + d % 2]
            for i in range(f):
                total += hessian[row, free[i]] * slopes[i, d]
            stiffness[b, d] = total
    return HELD


@kernel
def _chord(
    q: Array,
    sections: Array,
    basis: Array,
    bends: int,
    twists: int,
    forces: Array,
    moment: Array,
    cables: Array,
    first: IntArray,
    free: IntArray,
    factor: Array,
    limit: float,
    rotation: Array,
    place: Array,
    phi: Array,
    tangent: Array,
    gradient: Array,
    step: Array,
    trial: Array,
    added: Array,
    by_held: Array,
) -> bool:
    """Move `q` to the balance by steps with one factor; leave it and return False if it fails."""
    trial[:] = q
    last = math.inf
    for _ in range(_CHORD_ROUNDS):
        gradient_into(
            trial, sections, basis, bends, twists, forces, moment,
            rotation, place, phi, tangent, gradient,
        )  # fmt: skip
        _twist_of_cables(trial, gradient, sections, cables, first, bends, twists, added, by_held)
        size = _largest(gradient, free)
        if size <= limit:
            q[:] = trial
            return True
        if not size < 0.7 * last:
            return False
        last = size
        for i in range(free.shape[0]):
            step[i] = gradient[free[i]]
        _solve(factor, step)
        for i in range(free.shape[0]):
            trial[free[i]] -= step[i]
    return False


@kernel
def _descend(
    q: Array,
    sections: Array,
    basis: Array,
    bends: int,
    twists: int,
    forces: Array,
    moment: Array,
    free: IntArray,
    diagonal: Array,
    limit: float,
    rotation: Array,
    place: Array,
    phi: Array,
    tangent: Array,
    gradient: Array,
    step: Array,
    trial: Array,
    hessian: Array,
    factor: Array,
) -> bool:
    """Move `q` down to the least energy with given stiffnesses; True if it was found."""
    f = free.shape[0]
    energy = gradient_into(
        q, sections, basis, bends, twists, forces, moment,
        rotation, place, phi, tangent, gradient,
    )  # fmt: skip
    conservative = moment[0] == 0.0 and moment[1] == 0.0 and moment[2] == 0.0
    for _ in range(_ROUNDS):
        size = _largest(gradient, free)
        _hessian_into(
            q, sections, basis, bends, twists, forces, moment,
            rotation, place, phi, tangent, hessian,
        )  # fmt: skip
        extra = 0.0
        while not _factorise(hessian, free, extra, diagonal, factor):
            extra = 4.0 * extra + 0.05
        if size <= limit:
            return True
        gradient_into(
            q, sections, basis, bends, twists, forces, moment,
            rotation, place, phi, tangent, gradient,
        )  # fmt: skip
        largest, downhill = 0.0, 0.0
        for i in range(f):
            step[i] = gradient[free[i]]
        _solve(factor, step)
        for i in range(f):
            largest = max(largest, abs(step[i]))
            downhill += step[i] * gradient[free[i]]
        share = min(1.0, _MAX_STEP_RAD / largest)
        # Close to the minimum the energy rounds; the gradient tells there.
        flat = not conservative or downhill <= 1e-10 * limit / _BALANCED
        moved = False
        for _ in range(30):
            trial[:] = q
            for i in range(f):
                trial[free[i]] -= share * step[i]
            there = gradient_into(
                trial, sections, basis, bends, twists, forces, moment,
                rotation, place, phi, tangent, gradient,
            )  # fmt: skip
            if flat:
                moved = _largest(gradient, free) < size
            else:
                moved = there <= energy - 1e-4 * share * downhill
            if moved:
                q[:] = trial
                energy = there
                break
            share *= 0.5
        if not moved:
            return size <= _ROUNDED * limit
    return False


@kernel
def tip_twist_into(
    q: Array,
    sections: Array,
    basis: Array,
    bends: int,
    twists: int,
    rotation: Array,
    place: Array,
    phi: Array,
    tangent: Array,
    twist: Array,
) -> None:
    """Write the derivative of the tip's pose (6, S u) by q, base frame, linear rows first."""
    frames_into(q, sections, basis, bends, twists, rotation, place, phi, tangent)
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
            _cross(turn, arm, moved)
            _cross(middle, tangent[e], way)
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
