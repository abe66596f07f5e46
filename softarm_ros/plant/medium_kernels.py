"""Compiled loads of a surrounding medium on the bodies of the chain, implicit in velocity."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.layout import BodyParameters, Medium, Scratch


@kernel(allocates=False)
def immerse(body: BodyParameters, medium: Medium, scratch: Scratch, h: float) -> None:
    """
    Add drag, forces and added mass to `bias`, and write their matrices into `scratch.medium`.

    Let u be the velocity of a body's origin, v = u - current, w its angular velocity, A = across 1
    + (along - across) z z' and B = inertia (1 - z z'). Accelerating the medium takes the force
    d(A v)/dt and the moment v x A v + d(B w)/dt (Kirchhoff); the medium exerts `force` - drag u
    and -turning w. Call after `load_bodies` and before `factorise` with the same step h [s];
    `scratch` is that of an immersed arm (`new_scratch`).
    """
    c0, c1, c2 = medium.current[0], medium.current[1], medium.current[2]
    for g in range(body.mass.shape[0]):
        R, r = scratch.rotation[g + 1], scratch.origin[g + 1]
        V, a, F, D = scratch.twist[g], scratch.drift[g], medium.force[g], medium.drag[g]
        w0, w1, w2 = V[0], V[1], V[2]
        u0 = V[3] + w1 * r[2] - w2 * r[1]
        u1 = V[4] + w2 * r[0] - w0 * r[2]
        u2 = V[5] + w0 * r[1] - w1 * r[0]
        v0, v1, v2 = u0 - c0, u1 - c1, u2 - c2
        # Acceleration of the origin less w x v, without the gravity that represents weight.
        a0 = a[3] + body.gravity[0] + a[1] * r[2] - a[2] * r[1] + w1 * c2 - w2 * c1
        a1 = a[4] + body.gravity[1] + a[2] * r[0] - a[0] * r[2] + w2 * c0 - w0 * c2
        a2 = a[5] + body.gravity[2] + a[0] * r[1] - a[1] * r[0] + w0 * c1 - w1 * c0
        z0, z1, z2 = R[0, 2], R[1, 2], R[2, 2]
        across, inertia = medium.added[g, 0], medium.added[g, 2]
        more = medium.added[g, 1] - across
        along = more * (v0 * z0 + v1 * z1 + v2 * z2)
        p0, p1, p2 = across * v0 + along * z0, across * v1 + along * z1, across * v2 + along * z2
        along = more * (a0 * z0 + a1 * z1 + a2 * z2)
        f0 = across * a0 + along * z0 + w1 * p2 - w2 * p1
        f1 = across * a1 + along * z1 + w2 * p0 - w0 * p2
        f2 = across * a2 + along * z2 + w0 * p1 - w1 * p0
        f0 += D[0, 0] * u0 + D[0, 1] * u1 + D[0, 2] * u2 - F[0]
        f1 += D[1, 0] * u0 + D[1, 1] * u1 + D[1, 2] * u2 - F[1]
        f2 += D[2, 0] * u0 + D[2, 1] * u1 + D[2, 2] * u2 - F[2]
        wz = w0 * z0 + w1 * z1 + w2 * z2
        l0, l1, l2 = inertia * (w0 - wz * z0), inertia * (w1 - wz * z1), inertia * (w2 - wz * z2)
        bz = a[0] * z0 + a[1] * z1 + a[2] * z2
        turning = medium.turning[g]
        n0 = inertia * (a[0] - bz * z0) + w1 * l2 - w2 * l1 + turning * w0
        n1 = inertia * (a[1] - bz * z1) + w2 * l0 - w0 * l2 + turning * w1
        n2 = inertia * (a[2] - bz * z2) + w0 * l1 - w1 * l0 + turning * w2
        n0 += v1 * p2 - v2 * p1
        n1 += v2 * p0 - v0 * p2
        n2 += v0 * p1 - v1 * p0
        bias = scratch.bias[g]
        bias[0] += n0 + r[1] * f2 - r[2] * f1
        bias[1] += n1 + r[2] * f0 - r[0] * f2
        bias[2] += n2 + r[0] * f1 - r[1] * f0
        bias[3] += f0
        bias[4] += f1
        bias[5] += f2
        _write_matrix(R, r, across, more, inertia, h * turning, h, D, scratch.medium[g])


@kernel(allocates=False)
def _write_matrix(
    R: Array,
    r: Array,
    across: float,
    more: float,
    inertia: float,
    turning: float,
    h: float,
    drag: Array,
    matrix: Array,
) -> None:
    """Write added inertia plus h times damping at the base origin, (6, 6), angular rows first."""
    for i in range(3):
        for j in range(3):
            one = 1.0 if i == j else 0.0
            axes = R[i, 2] * R[j, 2]
            matrix[3 + i, 3 + j] = across * one + more * axes + h * drag[i, j]
            matrix[i, j] = (inertia + turning) * one - inertia * axes
    for j in range(3):  # r x T
        x, y, z = matrix[3, 3 + j], matrix[4, 3 + j], matrix[5, 3 + j]
        matrix[0, 3 + j] = r[1] * z - r[2] * y
        matrix[1, 3 + j] = r[2] * x - r[0] * z
        matrix[2, 3 + j] = r[0] * y - r[1] * x
    for i in range(3):
        for j in range(3):
            matrix[3 + i, j] = matrix[j, 3 + i]
    for i in range(3):  # -(r x T) x r
        x, y, z = matrix[i, 3], matrix[i, 4], matrix[i, 5]
        matrix[i, 0] += r[1] * z - r[2] * y
        matrix[i, 1] += r[2] * x - r[0] * z
        matrix[i, 2] += r[0] * y - r[1] * x
