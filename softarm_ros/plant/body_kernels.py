"""
Compiled dynamics of the chain: articulated-body algorithm in base-frame coordinates.

Spatial vectors have the angular part first and refer to the origin of the base frame, so nothing
is transformed when it passes from body to body. The joint accelerations solve
(M + h D + h^2 K) qdd = Q_elastic - (D + h K) v + Q_loads - C + G^T T,
one linearly implicit Euler step of length h; the factorisation serves the free motion and every
cable.
"""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.pose_kernels import matrix_of_quaternion
from softarm_ros.geometry.symmetric_kernels import invert_symmetric_4
from softarm_ros.plant.joint_kernels import arc_shape, elastic_load
from softarm_ros.plant.layout import ArmState, BodyParameters, Loads, Scratch


@kernel(allocates=False)
def place_bodies(body: BodyParameters, state: ArmState, scratch: Scratch) -> None:
    """Write the pose of every body and the velocity map of every joint into `scratch`."""
    place_chain(
        body.base_rotation,
        body.segment_length,
        body.offset,
        state.quaternion,
        state.extension,
        scratch.rotation,
        scratch.origin,
        scratch.joint_rotation,
        scratch.sliding,
        scratch.arc,
    )


@kernel(allocates=False)
def place_chain(
    base_rotation: Array,
    segment_length: Array,
    offset: Array,
    quaternion: Array,
    extension: Array,
    rotation: Array,
    origin: Array,
    joint_rotation: Array,
    sliding: Array,
    arcs: Array,
) -> None:
    """
    Do the work of `place_bodies` on separate arrays.

    A call from Python takes a third of the time, because no parameter tuple is unpacked.
    """
    for i in range(3):
        origin[0, i] = 0.0
        for j in range(3):
            rotation[0, i, j] = base_rotation[i, j]
    for g in range(segment_length.shape[0]):
        R = joint_rotation[g]
        q = quaternion[g]
        matrix_of_quaternion(q, R)
        f, f_c, f_cc, arc, arc_c = arc_shape(2.0 * (q[0] * q[0] + q[1] * q[1]))
        arcs[g, 0], arcs[g, 1], arcs[g, 2], arcs[g, 3], arcs[g, 4] = f, f_c, f_cc, arc, arc_c
        length = segment_length[g] + extension[g]
        half = 0.5 * length * f
        arcs[g, 5] = half
        # The parent's axis in the child frame is R[2]; the child's in the parent frame R[:, 2].
        ax, ay, az = R[2, 0], R[2, 1], R[2, 2]
        _slide(sliding[g], ax, ay, az, half, length * f_c, f)
        px, py = half * R[0, 2], half * R[1, 2]
        pz = offset[g] + half * (1.0 + R[2, 2])
        parent, child = rotation[g], rotation[g + 1]
        for i in range(3):
            origin[g + 1, i] = (
                origin[g, i] + parent[i, 0] * px + parent[i, 1] * py + parent[i, 2] * pz
            )
            for j in range(3):
                child[i, j] = (
                    parent[i, 0] * R[0, j] + parent[i, 1] * R[1, j] + parent[i, 2] * R[2, j]
                )


@kernel(allocates=False)
def _slide(
    sliding: Array, ax: float, ay: float, az: float, half: float, slope: float, f: float
) -> None:
    """Write the local velocity of the child's origin per joint velocity, (3, 4)."""
    # d cos(beta)/dt = wy ax - wx ay changes lambda by `slope` per unit.
    mx, my, mz = 0.5 * ax, 0.5 * ay, 0.5 * (az + 1.0)
    sx, sy = -slope * ay, slope * ax
    sliding[0, 0] = mx * sx
    sliding[1, 0] = my * sx - half
    sliding[2, 0] = mz * sx
    sliding[0, 1] = mx * sy + half
    sliding[1, 1] = my * sy
    sliding[2, 1] = mz * sy
    sliding[0, 2] = 0.0
    sliding[1, 2] = 0.0
    sliding[2, 2] = 0.0
    sliding[0, 3] = mx * f
    sliding[1, 3] = my * f
    sliding[2, 3] = mz * f


@kernel(allocates=False)
def load_bodies(
    body: BodyParameters, state: ArmState, loads: Loads, scratch: Scratch, h: float
) -> float:
    """
    Write motion subspaces, inertias, bias wrenches and joint loads; return the kinetic energy [J].

    `place_bodies` must have been called for this state.
    """
    n = body.mass.shape[0]
    # Spatial velocity and bias acceleration of the current body; gravity as acceleration upwards.
    w0, w1, w2, v0, v1, v2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    b0, b1, b2 = 0.0, 0.0, 0.0
    a0, a1, a2 = -body.gravity[0], -body.gravity[1], -body.gravity[2]
    energy = 0.0
    for g in range(n):
        elastic_load(
            state.quaternion[g],
            state.extension[g],
            state.velocity[g],
            body.stiffness[g],
            body.damping_time[g, 0] + h,
            body.damping_time[g, 1] + h,
            scratch.load[g],
            scratch.tangent[g],
            scratch.logarithm[g],
        )
        R, r, S = scratch.rotation[g + 1], scratch.origin[g + 1], scratch.motion[g]
        _motion_subspace(R, r, scratch.sliding[g], S)
        rate = state.velocity[g]
        j0 = S[0, 0] * rate[0] + S[0, 1] * rate[1] + S[0, 2] * rate[2]
        j1 = S[1, 0] * rate[0] + S[1, 1] * rate[1] + S[1, 2] * rate[2]
        j2 = S[2, 0] * rate[0] + S[2, 1] * rate[1] + S[2, 2] * rate[2]
        j3 = S[3, 0] * rate[0] + S[3, 1] * rate[1] + S[3, 2] * rate[2] + S[3, 3] * rate[3]
        j4 = S[4, 0] * rate[0] + S[4, 1] * rate[1] + S[4, 2] * rate[2] + S[4, 3] * rate[3]
        j5 = S[5, 0] * rate[0] + S[5, 1] * rate[1] + S[5, 2] * rate[2] + S[5, 3] * rate[3]
        w0, w1, w2 = w0 + j0, w1 + j1, w2 + j2
        v0, v1, v2 = v0 + j3, v1 + j4, v2 + j5
        # V x (S q') plus the local rate of change of the subspace
        length = body.segment_length[g] + state.extension[g]
        d0, d1, d2 = _subspace_drift(scratch.joint_rotation[g], rate, length, scratch.arc[g])
        b0 += w1 * j2 - w2 * j1
        b1 += w2 * j0 - w0 * j2
        b2 += w0 * j1 - w1 * j0
        a0 += w1 * j5 - w2 * j4 + v1 * j2 - v2 * j1 + R[0, 0] * d0 + R[0, 1] * d1 + R[0, 2] * d2
        a1 += w2 * j3 - w0 * j5 + v2 * j0 - v0 * j2 + R[1, 0] * d0 + R[1, 1] * d1 + R[1, 2] * d2
        a2 += w0 * j4 - w1 * j3 + v0 * j1 - v1 * j0 + R[2, 0] * d0 + R[2, 1] * d1 + R[2, 2] * d2
        twist, drift = scratch.twist[g], scratch.drift[g]
        twist[0], twist[1], twist[2], twist[3], twist[4], twist[5] = w0, w1, w2, v0, v1, v2
        drift[0], drift[1], drift[2], drift[3], drift[4], drift[5] = b0, b1, b2, a0, a1, a2
        J = scratch.inertia[g]
        _spatial_inertia(R, r, body.mass[g], body.centre[g], body.inertia[g], J)
        l0, l1, l2, p0, p1, p2 = _momentum(J, w0, w1, w2, v0, v1, v2)
        energy += 0.5 * (w0 * l0 + w1 * l1 + w2 * l2 + v0 * p0 + v1 * p1 + v2 * p2)
        n0, n1, n2, f0, f1, f2 = _momentum(J, b0, b1, b2, a0, a1, a2)
        wrench = scratch.bias[g]
        wrench[0] = n0 + w1 * l2 - w2 * l1 + v1 * p2 - v2 * p1
        wrench[1] = n1 + w2 * l0 - w0 * l2 + v2 * p0 - v0 * p2
        wrench[2] = n2 + w0 * l1 - w1 * l0 + v0 * p1 - v1 * p0
        wrench[3] = f0 + w1 * p2 - w2 * p1
        wrench[4] = f1 + w2 * p0 - w0 * p2
        wrench[5] = f2 + w0 * p1 - w1 * p0
    _apply_tip_loads(body, loads, scratch, n)
    return energy


@kernel(allocates=False)
def _motion_subspace(R: Array, r: Array, sliding: Array, S: Array) -> None:
    """Write the joint's spatial motion subspace (6, 4) at the base origin."""
    for j in range(3):
        x, y, z = R[0, j], R[1, j], R[2, j]
        u, v, w = sliding[0, j], sliding[1, j], sliding[2, j]
        S[0, j], S[1, j], S[2, j] = x, y, z
        S[3, j] = R[0, 0] * u + R[0, 1] * v + R[0, 2] * w + r[1] * z - r[2] * y
        S[4, j] = R[1, 0] * u + R[1, 1] * v + R[1, 2] * w + r[2] * x - r[0] * z
        S[5, j] = R[2, 0] * u + R[2, 1] * v + R[2, 2] * w + r[0] * y - r[1] * x
    u, v, w = sliding[0, 3], sliding[1, 3], sliding[2, 3]
    S[0, 3], S[1, 3], S[2, 3] = 0.0, 0.0, 0.0
    S[3, 3] = R[0, 0] * u + R[0, 1] * v + R[0, 2] * w
    S[4, 3] = R[1, 0] * u + R[1, 1] * v + R[1, 2] * w
    S[5, 3] = R[2, 0] * u + R[2, 1] * v + R[2, 2] * w


@kernel(allocates=False)
def _subspace_drift(
    R: Array, rate: Array, length: float, arc: Array
) -> tuple[float, float, float]:
    """Return the local rate of change of (motion subspace) x (constant joint rates), [m/s^2]."""
    wx, wy, wz, stretching = rate[0], rate[1], rate[2], rate[3]
    f, f_c, f_cc = arc[0], arc[1], arc[2]
    ax, ay, az = R[2, 0], R[2, 1], R[2, 2]
    # a' = -w x a
    dax, day, daz = wz * ay - wy * az, wx * az - wz * ax, wy * ax - wx * ay
    c = daz
    c_rate = wy * dax - wx * day
    half_rate = 0.5 * (stretching * f + length * f_c * c)
    quarter = 0.5 * (2.0 * stretching * f_c * c + length * (f_cc * c * c + f_c * c_rate))
    return (
        half_rate * (dax + wy) + quarter * ax,
        half_rate * (day - wx) + quarter * ay,
        half_rate * daz + quarter * (az + 1.0),
    )


@kernel(allocates=False)
def _spatial_inertia(
    R: Array,
    r: Array,
    mass: float,
    centre: float,
    inertia: Array,
    J: Array,
) -> None:
    """Write the inertia of an axisymmetric body at the base origin, (10,) as in Scratch."""
    z0, z1, z2 = R[0, 2], R[1, 2], R[2, 2]
    c0, c1, c2 = r[0] + centre * z0, r[1] + centre * z1, r[2] + centre * z2
    across, more = inertia[0], inertia[1] - inertia[0]
    J[0] = across + more * z0 * z0 + mass * (c1 * c1 + c2 * c2)
    J[1] = across + more * z1 * z1 + mass * (c0 * c0 + c2 * c2)
    J[2] = across + more * z2 * z2 + mass * (c0 * c0 + c1 * c1)
    J[3] = more * z0 * z1 - mass * c0 * c1
    J[4] = more * z0 * z2 - mass * c0 * c2
    J[5] = more * z1 * z2 - mass * c1 * c2
    J[6], J[7], J[8] = mass * c0, mass * c1, mass * c2
    J[9] = mass


@kernel(allocates=False)
def _momentum(
    J: Array,
    w0: float,
    w1: float,
    w2: float,
    v0: float,
    v1: float,
    v2: float,
) -> tuple[float, float, float, float, float, float]:
    """Return spatial inertia times a spatial vector."""
    h0, h1, h2 = J[6], J[7], J[8]
    return (
        J[0] * w0 + J[3] * w1 + J[4] * w2 + h1 * v2 - h2 * v1,
        J[3] * w0 + J[1] * w1 + J[5] * w2 + h2 * v0 - h0 * v2,
        J[4] * w0 + J[5] * w1 + J[2] * w2 + h0 * v1 - h1 * v0,
        J[9] * v0 + w1 * h2 - w2 * h1,
        J[9] * v1 + w2 * h0 - w0 * h2,
        J[9] * v2 + w0 * h1 - w1 * h0,
    )


@kernel(allocates=False)
def _apply_tip_loads(body: BodyParameters, loads: Loads, scratch: Scratch, n: int) -> None:
    """Subtract the tip loads from the bias wrench of the last body."""
    R, r, wrench = scratch.rotation[n], scratch.origin[n], scratch.bias[n - 1]
    F, M = loads.tip_force, loads.tip_moment
    x = r[0] + body.tip_offset[0] * R[0, 2]
    y = r[1] + body.tip_offset[0] * R[1, 2]
    z = r[2] + body.tip_offset[0] * R[2, 2]
    wrench[0] -= M[0] + y * F[2] - z * F[1]
    wrench[1] -= M[1] + z * F[0] - x * F[2]
    wrench[2] -= M[2] + x * F[1] - y * F[0]
    wrench[3] -= F[0]
    wrench[4] -= F[1]
    wrench[5] -= F[2]


@kernel(allocates=False)
def factorise(body: BodyParameters, scratch: Scratch, h: float, cables: int) -> None:
    """
    Factorise (M + h D + h^2 K) and reduce all right-hand sides, from the tip to the base.

    Right-hand sides: one newton of tension in each cable (rows 0..m-1 of `response`) and the free
    motion (row m). `scratch.gradient` must be zero at the joints a cable does not pass.
    """
    articulated = scratch.articulated
    _clear(articulated)
    _clear(scratch.carried)
    immersed = scratch.medium.shape[0] > 0
    for g in range(body.mass.shape[0] - 1, -1, -1):
        _add_inertia(articulated, scratch.inertia[g])
        if immersed:
            _add_upper(articulated, scratch.medium[g])
        S, U, D = scratch.motion[g], scratch.gain[g], scratch.inverse[g]
        _project(articulated, S, U, D)
        _stiffen(
            D,
            scratch.tangent[g],
            h * (body.damping_time[g, 0] + h),
            h * (body.damping_time[g, 1] + h) * body.stiffness[g, 2],
        )
        invert_symmetric_4(D)  # NaN if it fails; the step detects that
        _release(articulated, U, D)
        _reduce_loads(
            S,
            U,
            scratch.bias[g],
            scratch.load[g],
            scratch.gradient,
            scratch.carried,
            scratch.response[g],
            g,
            cables,
        )


@kernel(allocates=False)
def _clear(matrix: Array) -> None:
    """Set every element to zero."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = 0.0


@kernel(allocates=False)
def _project(A: Array, S: Array, U: Array, D: Array) -> None:
    """Write U = A S (6, 4) and the lower triangle of D = S^T U (4, 4), A by its upper triangle."""
    a00, a01, a02, a03, a04, a05 = A[0, 0], A[0, 1], A[0, 2], A[0, 3], A[0, 4], A[0, 5]
    a11, a12, a13, a14, a15 = A[1, 1], A[1, 2], A[1, 3], A[1, 4], A[1, 5]
    a22, a23, a24, a25 = A[2, 2], A[2, 3], A[2, 4], A[2, 5]
    a33, a34, a35, a44, a45, a55 = A[3, 3], A[3, 4], A[3, 5], A[4, 4], A[4, 5], A[5, 5]
    for j in range(3):
        x0, x1, x2, x3, x4, x5 = S[0, j], S[1, j], S[2, j], S[3, j], S[4, j], S[5, j]
        u0 = a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3 + a04 * x4 + a05 * x5
        u1 = a01 * x0 + a11 * x1 + a12 * x2 + a13 * x3 + a14 * x4 + a15 * x5
        u2 = a02 * x0 + a12 * x1 + a22 * x2 + a23 * x3 + a24 * x4 + a25 * x5
        u3 = a03 * x0 + a13 * x1 + a23 * x2 + a33 * x3 + a34 * x4 + a35 * x5
        u4 = a04 * x0 + a14 * x1 + a24 * x2 + a34 * x3 + a44 * x4 + a45 * x5
        u5 = a05 * x0 + a15 * x1 + a25 * x2 + a35 * x3 + a45 * x4 + a55 * x5
        U[0, j], U[1, j], U[2, j], U[3, j], U[4, j], U[5, j] = u0, u1, u2, u3, u4, u5
        for i in range(j, 3):
            D[i, j] = (
                S[0, i] * u0 + S[1, i] * u1 + S[2, i] * u2
                + S[3, i] * u3 + S[4, i] * u4 + S[5, i] * u5
            )  # fmt: skip
        D[3, j] = S[3, 3] * u3 + S[4, 3] * u4 + S[5, 3] * u5
    # The joint stretches without turning: the upper half of the last column is zero.
    x3, x4, x5 = S[3, 3], S[4, 3], S[5, 3]
    U[0, 3] = a03 * x3 + a04 * x4 + a05 * x5
    U[1, 3] = a13 * x3 + a14 * x4 + a15 * x5
    U[2, 3] = a23 * x3 + a24 * x4 + a25 * x5
    u3 = a33 * x3 + a34 * x4 + a35 * x5
    u4 = a34 * x3 + a44 * x4 + a45 * x5
    u5 = a35 * x3 + a45 * x4 + a55 * x5
    U[3, 3], U[4, 3], U[5, 3] = u3, u4, u5
    D[3, 3] = x3 * u3 + x4 * u4 + x5 * u5


@kernel(allocates=False)
def _stiffen(D: Array, tangent: Array, turning: float, stretching: float) -> None:
    """Add the joint's implicit stiffness to the lower triangle of D (4, 4)."""
    for i in range(3):
        for j in range(i + 1):
            D[i, j] += turning * tangent[i, j]
    D[3, 3] += stretching


@kernel(allocates=False)
def _release(A: Array, U: Array, D: Array) -> None:
    """Replace U (6, 4) by U D, D an inverse; subtract U D U^T from the upper triangle of A."""
    d00, d10, d20, d30 = D[0, 0], D[1, 0], D[2, 0], D[3, 0]
    d11, d21, d31, d22, d32, d33 = D[1, 1], D[2, 1], D[3, 1], D[2, 2], D[3, 2], D[3, 3]
    for i in range(6):
        u0, u1, u2, u3 = U[i, 0], U[i, 1], U[i, 2], U[i, 3]
        x0 = u0 * d00 + u1 * d10 + u2 * d20 + u3 * d30
        x1 = u0 * d10 + u1 * d11 + u2 * d21 + u3 * d31
        x2 = u0 * d20 + u1 * d21 + u2 * d22 + u3 * d32
        x3 = u0 * d30 + u1 * d31 + u2 * d32 + u3 * d33
        # Rows below i still hold U.
        for j in range(i, 6):
            A[i, j] -= x0 * U[j, 0] + x1 * U[j, 1] + x2 * U[j, 2] + x3 * U[j, 3]
        U[i, 0], U[i, 1], U[i, 2], U[i, 3] = x0, x1, x2, x3


@kernel(allocates=False)
def _reduce_loads(
    S: Array,
    gain: Array,
    bias: Array,
    load: Array,
    gradient: Array,
    carried: Array,
    response: Array,
    g: int,
    cables: int,
) -> None:
    """Reduce every right-hand side at joint g and pass the wrenches on to the parent."""
    for k in range(6):
        carried[cables, k] += bias[k]
    for i in range(cables + 1):
        if i < cables:
            l0, l1 = -gradient[i, g, 0], -gradient[i, g, 1]
            l2, l3 = -gradient[i, g, 2], -gradient[i, g, 3]
        else:
            l0, l1, l2, l3 = load[0], load[1], load[2], load[3]
        p0, p1, p2 = carried[i, 0], carried[i, 1], carried[i, 2]
        p3, p4, p5 = carried[i, 3], carried[i, 4], carried[i, 5]
        through = l0 != 0.0 or l1 != 0.0 or l2 != 0.0 or l3 != 0.0
        beyond = p0 != 0.0 or p1 != 0.0 or p2 != 0.0 or p3 != 0.0 or p4 != 0.0 or p5 != 0.0
        if i < cables and not through and not beyond:
            response[i, 0], response[i, 1], response[i, 2], response[i, 3] = 0.0, 0.0, 0.0, 0.0
            continue
        u0 = l0 - S[0, 0] * p0 - S[1, 0] * p1 - S[2, 0] * p2
        u1 = l1 - S[0, 1] * p0 - S[1, 1] * p1 - S[2, 1] * p2
        u2 = l2 - S[0, 2] * p0 - S[1, 2] * p1 - S[2, 2] * p2
        u0 = u0 - S[3, 0] * p3 - S[4, 0] * p4 - S[5, 0] * p5
        u1 = u1 - S[3, 1] * p3 - S[4, 1] * p4 - S[5, 1] * p5
        u2 = u2 - S[3, 2] * p3 - S[4, 2] * p4 - S[5, 2] * p5
        u3 = l3 - S[3, 3] * p3 - S[4, 3] * p4 - S[5, 3] * p5
        response[i, 0], response[i, 1], response[i, 2], response[i, 3] = u0, u1, u2, u3
        for k in range(6):
            carried[i, k] += gain[k, 0] * u0 + gain[k, 1] * u1 + gain[k, 2] * u2 + gain[k, 3] * u3


@kernel(allocates=False)
def _add_upper(matrix: Array, other: Array) -> None:
    """Add the upper triangle of `other` (6, 6) to `matrix`."""
    for i in range(6):
        for j in range(i, 6):
            matrix[i, j] += other[i, j]


@kernel(allocates=False)
def _add_inertia(matrix: Array, J: Array) -> None:
    """Add a body's inertia (10,) to the upper triangle of a spatial matrix (6, 6)."""
    matrix[0, 0] += J[0]
    matrix[1, 1] += J[1]
    matrix[2, 2] += J[2]
    matrix[0, 1] += J[3]
    matrix[0, 2] += J[4]
    matrix[1, 2] += J[5]
    matrix[0, 4] -= J[8]
    matrix[0, 5] += J[7]
    matrix[1, 3] += J[8]
    matrix[1, 5] -= J[6]
    matrix[2, 3] -= J[7]
    matrix[2, 4] += J[6]
    matrix[3, 3] += J[9]
    matrix[4, 4] += J[9]
    matrix[5, 5] += J[9]


@kernel(allocates=False)
def accelerate(scratch: Scratch, tension: Array, h: float, velocity: Array) -> None:
    """Add h times the joint accelerations under the cable tensions to `velocity` (n, 4)."""
    n, m = scratch.response.shape[0], tension.shape[0]
    a0, a1, a2, a3, a4, a5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for g in range(n):
        gain, inverse, S = scratch.gain[g], scratch.inverse[g], scratch.motion[g]
        u = scratch.response[g, m]
        for i in range(m):
            for j in range(4):
                u[j] += tension[i] * scratch.response[g, i, j]
        x0, x1, x2, x3 = u[0], u[1], u[2], u[3]
        for j in range(4):
            u[j] = (
                inverse[j, 0] * x0 + inverse[j, 1] * x1 + inverse[j, 2] * x2 + inverse[j, 3] * x3
            ) - (
                gain[0, j] * a0
                + gain[1, j] * a1
                + gain[2, j] * a2
                + gain[3, j] * a3
                + gain[4, j] * a4
                + gain[5, j] * a5
            )
            velocity[g, j] += h * u[j]
        x0, x1, x2, x3 = u[0], u[1], u[2], u[3]
        a0 += S[0, 0] * x0 + S[0, 1] * x1 + S[0, 2] * x2
        a1 += S[1, 0] * x0 + S[1, 1] * x1 + S[1, 2] * x2
        a2 += S[2, 0] * x0 + S[2, 1] * x1 + S[2, 2] * x2
        a3 += S[3, 0] * x0 + S[3, 1] * x1 + S[3, 2] * x2 + S[3, 3] * x3
        a4 += S[4, 0] * x0 + S[4, 1] * x1 + S[4, 2] * x2 + S[4, 3] * x3
        a5 += S[5, 0] * x0 + S[5, 1] * x1 + S[5, 2] * x2 + S[5, 3] * x3
