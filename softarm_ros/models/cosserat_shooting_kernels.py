"""
Compiled equilibrium of a cable-driven Cosserat rod: shooting from the tip to the base.

With dead loads the force N over a cut through rod and cables together is known before the shape
is: tip force plus the weight beyond. Moment and pose follow, integrated from the tip (s = L),

    R' = R hat(u),  p' = R v,  M' = -p' x N,  (u, v) = local law of (R^T M, R^T N)

so that only the rotation of the tip (3 numbers) is unknown; the base asks for the identity. The
variational equations give the derivative Y of the base rotation by the tip rotation,

    dtheta' = du - u x dtheta,  dM' = -d(p') x N - p' x dN,  d(p') = R (dv + dtheta x v)
    d(u, v) = H^-1 (d(R^T M), d(R^T N)),   d(R^T M) = (R^T M) x dtheta + R^T dM

and, with further columns, every derivative by tip wrench and cable tension. Y also decides on
stability: the equilibrium is a strict minimum of the energy if and only if no two nearby
solutions with the same tip load meet before the base (Jacobi), that is Y is regular on (0, L].

Scheme: Butcher's explicit Runge-Kutta method of order 6 with 7 stages; rotations as quaternions
(x, y, z, w), normalised at every use. Everything that depends on s alone is tabulated (`Grid`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softarm_ros.models.arm_model import Array
from softarm_ros.models.cosserat_strain_kernels import (
    CABLES,
    OK,
    REST,
    ROUTES,
    STEP,
    STRAIN,
    WRENCH,
    local_strain,
    substitute,
)

IntArray = NDArray[np.int64]
SINGULAR, TOO_MANY_ITERATIONS = 3, 4
STAGES = 7
# Butcher (1964), method of order 6; nodes 0, 1/3, 2/3, 1/3, 1/2, 1/2, 1.
NODES = (0.0, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0)
_NODE_OF_STAGE = (0, 1, 3, 1, 2, 2, 4)
_A = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (1.0 / 3.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 2.0 / 3.0, 0.0, 0.0, 0.0, 0.0),
    (1.0 / 12.0, 1.0 / 3.0, -1.0 / 12.0, 0.0, 0.0, 0.0),
    (-1.0 / 16.0, 9.0 / 8.0, -3.0 / 16.0, -3.0 / 8.0, 0.0, 0.0),
    (0.0, 9.0 / 8.0, -3.0 / 8.0, -3.0 / 4.0, 0.5, 0.0),
    (9.0 / 44.0, -9.0 / 11.0, 63.0 / 44.0, 18.0 / 11.0, 0.0, -16.0 / 11.0),
)
A = np.array(_A)
B = np.array([11.0 / 120.0, 0.0, 27.0 / 40.0, 27.0 / 40.0, -4.0 / 15.0, -4.0 / 15.0, 11.0 / 120.0])
NODE_OF_STAGE = np.array(_NODE_OF_STAGE)


class Grid(NamedTuple):
    """Tables of the arm at the nodes of the scheme, steps counted from the tip."""

    segment_of_step: IntArray  # (steps,)
    step_length: Array  # (steps,) [m]
    table: Array  # (steps, 5, 42 + 6 cables): rows of `local_strain`
    mass_beyond: Array  # (steps, 5) [kg], from there to the distal end of the segment
    active: IntArray  # (segments, cables)
    n_active: IntArray  # (segments,)
    segment_mass: Array  # (segments,) [kg]
    connectors: Array  # (segments, 16): mass, length, rotation (9), inverse quaternion, centre
    n_strains: int
    curvature_scale: float


class Loads(NamedTuple):
    """What acts on the arm; forces and moments in the base frame."""

    tensions: Array  # (cables,) [N]
    tip: Array  # (6,) force [N], moment [N m]
    gravity: Array  # (3,) [m/s^2]
    connectors: Array  # (segments, 6) force, moment at the distal face of each connector


class Trace(NamedTuple):
    """What a shot leaves behind; poses relative to the tip."""

    strains: Array  # (steps, 7, 6): start of the local law on entry, result on exit
    points: Array  # (steps + segments, 3), at both ends of every step, from tip to base
    quaternions: Array  # (steps + segments, 4)
    end_strains: Array  # (steps + segments, 6)
    moments: Array  # (steps + segments, 3), base frame
    forces: Array  # (steps + segments, 3), base frame
    cable_lengths: Array  # (cables,)
    base_rotation: Array  # (4,)
    base_point: Array  # (3,)
    variation: Array  # (9 + cables, columns): dtheta, dM, dp, dlength at the base


def new_trace(steps: int, segments: int, cables: int) -> Trace:
    """Return an empty trace with room for all columns: tip rotation, tip wrench, tensions."""
    ends = steps + segments
    return Trace(
        np.zeros((steps, STAGES, 6)),
        np.zeros((ends, 3)),
        np.zeros((ends, 4)),
        np.zeros((ends, 6)),
        np.zeros((ends, 3)),
        np.zeros((ends, 3)),
        np.zeros(cables),
        np.zeros(4),
        np.zeros(3),
        np.zeros((9 + cables, 9 + cables)),
    )


@njit(cache=True, fastmath=False, error_model='numpy')
def _matrix_into(x: float, y: float, z: float, w: float, r: Array) -> None:
    """Write the rotation matrix of a quaternion of any length."""
    scale = 2.0 / (x * x + y * y + z * z + w * w)
    r[0, 0] = 1.0 - scale * (y * y + z * z)
    r[1, 1] = 1.0 - scale * (x * x + z * z)
    r[2, 2] = 1.0 - scale * (x * x + y * y)
    r[0, 1] = scale * (x * y - z * w)
    r[1, 0] = scale * (x * y + z * w)
    r[0, 2] = scale * (x * z + y * w)
    r[2, 0] = scale * (x * z - y * w)
    r[1, 2] = scale * (y * z - x * w)
    r[2, 1] = scale * (y * z + x * w)


@njit(cache=True, fastmath=False, error_model='numpy')
def _quaternion_product(a: Array, b: Array, out: Array) -> None:
    x = a[3] * b[0] + b[3] * a[0] + a[1] * b[2] - a[2] * b[1]
    y = a[3] * b[1] + b[3] * a[1] + a[2] * b[0] - a[0] * b[2]
    z = a[3] * b[2] + b[3] * a[2] + a[0] * b[1] - a[1] * b[0]
    w = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]
    scale = 1.0 / math.sqrt(x * x + y * y + z * z + w * w)
    out[0], out[1], out[2], out[3] = x * scale, y * scale, z * scale, w * scale


@njit(cache=True, fastmath=False, error_model='numpy')
def _turn(q: Array, x: float, y: float, z: float) -> None:
    """Turn q on the right by the rotation vector (x, y, z)."""
    angle = math.sqrt(x * x + y * y + z * z)
    k = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(0.5 * angle) / angle
    _quaternion_product(q, np.array((k * x, k * y, k * z, math.cos(0.5 * angle))), q)


@njit(cache=True, fastmath=False, error_model='numpy')
def solve3(matrix: Array, b: Array, x: Array) -> bool:
    """Solve matrix x = b (3, 3) by cofactors; False where the matrix is singular to rounding."""
    c00 = matrix[1, 1] * matrix[2, 2] - matrix[1, 2] * matrix[2, 1]
    c01 = matrix[1, 2] * matrix[2, 0] - matrix[1, 0] * matrix[2, 2]
    c02 = matrix[1, 0] * matrix[2, 1] - matrix[1, 1] * matrix[2, 0]
    det = matrix[0, 0] * c00 + matrix[0, 1] * c01 + matrix[0, 2] * c02
    size = 1.0
    for i in range(3):
        size *= abs(matrix[i, 0]) + abs(matrix[i, 1]) + abs(matrix[i, 2])
    if not abs(det) > 1e-14 * size:
        return False
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        # Cofactors of column k.
        f0 = matrix[1, i] * matrix[2, j] - matrix[1, j] * matrix[2, i]
        f1 = matrix[2, i] * matrix[0, j] - matrix[2, j] * matrix[0, i]
        f2 = matrix[0, i] * matrix[1, j] - matrix[0, j] * matrix[1, i]
        x[k] = (f0 * b[0] + f1 * b[1] + f2 * b[2]) / det
    return True


@njit(cache=True, fastmath=False, error_model='numpy')
def _crosses(before: Array, after: Array, transfer: Array, column: Array) -> bool:
    """
    Tell whether Y turned singular between two cuts, also twice at once.

    The transfer T = Y_after Y_before^-1 of a short step has eigenvalues near 1; one has passed
    through zero if it has a real part <= 0 (Routh-Hurwitz on the characteristic polynomial).
    """
    for k in range(3):
        # Row k of T solves before^T x = after[k].
        if not solve3(before.T, after[k], column):
            return True
        for i in range(3):
            transfer[k, i] = column[i]
    t = transfer
    trace = t[0, 0] + t[1, 1] + t[2, 2]
    minors = (
        t[0, 0] * t[1, 1]
        - t[0, 1] * t[1, 0]
        + t[0, 0] * t[2, 2]
        - t[0, 2] * t[2, 0]
        + t[1, 1] * t[2, 2]
        - t[1, 2] * t[2, 1]
    )
    det = (
        t[0, 0] * (t[1, 1] * t[2, 2] - t[1, 2] * t[2, 1])
        - t[0, 1] * (t[1, 0] * t[2, 2] - t[1, 2] * t[2, 0])
        + t[0, 2] * (t[1, 0] * t[2, 1] - t[1, 1] * t[2, 0])
    )
    return not (trace > 0.0 and det > 0.0 and trace * minors > det)


@njit(cache=True, fastmath=False, error_model='numpy')
def _cross_connector(
    connector: Array,
    weight: Array,
    load: Array,
    q: Array,
    moment: Array,
    force: Array,
    point: Array,
    variation: Array,
    d_force: Array,
    columns: int,
    with_points: bool,
) -> None:
    """Carry the shot from the distal to the proximal face of a rigid connector, in place."""
    mass, length = connector[0], connector[1]
    r_distal, r_proximal = np.empty((3, 3)), np.empty((3, 3))
    _matrix_into(q[0], q[1], q[2], q[3], r_distal)
    relative = connector[2:11].reshape(3, 3)
    for i in range(3):
        for j in range(3):
            value = 0.0
            for k in range(3):
                value += r_distal[i, k] * relative[j, k]
            r_proximal[i, j] = value
    # The load of the connector acts on its distal face, its weight at its centre of mass; `f` is
    # the force at the distal face that has the same moment about the proximal one.
    share = connector[15] / length if length > 0.0 else 0.0
    f = np.empty(3)
    for i in range(3):
        moment[i] += load[3 + i]
        force[i] += load[i]
        f[i] = force[i] + share * mass * weight[i]
        force[i] += mass * weight[i]
    a = r_proximal[:, 2] * length
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        moment[i] += a[j] * f[k] - a[k] * f[j]
        point[i] -= a[i]
    d_theta, d_arm = np.empty(3), np.empty(3)
    for c in range(columns):
        for i in range(3):
            value = 0.0
            for k in range(3):
                value += relative[i, k] * variation[k, c]
            d_theta[i] = value
        for i in range(3):
            variation[i, c] = d_theta[i]
            # d(R e_z) = R (dtheta x e_z) = R (dtheta_y, -dtheta_x, 0)
            d_arm[i] = length * (r_proximal[i, 0] * d_theta[1] - r_proximal[i, 1] * d_theta[0])
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            variation[3 + i, c] += (
                d_arm[j] * f[k] - d_arm[k] * f[j] + a[j] * d_force[k, c] - a[k] * d_force[j, c]
            )
            if with_points:
                variation[6 + i, c] -= d_arm[i]
    _quaternion_product(q, connector[11:15], q)


@njit(cache=True, fastmath=False, error_model='numpy')
def _leave_end(
    trace: Trace, row: int, q: Array, moment: Array, force: Array, point: Array, work: Array
) -> None:
    """Keep the state at one end of a step."""
    for i in range(3):
        trace.moments[row, i] = moment[i]
        trace.forces[row, i] = force[i]
        trace.points[row, i] = point[i]
    for i in range(4):
        trace.quaternions[row, i] = q[i]
    for i in range(6):
        trace.end_strains[row, i] = work[STRAIN + i]


@njit(cache=True, fastmath=False, error_model='numpy')
def shoot(
    grid: Grid,
    loads: Loads,
    tip_rotation: Array,
    columns: int,
    derivatives: bool,
    fresh: bool,
    trace: Trace,
) -> tuple[int, bool]:
    """
    Integrate from the tip (rotation given as quaternion (4,)) to the base.

    `columns`: 0 for the shot alone, 3 for the derivative by the tip rotation, 9 + cables
    (with `derivatives`) for those by tip force, tip moment and tensions too. `fresh`: the local
    laws start from the cut before, else from the strains in `trace`. Returns a status and whether
    Y stayed regular.
    """
    steps = grid.step_length.shape[0]
    segments = grid.n_active.shape[0]
    cables = loads.tensions.shape[0]
    n = grid.n_strains
    rows = 9 + cables if derivatives else 6
    q = tip_rotation.copy()
    moment, force, point = loads.tip[3:].copy(), loads.tip[:3].copy(), np.zeros(3)
    d_force = np.zeros((3, max(columns, 1)))
    var = trace.variation
    for i in range(rows):
        for c in range(columns):
            var[i, c] = 0.0
    for i in range(min(columns, 3)):
        var[i, i] = 1.0
    if derivatives:
        for i in range(3):
            d_force[i, 3 + i] = 1.0
            var[3 + i, 6 + i] = 1.0
    for i in range(cables):
        trace.cable_lengths[i] = 0.0
    stage_q, stage_moment, velocity = np.empty(4), np.empty(3), np.empty(3)
    slope = np.empty((STAGES, 7))
    stage_var = np.empty((6, max(columns, 1)))
    slope_var = np.empty((STAGES, 6, max(columns, 1)))
    r = np.empty((3, 3))
    work = np.empty(CABLES + 5 * cables)
    before, transfer = np.eye(3), np.empty((3, 3))
    stage_force = np.empty(3)
    regular = True
    segment, segment_before, n_active = segments, segments, 0
    lengths, slot = np.zeros(cables), np.zeros(cables, dtype=np.int64)
    # Out of the tuples, whose every use counts references.
    table, active, strains = grid.table, grid.active, trace.strains
    mass_beyond, gravity, step_length = grid.mass_beyond, loads.gravity, grid.step_length
    segment_of_step, curvature_scale = grid.segment_of_step, grid.curvature_scale
    end = -1
    for j in range(steps):
        h = step_length[j]
        if segment_of_step[j] != segment:
            if segment < segments:
                for i in range(3):
                    force[i] += grid.segment_mass[segment] * gravity[i]
            segment = segment_of_step[j]
            _cross_connector(
                grid.connectors[segment],
                loads.gravity,
                loads.connectors[segment],
                q,
                moment,
                force,
                point,
                var,
                d_force,
                columns,
                derivatives,
            )
            for a in range(n_active):
                trace.cable_lengths[active[segment_before, a]] += lengths[a]
            n_active = grid.n_active[segment]
            segment_before = segment
            for i in range(cables):
                lengths[i] = 0.0
                slot[i] = -1
            for a in range(n_active):
                slot[active[segment, a]] = a
                work[CABLES + 5 * a] = loads.tensions[active[segment, a]]
            end += 1
            new_segment = True
        else:
            new_segment = False
        for s in range(STAGES):
            node = NODE_OF_STAGE[s]
            for i in range(4):
                value = 0.0
                for l in range(s):
                    value += A[s, l] * slope[l, i]
                stage_q[i] = q[i] + h * value
            for i in range(3):
                value = 0.0
                for l in range(s):
                    value += A[s, l] * slope[l, 4 + i]
                stage_moment[i] = moment[i] + h * value
                stage_force[i] = force[i] + mass_beyond[j, node] * gravity[i]
            _matrix_into(stage_q[0], stage_q[1], stage_q[2], stage_q[3], r)
            for i in range(3):
                work[WRENCH + i] = (
                    r[0, i] * stage_moment[0]
                    + r[1, i] * stage_moment[1]
                    + r[2, i] * stage_moment[2]
                )
                work[WRENCH + 3 + i] = (
                    r[0, i] * stage_force[0] + r[1, i] * stage_force[1] + r[2, i] * stage_force[2]
                )
            row = table[j, node]
            if not fresh:
                for i in range(6):
                    work[STRAIN + i] = strains[j, s, i]
            elif new_segment and s == 0:
                for i in range(6):
                    work[STRAIN + i] = row[REST + i]
            status = local_strain(row, work, n_active, n, curvature_scale)
            if status != OK:
                return status, regular
            for i in range(6):
                strains[j, s, i] = work[STRAIN + i]
            if s == 0:
                if new_segment:
                    _leave_end(trace, end, q, moment, stage_force, point, work)
                elif j > 0:
                    # The first stage of this step is at the end of the one before.
                    for i in range(6):
                        trace.end_strains[end, i] = work[STRAIN + i]
            u0, u1, u2 = work[STRAIN], work[STRAIN + 1], work[STRAIN + 2]
            v0, v1, v2 = work[STRAIN + 3], work[STRAIN + 4], work[STRAIN + 5]
            # Towards the base: minus the derivatives by s.
            x, y, z, w = stage_q[0], stage_q[1], stage_q[2], stage_q[3]
            slope[s, 0] = -0.5 * (w * u0 + y * u2 - z * u1)
            slope[s, 1] = -0.5 * (w * u1 + z * u0 - x * u2)
            slope[s, 2] = -0.5 * (w * u2 + x * u1 - y * u0)
            slope[s, 3] = 0.5 * (x * u0 + y * u1 + z * u2)
            for i in range(3):
                velocity[i] = r[i, 0] * v0 + r[i, 1] * v1 + r[i, 2] * v2
            f0, f1, f2 = stage_force[0], stage_force[1], stage_force[2]
            slope[s, 4] = velocity[1] * f2 - velocity[2] * f1
            slope[s, 5] = velocity[2] * f0 - velocity[0] * f2
            slope[s, 6] = velocity[0] * f1 - velocity[1] * f0
            weight = B[s] * h
            for i in range(3):
                point[i] -= weight * velocity[i]
            for a in range(n_active):
                lengths[a] += weight * work[CABLES + 5 * a + 4]
            if columns == 0:
                continue
            for i in range(6):
                for c in range(columns):
                    stage_var[i, c] = var[i, c]
            for l in range(s):
                if A[s, l] != 0.0:
                    k = h * A[s, l]
                    for i in range(6):
                        for c in range(columns):
                            stage_var[i, c] += k * slope_var[l, i, c]
            for c in range(columns):
                t0, t1, t2 = stage_var[0, c], stage_var[1, c], stage_var[2, c]
                m0, m1, m2 = stage_var[3, c], stage_var[4, c], stage_var[5, c]
                g0, g1, g2 = d_force[0, c], d_force[1, c], d_force[2, c]
                # d(R^T x) = (R^T x) x dtheta + R^T dx
                work[STEP] = work[WRENCH + 1] * t2 - work[WRENCH + 2] * t1
                work[STEP + 1] = work[WRENCH + 2] * t0 - work[WRENCH] * t2
                work[STEP + 2] = work[WRENCH] * t1 - work[WRENCH + 1] * t0
                for i in range(3):
                    work[STEP + i] += r[0, i] * m0 + r[1, i] * m1 + r[2, i] * m2
                if n == 6:
                    work[STEP + 3] = work[WRENCH + 4] * t2 - work[WRENCH + 5] * t1
                    work[STEP + 4] = work[WRENCH + 5] * t0 - work[WRENCH + 3] * t2
                    work[STEP + 5] = work[WRENCH + 3] * t1 - work[WRENCH + 4] * t0
                    for i in range(3):
                        work[STEP + 3 + i] += r[0, i] * g0 + r[1, i] * g1 + r[2, i] * g2
                else:
                    work[STEP + 3], work[STEP + 4], work[STEP + 5] = 0.0, 0.0, 0.0
                if c >= 9 and slot[c - 9] >= 0:
                    t = CABLES + 5 * slot[c - 9]
                    p = ROUTES + 6 * slot[c - 9]
                    e0, e1, e2 = work[t + 1], work[t + 2], work[t + 3]
                    work[STEP] -= row[p + 1] * e2 - row[p + 2] * e1
                    work[STEP + 1] -= row[p + 2] * e0 - row[p] * e2
                    work[STEP + 2] -= row[p] * e1 - row[p + 1] * e0
                    if n == 6:
                        work[STEP + 3] -= e0
                        work[STEP + 4] -= e1
                        work[STEP + 5] -= e2
                substitute(work, n)
                slope_var[s, 0, c] = -(work[STEP] - u1 * t2 + u2 * t1)
                slope_var[s, 1, c] = -(work[STEP + 1] - u2 * t0 + u0 * t2)
                slope_var[s, 2, c] = -(work[STEP + 2] - u0 * t1 + u1 * t0)
                w0 = work[STEP + 3] + t1 * v2 - t2 * v1
                w1 = work[STEP + 4] + t2 * v0 - t0 * v2
                w2 = work[STEP + 5] + t0 * v1 - t1 * v0
                d0 = r[0, 0] * w0 + r[0, 1] * w1 + r[0, 2] * w2
                d1 = r[1, 0] * w0 + r[1, 1] * w1 + r[1, 2] * w2
                d2 = r[2, 0] * w0 + r[2, 1] * w1 + r[2, 2] * w2
                slope_var[s, 3, c] = d1 * f2 - d2 * f1 + velocity[1] * g2 - velocity[2] * g1
                slope_var[s, 4, c] = d2 * f0 - d0 * f2 + velocity[2] * g0 - velocity[0] * g2
                slope_var[s, 5, c] = d0 * f1 - d1 * f0 + velocity[0] * g1 - velocity[1] * g0
                if derivatives:
                    var[6, c] -= weight * d0
                    var[7, c] -= weight * d1
                    var[8, c] -= weight * d2
                    for a in range(n_active):
                        t = CABLES + 5 * a
                        p = ROUTES + 6 * a
                        s0, s1, s2 = work[STEP], work[STEP + 1], work[STEP + 2]
                        var[9 + active[segment, a], c] += weight * (
                            work[t + 1] * (work[STEP + 3] + s1 * row[p + 2] - s2 * row[p + 1])
                            + work[t + 2] * (work[STEP + 4] + s2 * row[p] - s0 * row[p + 2])
                            + work[t + 3] * (work[STEP + 5] + s0 * row[p + 1] - s1 * row[p])
                        )
        for i in range(4):
            value = 0.0
            for s in range(STAGES):
                value += B[s] * slope[s, i]
            stage_q[i] = q[i] + h * value
        scale = 1.0 / math.sqrt(
            stage_q[0] ** 2 + stage_q[1] ** 2 + stage_q[2] ** 2 + stage_q[3] ** 2
        )
        for i in range(4):
            q[i] = scale * stage_q[i]
        for i in range(3):
            value = 0.0
            for s in range(STAGES):
                value += B[s] * slope[s, 4 + i]
            moment[i] += h * value
        if columns > 0:
            for s in range(STAGES):
                if B[s] != 0.0:
                    weight = h * B[s]
                    for i in range(6):
                        for c in range(columns):
                            var[i, c] += weight * slope_var[s, i, c]
            if regular:
                regular = not _crosses(before, var[:3, :3], transfer, stage_moment)
            for i in range(3):
                for c in range(3):
                    before[i, c] = var[i, c]
        end += 1
        for i in range(3):
            stage_force[i] = force[i] + mass_beyond[j, 4] * gravity[i]
        if j + 1 == steps or segment_of_step[j + 1] != segment:
            # Within a segment the next step finds the strain here.
            _matrix_into(q[0], q[1], q[2], q[3], r)
            for i in range(3):
                work[WRENCH + i] = r[0, i] * moment[0] + r[1, i] * moment[1] + r[2, i] * moment[2]
                work[WRENCH + 3 + i] = (
                    r[0, i] * stage_force[0] + r[1, i] * stage_force[1] + r[2, i] * stage_force[2]
                )
            status = local_strain(table[j, 4], work, n_active, n, curvature_scale)
            if status != OK:
                return status, regular
        _leave_end(trace, end, q, moment, stage_force, point, work)
    for a in range(n_active):
        trace.cable_lengths[active[segment_before, a]] += lengths[a]
    for i in range(4):
        trace.base_rotation[i] = q[i]
    for i in range(3):
        trace.base_point[i] = point[i]
    return OK, regular


@njit(cache=True, fastmath=False, error_model='numpy')
def _base_error(q: Array, error: Array) -> float:
    """Write the rotation vector that leads from the base reached to the identity."""
    x, y, z, w = q[0], q[1], q[2], q[3]
    if w < 0.0:
        x, y, z, w = -x, -y, -z, -w
    sine = math.sqrt(x * x + y * y + z * z)
    k = 2.0 if sine < 1e-9 else 2.0 * math.atan2(sine, w) / sine
    error[0], error[1], error[2] = -k * x, -k * y, -k * z
    return k * sine


@njit(cache=True, fastmath=False, error_model='numpy')
def newton(
    grid: Grid,
    loads: Loads,
    tip_rotation: Array,
    tolerance: float,
    max_shots: int,
    fresh: bool,
    trace: Trace,
) -> tuple[int, float, bool, int]:
    """
    Turn `tip_rotation` until the base is met, by Newton with backtracking; in place.

    While the error falls fast, Y is not integrated anew but corrected by Broyden's rule. Returns
    the status, the error at the base [rad], whether Y stayed regular at the last shot that
    integrated it and the number of shots.
    """
    trial = tip_rotation.copy()
    error, turn, last_error = np.zeros(3), np.zeros(3), np.zeros(3)
    y = np.eye(3)
    best, fraction = math.inf, 1.0
    regular, integrated_regular = True, True
    failure = TOO_MANY_ITERATIONS
    integrate = True
    for shot in range(max_shots):
        status, regular = shoot(grid, loads, trial, 3 if integrate else 0, False, fresh, trace)
        fresh = status != OK
        size = math.inf
        if status == OK:
            size = _base_error(trace.base_rotation, error)
        else:
            failure = status
        if integrate:
            integrated_regular = regular
        if size < tolerance:
            tip_rotation[:] = trial
            return OK, size, integrated_regular, shot + 1
        if not size < best:
            if not integrate:
                # The corrected Y misled: integrate it at the best rotation so far.
                integrate = True
                best = math.inf
                trial[:] = tip_rotation
                continue
            # Worse than where the step began: halve it.
            fraction *= 0.5
            if fraction < 0.05 or best == math.inf:
                return failure, best, integrated_regular, shot + 1
            trial[:] = tip_rotation
            _turn(trial, fraction * turn[0], fraction * turn[1], fraction * turn[2])
            continue
        if integrate:
            for i in range(3):
                for c in range(3):
                    y[i, c] = trace.variation[i, c]
        else:
            # Broyden: Y turn is the change of the base, last_error - error.
            norm = turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2
            for i in range(3):
                miss = last_error[i] - error[i]
                for c in range(3):
                    miss -= y[i, c] * turn[c]
                for c in range(3):
                    y[i, c] += miss * turn[c] / norm
        integrate = not size < 0.1 * best and not size < 0.05
        best = size
        tip_rotation[:] = trial
        last_error[:] = error
        # d(base rotation) = Y d(tip rotation), both in their local frames
        if not solve3(y, error, turn):
            return SINGULAR, best, integrated_regular, shot + 1
        length = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
        fraction = min(1.0, 1.5 / length)
        if fraction < 1.0:
            integrate = True
        _turn(trial, fraction * turn[0], fraction * turn[1], fraction * turn[2])
    return failure, best, integrated_regular, max_shots
