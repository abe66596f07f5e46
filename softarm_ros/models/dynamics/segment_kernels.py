"""
Compiled kinematics of one segment of constant strain: the exponential map and its rates.

With phi = L (kx, ky, kz) and rho = L (1 + eps), the distal frame of a segment is
R = exp(hat phi), p = rho (c1 e3 + c2 phi x e3 + c3 phi_z phi); averaging along the segment shifts
every index by one, so the centre of mass is rho (c2 e3 + c3 phi x e3 + c4 phi_z phi). c_k are the
Stumpff functions of u = |phi|^2, entire, so nothing is singular at the straight segment.
The kernels compile for complex arguments too (derivatives by complex steps).
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import inlined, kernel

# Coefficients (-1)^k / (2 k + 7)! and (-1)^k / (2 k + 8)! of the series of c7 and c8.
_C7 = tuple((-1.0) ** k / math.factorial(2 * k + 7) for k in range(11))
_C8 = tuple((-1.0) ** k / math.factorial(2 * k + 8) for k in range(11))
(_A0, _A1, _A2, _A3, _A4), (_B0, _B1, _B2, _B3, _B4) = _C7[:5], _C8[:5]
# Below these u, 5 and 11 terms of the series are exact to rounding.
_SHORT_SERIES_LIMIT = 0.06
_SERIES_LIMIT = 4.0


@kernel
def stumpff_to_8(u: float) -> tuple[float, ...]:
    """Return (c1, ..., c8) at u = angle^2; c_k = sum over j of (-u)^j / (2 j + k)!."""
    if u.real < _SHORT_SERIES_LIMIT:
        c7 = (((_A4 * u + _A3) * u + _A2) * u + _A1) * u + _A0
        c8 = (((_B4 * u + _B3) * u + _B2) * u + _B1) * u + _B0
        c5 = 1.0 / 120.0 - u * c7
        c6 = 1.0 / 720.0 - u * c8
        c3 = 1.0 / 6.0 - u * c5
        c4 = 1.0 / 24.0 - u * c6
        return 1.0 - u * c3, 0.5 - u * c4, c3, c4, c5, c6, c7, c8
    return _stumpff_of_large(u)


@kernel
def _stumpff_of_large(u: float) -> tuple[float, ...]:
    """Return (c1, ..., c8) away from zero."""
    if u.real < _SERIES_LIMIT:
        c7 = u * 0.0 + _C7[10]
        c8 = u * 0.0 + _C8[10]
        for k in range(9, -1, -1):
            c7 = c7 * u + _C7[k]
            c8 = c8 * u + _C8[k]
        c5 = 1.0 / 120.0 - u * c7
        c6 = 1.0 / 720.0 - u * c8
        c3 = 1.0 / 6.0 - u * c5
        c4 = 1.0 / 24.0 - u * c6
        return 1.0 - u * c3, 0.5 - u * c4, c3, c4, c5, c6, c7, c8
    angle = np.sqrt(u)
    half_sine = np.sin(0.5 * angle)
    c1 = np.sin(angle) / angle
    c2 = 2.0 * half_sine * half_sine / u
    c3 = (1.0 - c1) / u
    c4 = (0.5 - c2) / u
    c5 = (1.0 / 6.0 - c3) / u
    c6 = (1.0 / 24.0 - c4) / u
    return c1, c2, c3, c4, c5, c6, (1.0 / 120.0 - c5) / u, (1.0 / 720.0 - c6) / u


@kernel
def _point(
    x: float,
    y: float,
    z: float,
    a: float,
    b: float,
    c: float,
    da: float,
    db: float,
    dc: float,
    length: float,
    rho: float,
    place: Array,
    map_: Array,
    k: int,
) -> None:
    """Write rho (a e3 + b phi x e3 + c phi_z phi) and its derivative by the strains."""
    # direction, and its derivative by u
    dx, dy, dz = b * y + c * z * x, c * z * y - b * x, a + c * z * z
    ux, uy, uz = db * y + dc * z * x, dc * z * y - db * x, da + dc * z * z
    place[k, 0], place[k, 1], place[k, 2] = rho * dx, rho * dy, rho * dz
    map_[k, 0, 0], map_[k, 1, 0], map_[k, 2, 0] = length * dx, length * dy, length * dz
    s = rho * length
    map_[k, 0, 1] = s * (2.0 * x * ux + c * z)
    map_[k, 1, 1] = s * (2.0 * x * uy - b)
    map_[k, 2, 1] = s * (2.0 * x * uz)
    map_[k, 0, 2] = s * (2.0 * y * ux + b)
    map_[k, 1, 2] = s * (2.0 * y * uy + c * z)
    map_[k, 2, 2] = s * (2.0 * y * uz)
    map_[k, 0, 3] = s * (2.0 * z * ux + c * x)
    map_[k, 1, 3] = s * (2.0 * z * uy + c * y)
    map_[k, 2, 3] = s * (2.0 * z * uz + 2.0 * c * z)


@kernel
def _turning(
    x: float, y: float, z: float, c1: float, c2: float, c3: float, s: float, map_: Array, k: int
) -> None:
    """Write s (c1 I + c2 hat(phi) + c3 phi phi^T), the left Jacobian of the rotation."""
    map_[k, 0, 0] = s * (c1 + c3 * x * x)
    map_[k, 1, 1] = s * (c1 + c3 * y * y)
    map_[k, 2, 2] = s * (c1 + c3 * z * z)
    map_[k, 0, 1] = s * (c3 * x * y - c2 * z)
    map_[k, 1, 0] = s * (c3 * x * y + c2 * z)
    map_[k, 0, 2] = s * (c3 * x * z + c2 * y)
    map_[k, 2, 0] = s * (c3 * x * z - c2 * y)
    map_[k, 1, 2] = s * (c3 * y * z - c2 * x)
    map_[k, 2, 1] = s * (c3 * y * z + c2 * x)


@inlined
def place_segment(
    length: float,
    rotary: Array,
    q: Array,
    k: int,
    turned: Array,
    end: Array,
    end_map: Array,
    centre: Array,
    centre_map: Array,
    end_turn: Array,
    middle_turn: Array,
    inertia: Array,
) -> None:
    """Write all arrays that depend only on the strains `q[k]`; see `Scratch`."""
    x, y, z = length * q[k, 1], length * q[k, 2], length * q[k, 3]
    rho = length * (1.0 + q[k, 0])
    u = x * x + y * y + z * z
    c1, c2, c3, c4, c5, c6, _, _ = stumpff_to_8(u)
    # d c_k / du = (k c_{k+2} - c_{k+1}) / 2
    d1, d2, d3 = 0.5 * (c3 - c2), c4 - 0.5 * c3, 1.5 * c5 - 0.5 * c4
    d4 = 2.0 * c6 - 0.5 * c5
    _point(x, y, z, c1, c2, c3, d1, d2, d3, length, rho, end, end_map, k)
    _point(x, y, z, c2, c3, c4, d2, d3, d4, length, rho, centre, centre_map, k)
    _turning(x, y, z, c1, c2, c3, length, end_turn, k)
    c0 = 1.0 - u * c2
    turned[k, 0, 0] = c0 + c2 * x * x
    turned[k, 1, 1] = c0 + c2 * y * y
    turned[k, 2, 2] = c0 + c2 * z * z
    turned[k, 0, 1] = c2 * x * y - c1 * z
    turned[k, 1, 0] = c2 * x * y + c1 * z
    turned[k, 0, 2] = c2 * x * z + c1 * y
    turned[k, 2, 0] = c2 * x * z - c1 * y
    turned[k, 1, 2] = c2 * y * z - c1 * x
    turned[k, 2, 1] = c2 * y * z + c1 * x
    x, y, z, u = 0.5 * x, 0.5 * y, 0.5 * z, 0.25 * u
    c1, c2, c3, _, _, _, _, _ = stumpff_to_8(u)
    _turning(x, y, z, c1, c2, c3, 0.5 * length, middle_turn, k)
    # R diag(j) R^T = j0 I + (j1 - j0) r1 r1^T + (j2 - j0) r2 r2^T of the middle frame
    c0 = 1.0 - u * c2
    ax, ay, az = c2 * x * y - c1 * z, c0 + c2 * y * y, c2 * y * z + c1 * x
    bx, by, bz = c2 * x * z + c1 * y, c2 * y * z - c1 * x, c0 + c2 * z * z
    j0, j1, j2 = rotary[k, 0], rotary[k, 1] - rotary[k, 0], rotary[k, 2] - rotary[k, 0]
    inertia[k, 0, 0] = j0 + j1 * ax * ax + j2 * bx * bx
    inertia[k, 1, 1] = j0 + j1 * ay * ay + j2 * by * by
    inertia[k, 2, 2] = j0 + j1 * az * az + j2 * bz * bz
    inertia[k, 0, 1] = j1 * ax * ay + j2 * bx * by
    inertia[k, 0, 2] = j1 * ax * az + j2 * bx * bz
    inertia[k, 1, 2] = j1 * ay * az + j2 * by * bz
    inertia[k, 1, 0], inertia[k, 2, 0], inertia[k, 2, 1] = (
        inertia[k, 0, 1],
        inertia[k, 0, 2],
        inertia[k, 1, 2],
    )


@kernel
def _point_drift(
    x: float,
    y: float,
    z: float,
    fx: float,
    fy: float,
    fz: float,
    s: float,
    nu: float,
    b: float,
    c: float,
    da: float,
    db: float,
    dc: float,
    dda: float,
    ddb: float,
    ddc: float,
) -> tuple[float, ...]:
    """Return the first and the unforced second rate of a e3 + b phi x e3 + c phi_z phi."""
    ux, uy, uz = db * y + dc * z * x, dc * z * y - db * x, da + dc * z * z
    wx, wy, wz = ddb * y + ddc * z * x, ddc * z * y - ddb * x, dda + ddc * z * z
    gx, gy, gz = fz * x + z * fx, fz * y + z * fy, 2.0 * fz * z
    rate_x = 2.0 * s * ux + b * fy + c * gx
    rate_y = 2.0 * s * uy - b * fx + c * gy
    rate_z = 2.0 * s * uz + c * gz
    k, m, t = 2.0 * nu, 4.0 * s * s, 4.0 * s
    drift_x = k * ux + m * wx + t * (db * fy + dc * gx) + 2.0 * c * fz * fx
    drift_y = k * uy + m * wy + t * (dc * gy - db * fx) + 2.0 * c * fz * fy
    drift_z = k * uz + m * wz + t * dc * gz + 2.0 * c * fz * fz
    return rate_x, rate_y, rate_z, drift_x, drift_y, drift_z


@kernel
def _turning_drift(
    x: float,
    y: float,
    z: float,
    fx: float,
    fy: float,
    fz: float,
    s: float,
    nu: float,
    c1: float,
    c2: float,
    c3: float,
    c4: float,
    c5: float,
) -> tuple[float, ...]:
    """Return the angular velocity and unforced angular acceleration of exp(phi), phi' = f."""
    kx, ky, kz = y * fz - z * fy, z * fx - x * fz, x * fy - y * fx
    e1 = s * (c3 - c2)
    e2 = s * (2.0 * c4 - c3)
    e3 = s * (3.0 * c5 - c4)
    on_phi, on_rate = c3 * nu + e3 * s, e1 + c3 * s
    return (
        c1 * fx + c2 * kx + c3 * s * x,
        c1 * fy + c2 * ky + c3 * s * y,
        c1 * fz + c2 * kz + c3 * s * z,
        on_rate * fx + e2 * kx + on_phi * x,
        on_rate * fy + e2 * ky + on_phi * y,
        on_rate * fz + e2 * kz + on_phi * z,
    )


@kernel
def segment_rates(length: float, q: Array, v: Array, k: int) -> tuple[tuple[float, ...], ...]:
    """
    Return velocities and unforced accelerations of a segment's frames, local axes.

    Four groups of six numbers: distal point, centre of mass (velocity, acceleration), distal
    frame, middle frame (angular velocity, angular acceleration).
    """
    x, y, z = length * q[k, 1], length * q[k, 2], length * q[k, 3]
    fx, fy, fz = length * v[k, 1], length * v[k, 2], length * v[k, 3]
    rho, stretching = length * (1.0 + q[k, 0]), length * v[k, 0]
    u = x * x + y * y + z * z
    s = x * fx + y * fy + z * fz
    nu = fx * fx + fy * fy + fz * fz
    c1, c2, c3, c4, c5, c6, c7, c8 = stumpff_to_8(u)
    d1, d2, d3 = 0.5 * (c3 - c2), c4 - 0.5 * c3, 1.5 * c5 - 0.5 * c4
    d4, d5, d6 = 2.0 * c6 - 0.5 * c5, 2.5 * c7 - 0.5 * c6, 3.0 * c8 - 0.5 * c7
    b1, b2, b3, b4 = 0.5 * (d3 - d2), d4 - 0.5 * d3, 1.5 * d5 - 0.5 * d4, 2.0 * d6 - 0.5 * d5
    rx, ry, rz, ex, ey, ez = _point_drift(
        x, y, z, fx, fy, fz, s, nu, c2, c3, d1, d2, d3, b1, b2, b3
    )
    t = 2.0 * stretching
    end = (
        stretching * (c2 * y + c3 * z * x) + rho * rx,
        stretching * (c3 * z * y - c2 * x) + rho * ry,
        stretching * (c1 + c3 * z * z) + rho * rz,
        t * rx + rho * ex,
        t * ry + rho * ey,
        t * rz + rho * ez,
    )
    rx, ry, rz, ex, ey, ez = _point_drift(
        x, y, z, fx, fy, fz, s, nu, c3, c4, d2, d3, d4, b2, b3, b4
    )
    centre = (
        stretching * (c3 * y + c4 * z * x) + rho * rx,
        stretching * (c4 * z * y - c3 * x) + rho * ry,
        stretching * (c2 + c4 * z * z) + rho * rz,
        t * rx + rho * ex,
        t * ry + rho * ey,
        t * rz + rho * ez,
    )
    turn = _turning_drift(x, y, z, fx, fy, fz, s, nu, c1, c2, c3, c4, c5)
    c1, c2, c3, c4, c5, _, _, _ = stumpff_to_8(0.25 * u)
    middle = _turning_drift(
        0.5 * x,
        0.5 * y,
        0.5 * z,
        0.5 * fx,
        0.5 * fy,
        0.5 * fz,
        0.25 * s,
        0.25 * nu,
        c1,
        c2,
        c3,
        c4,
        c5,
    )
    return end, centre, turn, middle
