"""
Compiled equilibrium of a cable-driven Cosserat rod: shooting from the tip to the base.

Under dead loads, the force N over a cut through rod and cables does not depend on the shape: it is
the tip force plus the weight beyond. Moment and pose are integrated from the tip (s = L),

    R' = R hat(u),  p' = R v,  M' = -p' x N,  (u, v) = local law of (R^T M, R^T N)

so that only the rotation of the tip (3 numbers) is unknown; the base rotation must be the
identity. The variational equations give the derivative Y of the base rotation by the tip rotation,

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

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.cosserat.frame_kernels import (
    crosses,
    determinant3,
    matrix_into,
    quaternion_product,
)
from softarm_ros.models.cosserat.strain_kernels import (
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
from softarm_ros.models.cosserat.tables import NODE_OF_STAGE, STAGES, A, B, Grid, Loads, Trace


@kernel
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
    matrix_into(q[0], q[1], q[2], q[3], r_distal)
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
    quaternion_product(q, connector[11:15], q)


@kernel
def _leave_end(
    trace: Trace, row: int, q: Array, moment: Array, force: Array, point: Array, work: Array
) -> None:
    """Write the state at one end of a step into the trace."""
    for i in range(3):
        trace.moments[row, i] = moment[i]
        trace.forces[row, i] = force[i]
        trace.points[row, i] = point[i]
    for i in range(4):
        trace.quaternions[row, i] = q[i]
    for i in range(6):
        trace.end_strains[row, i] = work[STRAIN + i]


@kernel
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
    (with `derivatives`) for those by tip force, tip moment and tensions too. With `fresh`, the
    local laws start from the strain at the previous cut; without it, from the strains in `trace`.
    Returns the status, and whether Y stayed regular.
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
    trace.crossings[0] = 0
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
    # Taken out of the tuples once, as every access to a tuple counts references.
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
            segment = int(segment_of_step[j])
            if derivatives:
                for c in range(columns):
                    for i in range(3):
                        trace.turn_variation[segment, i, c] = var[i, c]
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
                for b in range(s):
                    value += A[s, b] * slope[b, i]
                stage_q[i] = q[i] + h * value
            for i in range(3):
                value = 0.0
                for b in range(s):
                    value += A[s, b] * slope[b, 4 + i]
                stage_moment[i] = moment[i] + h * value
                stage_force[i] = force[i] + mass_beyond[j, node] * gravity[i]
            matrix_into(stage_q[0], stage_q[1], stage_q[2], stage_q[3], r)
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
                    # The first stage of this step is at the end of the previous step.
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
            for b in range(s):
                if A[s, b] != 0.0:
                    k = h * A[s, b]
                    for i in range(6):
                        for c in range(columns):
                            stage_var[i, c] += k * slope_var[b, i, c]
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
            if (regular or derivatives) and crosses(before, var[:3, :3], transfer, stage_moment):
                regular = False
                trace.crossings[0] += 1 if determinant3(transfer) < 0.0 else 2
            for i in range(3):
                for c in range(3):
                    before[i, c] = var[i, c]
        end += 1
        for i in range(3):
            stage_force[i] = force[i] + mass_beyond[j, 4] * gravity[i]
        if j + 1 == steps or segment_of_step[j + 1] != segment:
            # Within a segment, the next step computes the strain here.
            matrix_into(q[0], q[1], q[2], q[3], r)
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
