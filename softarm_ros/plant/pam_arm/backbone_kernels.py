"""
Compiled dynamics of the backbone: backward Euler as a minimum.

The state after a step h minimises, over the quaternion nodes of the minimum-energy rod,

    elastic energy - weight . r + muscles + damping_time K (w - w0)^2 ds / 2 h
    + sum m |r - (r0 + h v0)|^2 / 2 h^2 + drag m |r - r0|^2 / 2 h
    + sum J |d - h w0|^2 / 2 h^2 + drag J |d|^2 / 2 h,      d = 2 vec(q0* q)

whose stationary point is Newton's second law with all forces taken at the end of the step; no
Coriolis terms are needed because masses are followed as points. Muscles with dashpots are springs
of another stiffness and length for one step. Newton's method with the exact gradient and Hessian.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.minimum_energy.kernels import (
    positions_into,
    relative,
    retract_into,
    step_jacobian_into,
    times_unit,
    unit_times,
)
from softarm_ros.models.minimum_energy.muscle_kernels import muscle_vectors_into
from softarm_ros.models.minimum_energy.newton_kernels import longest, system_into

Array = NDArray[np.float64]

_MAX_ITERATIONS = 12
_MAX_TURN = 0.2  # of |u| in one iteration


@kernel
def turns_into(before: Array, q: Array, turn: Array) -> None:
    """Write the rotation (n, 3) [rad] of every node since `before`, body frame, small."""
    for i in range(turn.shape[0]):
        r0, r1, r2, r3 = relative(before[i + 1], q[i + 1])
        sign = 2.0 if r0 >= 0.0 else -2.0
        turn[i, 0], turn[i, 1], turn[i, 2] = sign * r1, sign * r2, sign * r3


@kernel
def add_strain_damping(
    q: Array, before: Array, ds: float, damping: Array, gradient: Array, band: Array, second: bool
) -> None:
    """
    Add the derivatives of sum damping_j (w_j - w0_j)^2 ds / 2; w = 2 vec(q_i* q_i+1) / ds.

    `damping` (3,) [N m^2]: per unit of strain. The curvature of w itself is left out of `band`:
    it is multiplied by what the strain changes in a step.
    """
    da, db = np.empty((3, 3)), np.empty((3, 3))
    for i in range(q.shape[0] - 1):
        row_a, row_b = 3 * i - 3, 3 * i
        r0, r1, r2, r3 = relative(q[i], q[i + 1])
        _, s1, s2, s3 = relative(before[i], before[i + 1])
        change = (r1 - s1, r2 - s2, r3 - s3)
        for k in range(3):
            _, x, y, z = unit_times(r0, r1, r2, r3, k)
            da[0, k], da[1, k], da[2, k] = -x, -y, -z
            _, x, y, z = times_unit(r0, r1, r2, r3, k)
            db[0, k], db[1, k], db[2, k] = x, y, z
        for j in range(3):
            c = 4.0 * damping[j] / ds
            for k in range(3):
                gradient[row_b + k] += c * change[j] * db[j, k]
                if i > 0:
                    gradient[row_a + k] += c * change[j] * da[j, k]
                if not second:
                    continue
                for m in range(k + 1):
                    band[row_b + k, k - m] += c * db[j, k] * db[j, m]
                    if i > 0:
                        band[row_a + k, k - m] += c * da[j, k] * da[j, m]
                if i > 0:
                    for m in range(3):
                        band[row_b + k, 3 + k - m] += c * db[j, k] * da[j, m]


@kernel
def add_masses(
    q: Array, ds: float, masses: Array, share: float, end: Array, body: Array, hessian: Array
) -> None:
    """
    Add J' M J of the node masses (n,) times `share` to the Hessian (3 n, 3 n), lower half.

    A node's rotation moves all nodes outboard alike (`end`), and itself (`body`): both (n, 3, 3).
    """
    n = masses.size
    by_a, by_b = np.empty((3, 3)), np.empty((3, 3))
    for i in range(n):
        step_jacobian_into(q[i], q[i + 1], ds, by_a, by_b)
        body[i] = by_b
        end[i] = by_b
        if i > 0:
            end[i - 1] += by_a
    outboard = 0.0
    for k in range(n - 1, -1, -1):
        own = share * masses[k]
        for j in range(k + 1):
            lever = body[k] if j == k else end[j]
            for a in range(3):
                for b in range(3):
                    value = 0.0
                    for c in range(3):
                        if j == k:
                            value += body[k, c, a] * own * body[k, c, b]
                            value += end[k, c, a] * outboard * end[k, c, b]
                        else:
                            value += lever[c, b] * (own * body[k, c, a] + outboard * end[k, c, a])
                    hessian[3 * k + a, 3 * j + b] += value
        outboard += own


@kernel
def solve_positive_into(matrix: Array, vector: Array) -> bool:
    """Overwrite `vector` by matrix^-1 vector (Cholesky, lower half); False if not positive."""
    size = vector.size
    for i in range(size):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not value > 0.0:
                    return False
                matrix[i, i] = math.sqrt(value)
            else:
                matrix[i, j] = value / matrix[j, j]
    for i in range(size):
        value = vector[i]
        for k in range(i):
            value -= matrix[i, k] * vector[k]
        vector[i] = value / matrix[i, i]
    for i in range(size - 1, -1, -1):
        value = vector[i]
        for k in range(i + 1, size):
            value -= matrix[k, i] * vector[k]
        vector[i] = value / matrix[i, i]
    return True


@kernel
def backbone_gradient_into(
    q: Array,
    before: Array,
    r_before: Array,
    velocity: Array,
    spin: Array,
    ds: float,
    stiffness: Array,
    masses: Array,
    inertias: Array,
    drag_rate: float,
    gravity: Array,
    anchors: Array,
    lengths: Array,
    muscle_stiffness: Array,
    damping: Array,
    h: float,
    r: Array,
    vectors: Array,
    loads: Array,
    forces: Array,
    turn: Array,
    gradient: Array,
    band: Array,
    by_lengths: Array,
    second: bool,
) -> None:
    """
    Write the gradient (3 n,) [N m] of the step's energy and the band of its Hessian.

    `q`, `before` (n + 1, 4): nodes now and at the start of the step; `velocity`, `spin` (n, 3) of
    the nodes at the start; `damping` (3,) of the strains by the length of the step. The part
    J' M J of the Hessian is left to `add_masses`.
    """
    n = q.shape[0] - 1
    none = np.empty(0)
    attitude = np.empty(4)
    border = np.empty((3 * n, 0))
    positions_into(q, ds, r)
    muscle_vectors_into(q, r, anchors, vectors)
    for c in range(3):
        sum_outboard = 0.0
        for i in range(n - 1, -1, -1):
            moved = r[i + 1, c] - r_before[i + 1, c]
            inertia = (moved - h * velocity[i, c]) / (h * h) + drag_rate * moved / h
            sum_outboard += masses[i] * (gravity[c] - inertia)
            loads[i, c] = sum_outboard
    system_into(
        q, ds, stiffness, loads, attitude, none, anchors, vectors, lengths, muscle_stiffness,
        forces, gradient, band, border, by_lengths, second,
    )  # fmt: skip
    add_strain_damping(q, before, ds, damping, gradient, band, second)
    turns_into(before, q, turn)
    for i in range(n):
        r0, r1, r2, r3 = relative(before[i + 1], q[i + 1])
        sign = 2.0 if r0 >= 0.0 else -2.0
        for k in range(3):
            _, x, y, z = times_unit(r0, r1, r2, r3, k)
            by = (sign * x, sign * y, sign * z)
            for c in range(3):
                d = turn[i, c]
                pull = inertias[i] * ((d - h * spin[i, c]) / (h * h) + drag_rate * d / h)
                gradient[3 * i + k] += pull * by[c]


@kernel
def step_backbone(
    q: Array,
    r: Array,
    velocity: Array,
    spin: Array,
    ds: float,
    stiffness: Array,
    masses: Array,
    inertias: Array,
    drag_rate: float,
    gravity: Array,
    anchors: Array,
    free_lengths: Array,
    muscle_stiffness: Array,
    damping_times: Array,
    tolerance: float,
    h: float,
    lengths: Array,
) -> int:
    """
    Advance nodes, positions, velocities and spins by `h`; write muscle lengths (modules, 3).

    Parameters
    ----------
    ds, h
        Length of an interval [m] and of the step [s].
    q, r, velocity, spin
        (n + 1, 4), (n + 1, 3) [m], (n, 3) [m/s] and (n, 3) [rad/s, body frame]: state, changed.
    stiffness, masses, inertias
        (3,) [N m^2], (n,) [kg], (n,) [kg m^2] of the rod.
    drag_rate, gravity
        [1/s], (3,) [m/s^2].
    anchors, free_lengths, muscle_stiffness
        (modules, 3, 3) [m], (modules, 3) [m], (modules, 3) [N/m].
    damping_times
        (2,) [s], damping by stiffness: of the muscles, of the backbone.
    tolerance
        Of the gradient [N m].
    lengths
        Muscle lengths (modules, 3) [m] at the start of the step; overwritten by those at its end.

    Returns
    -------
    int
        Iterations, or -1 if the step did not converge (the state is then of no use).

    """
    n = masses.size
    size, modules = 3 * n, anchors.shape[0]
    width = 5 if modules == 0 else max(5, 3 * (n // modules) + 2)
    before, r_before = q.copy(), r.copy()
    vectors, loads, forces = np.empty((modules, 3, 3)), np.empty((n, 3)), np.empty((n, 3))
    turn, gradient, band = np.empty((n, 3)), np.empty(size), np.empty((size, width + 1))
    by_lengths, hessian = np.empty((size, 3 * modules)), np.empty((size, size))
    end, body, moved = np.empty((n, 3, 3)), np.empty((n, 3, 3)), np.empty((n + 1, 4))
    step = np.empty(size)
    lag = damping_times[0] / h
    stiffer = muscle_stiffness * (1.0 + lag)
    rest = (free_lengths + lag * lengths) / (1.0 + lag)
    damping = stiffness * damping_times[1] / h
    share = 1.0 / (h * h) + drag_rate / h
    for i in range(n):  # start from where the nodes would coast to
        for c in range(3):
            step[3 * i + c] = 0.5 * h * spin[i, c]
    retract_into(before, step, 1.0, q)
    for iteration in range(_MAX_ITERATIONS):
        backbone_gradient_into(
            q, before, r_before, velocity, spin, ds, stiffness, masses, inertias, drag_rate,
            gravity, anchors, rest, stiffer, damping, h, r, vectors, loads, forces, turn,
            gradient, band, by_lengths, True,
        )  # fmt: skip
        worst = np.abs(gradient).max()
        if not math.isfinite(worst):
            return -1
        if worst <= tolerance:
            for i in range(n):
                for c in range(3):
                    velocity[i, c] = (r[i + 1, c] - r_before[i + 1, c]) / h
                    spin[i, c] = turn[i, c] / h
            for t in range(modules):
                for i in range(3):
                    lengths[t, i] = math.sqrt(np.sum(vectors[t, i] ** 2))
            return iteration
        shift = 0.0
        solved = False
        for _ in range(8):
            hessian[:, :] = 0.0
            for i in range(size):
                for j in range(min(i, width) + 1):
                    hessian[i, i - j] = band[i, j]
                hessian[i, i] += 4.0 * inertias[i // 3] * share + shift
                step[i] = -gradient[i]
            add_masses(q, ds, masses, share, end, body, hessian)
            if solve_positive_into(hessian, step):
                solved = True
                break
            shift = 10.0 * shift + stiffness[0] / ds
        if not solved:
            return -1
        scale = longest(step)
        scale = 1.0 if scale <= _MAX_TURN else _MAX_TURN / scale
        retract_into(q, step, scale, moved)
        q[:, :] = moved
    return -1
