"""
Compiled kinematics and elasticity of one segment.

A segment of length ds + e, bent by beta and twisted, is the elastic joint
Tz(lambda/2) R Tz(lambda/2) with lambda = (ds + e) tan(beta/2)/(beta/2): its ends lie on, and are
tangent to, a circular arc of that length. A constant bending moment is therefore exact with any
number of segments; other shapes converge with the square of ds.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

_ARC_TERMS = tuple((-1.0) ** k / (2 * k + 1) for k in range(11))
_SERIES_BELOW = 0.04


@kernel(allocates=False)
def arc_shape(deficit: float) -> tuple[float, float, float, float, float]:
    """
    Return the shape factors of an arc bent by beta, deficit = 1 - cos(beta) in 0..2.

    Returns
    -------
    tuple of float
        f = tan(beta/2)/(beta/2), its first and second derivative by cos(beta),
        q = (beta/2)/sin(beta/2) (arc over chord) and its derivative by cos(beta).

    """
    cosine_1 = 2.0 - deficit  # 1 + cos(beta)
    x = deficit / cosine_1  # tan(beta/2)^2
    # a = atan(sqrt(x))/sqrt(x), regular at the straight segment.
    if x < _SERIES_BELOW:
        a = _ARC_TERMS[10]
        a1 = 0.0
        half_a2 = 0.0
        for k in range(9, -1, -1):
            half_a2 = half_a2 * x + a1
            a1 = a1 * x + a
            a = a * x + _ARC_TERMS[k]
        a2 = 2.0 * half_a2
    else:
        root = math.sqrt(x)
        a = math.atan(root) / root
        a1 = (1.0 / (1.0 + x) - a) / (2.0 * x)
        a2 = -(1.0 / ((1.0 + x) * (1.0 + x)) + 3.0 * a1) / (2.0 * x)
    f = 1.0 / a
    f_x = -a1 * f * f
    f_xx = (2.0 * a1 * a1 * f - a2) * f * f
    x_c = -2.0 / (cosine_1 * cosine_1)
    x_cc = 4.0 / (cosine_1 * cosine_1 * cosine_1)
    secant = math.sqrt(1.0 + x)
    q = a * secant
    q_x = a1 * secant + 0.5 * a / secant
    return f, f_x * x_c, f_xx * x_c * x_c + f_x * x_cc, q, q_x * x_c


@kernel(allocates=False)
def log_of_quaternion(q: Array) -> tuple[float, float, float, float]:
    """
    Return the rotation vector (x, y, z) [rad] of a unit quaternion with w >= 0, and c.

    c = (1 - (t/2) cot(t/2))/t^2, with t the angle, is used in the inverse Jacobian of the
    exponential map: J^-1 = 1 + hat/2 + c hat^2.
    """
    s2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2]
    s = math.sqrt(s2)
    if s < 1e-9:
        return 2.0 * q[0], 2.0 * q[1], 2.0 * q[2], 1.0 / 12.0
    angle = 2.0 * math.atan2(s, q[3])
    u = angle * angle
    if u < 0.05:
        c = 1.0 / 12.0 + u * (1.0 / 720.0 + u * (1.0 / 30240.0 + u / 1209600.0))
    else:
        c = (1.0 - 0.5 * angle * q[3] / s) / u
    scale = angle / s
    return q[0] * scale, q[1] * scale, q[2] * scale, c


@kernel(allocates=False)
def turn(q: Array, x: float, y: float, z: float) -> None:
    """Rotate the quaternion `q` by the local rotation vector (x, y, z) [rad], in place."""
    u = 0.25 * (x * x + y * y + z * z)
    if u < 1e-4:
        scale = 0.5 * (1.0 - u / 6.0 * (1.0 - u / 20.0))
        c = 1.0 - 0.5 * u * (1.0 - u / 12.0 * (1.0 - u / 30.0))
    else:
        half = math.sqrt(u)
        scale = 0.5 * math.sin(half) / half
        c = math.cos(half)
    x, y, z = scale * x, scale * y, scale * z
    q0 = q[3] * x + q[0] * c + q[1] * z - q[2] * y
    q1 = q[3] * y + q[1] * c + q[2] * x - q[0] * z
    q2 = q[3] * z + q[2] * c + q[0] * y - q[1] * x
    q3 = q[3] * c - q[0] * x - q[1] * y - q[2] * z
    norm = 1.0 / math.sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
    if q3 < 0.0:
        norm = -norm
    q[0], q[1], q[2], q[3] = q0 * norm, q1 * norm, q2 * norm, q3 * norm


@kernel(allocates=False)
def elastic_load(
    q: Array,
    extension: float,
    velocity: Array,
    stiffness: Array,
    lead: float,
    axial_lead: float,
    load: Array,
    tangent: Array,
    logarithm: Array,
) -> None:
    """
    Write the elastic and damping force of a joint.

    The energy is 1/2 phi.K phi + 1/2 k e^2 with phi the logarithm of the joint rotation; its
    exact conjugate moment is -J^-T K phi, J the right Jacobian of the exponential map, and
    phi' = J^-1 w.

    Parameters
    ----------
    q, extension, velocity
        State of the joint: (4,), [m], (4,) [rad/s, m/s].
    stiffness : (3,)
        Bending, torsion, extension.
    lead, axial_lead : float
        Times [s] that multiply the rates of rotation and of extension: damping time plus the
        implicit step.
    load : (4,)
        Written: -J^-T K (phi + lead phi'), -k (e + axial_lead e').
    tangent : (3, 3)
        Written: J^-T K J^-1.
    logarithm : (4,)
        Written: the values of `log_of_quaternion`.

    """
    x, y, z, c = log_of_quaternion(q)
    logarithm[0], logarithm[1], logarithm[2], logarithm[3] = x, y, z, c
    # J^-1, row by row
    j00 = 1.0 - c * (y * y + z * z)
    j01 = c * x * y - 0.5 * z
    j02 = c * x * z + 0.5 * y
    j10 = c * x * y + 0.5 * z
    j11 = 1.0 - c * (x * x + z * z)
    j12 = c * y * z - 0.5 * x
    j20 = c * x * z - 0.5 * y
    j21 = c * y * z + 0.5 * x
    j22 = 1.0 - c * (x * x + y * y)
    bend, twist = stiffness[0], stiffness[1]
    wx, wy, wz = velocity[0], velocity[1], velocity[2]
    mx = bend * (x + lead * (j00 * wx + j01 * wy + j02 * wz))
    my = bend * (y + lead * (j10 * wx + j11 * wy + j12 * wz))
    mz = twist * (z + lead * (j20 * wx + j21 * wy + j22 * wz))
    load[0] = -(j00 * mx + j10 * my + j20 * mz)
    load[1] = -(j01 * mx + j11 * my + j21 * mz)
    load[2] = -(j02 * mx + j12 * my + j22 * mz)
    load[3] = -stiffness[2] * (extension + axial_lead * velocity[3])
    tangent[0, 0] = bend * (j00 * j00 + j10 * j10) + twist * j20 * j20
    tangent[0, 1] = bend * (j00 * j01 + j10 * j11) + twist * j20 * j21
    tangent[0, 2] = bend * (j00 * j02 + j10 * j12) + twist * j20 * j22
    tangent[1, 1] = bend * (j01 * j01 + j11 * j11) + twist * j21 * j21
    tangent[1, 2] = bend * (j01 * j02 + j11 * j12) + twist * j21 * j22
    tangent[2, 2] = bend * (j02 * j02 + j12 * j12) + twist * j22 * j22
    tangent[1, 0] = tangent[0, 1]
    tangent[2, 0] = tangent[0, 2]
    tangent[2, 1] = tangent[1, 2]


@kernel(allocates=False)
def conjugate_moment(
    logarithm: Array, mx: float, my: float, mz: float
) -> tuple[float, float, float]:
    """
    Return the joint force J^-T m of a moment m conjugate to a joint's rotation vector phi.

    Its work is m . phi'. Pressures at a fixed place of the cross-section, and rest strains, act
    this way. `logarithm` (4,): the values of `log_of_quaternion`.
    """
    x, y, z, c = logarithm[0], logarithm[1], logarithm[2], logarithm[3]
    dot = c * (x * mx + y * my + z * mz)
    less = 1.0 - c * (x * x + y * y + z * z)
    # J^-T = 1 - hat/2 + c hat^2, and hat^2 = phi phi' - |phi|^2
    return (
        less * mx + dot * x - 0.5 * (y * mz - z * my),
        less * my + dot * y - 0.5 * (z * mx - x * mz),
        less * mz + dot * z - 0.5 * (x * my - y * mx),
    )
