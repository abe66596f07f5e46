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
from numba import njit

from softarm_ros.models.arm_model import Array

_TERMS = 11
_C7 = tuple((-1.0) ** k / math.factorial(2 * k + 7) for k in range(_TERMS))
_C8 = tuple((-1.0) ** k / math.factorial(2 * k + 8) for k in range(_TERMS))
# Below this u the series of c7, c8 are exact to rounding with _TERMS terms, or with 5.
_SERIES_LIMIT = 4.0
_SHORT_SERIES_LIMIT = 0.06


@njit(cache=True, fastmath=False, error_model='numpy')
def stumpff_to_8(u):  # type: ignore[no-untyped-def]  # real or complex
    """Return (c1, ..., c8) at u = angle^2; c_k = sum over j of (-u)^j / (2 j + k)!."""
    if u.real < _SERIES_LIMIT:
        first = 4 if u.real < _SHORT_SERIES_LIMIT else _TERMS - 1
        c7 = u * 0.0 + _C7[first]
        c8 = u * 0.0 + _C8[first]
        for k in range(first - 1, -1, -1):
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


@njit(cache=True, fastmath=False, error_model='numpy', inline='always')
def _point(x, y, z, a, b, c, da, db, dc, length, rho, place, map_):  # type: ignore[no-untyped-def]
    """Write rho (a e3 + b phi x e3 + c phi_z phi) and its derivative by the strains."""
    # direction, and its derivative by u
    dx, dy, dz = b * y + c * z * x, c * z * y - b * x, a + c * z * z
    ux, uy, uz = db * y + dc * z * x, dc * z * y - db * x, da + dc * z * z
    place[0], place[1], place[2] = rho * dx, rho * dy, rho * dz
    map_[0, 0], map_[1, 0], map_[2, 0] = length * dx, length * dy, length * dz
    s = rho * length
    map_[0, 1] = s * (2.0 * x * ux + c * z)
    map_[1, 1] = s * (2.0 * x * uy - b)
    map_[2, 1] = s * (2.0 * x * uz)
    map_[0, 2] = s * (2.0 * y * ux + b)
    map_[1, 2] = s * (2.0 * y * uy + c * z)
    map_[2, 2] = s * (2.0 * y * uz)
    map_[0, 3] = s * (2.0 * z * ux + c * x)
    map_[1, 3] = s * (2.0 * z * uy + c * y)
    map_[2, 3] = s * (2.0 * z * uz + 2.0 * c * z)


@njit(cache=True, fastmath=False, error_model='numpy', inline='always')
def _turning(x, y, z, c1, c2, c3, s, map_):  # type: ignore[no-untyped-def]
    """Write s (c1 I + c2 hat(phi) + c3 phi phi^T), the left Jacobian of the rotation."""
    map_[0, 0] = s * (c1 + c3 * x * x)
    map_[1, 1] = s * (c1 + c3 * y * y)
    map_[2, 2] = s * (c1 + c3 * z * z)
    map_[0, 1] = s * (c3 * x * y - c2 * z)
    map_[1, 0] = s * (c3 * x * y + c2 * z)
    map_[0, 2] = s * (c3 * x * z + c2 * y)
    map_[2, 0] = s * (c3 * x * z - c2 * y)
    map_[1, 2] = s * (c3 * y * z - c2 * x)
    map_[2, 1] = s * (c3 * y * z + c2 * x)


@njit(cache=True, fastmath=False, error_model='numpy')
def place_segment(  # type: ignore[no-untyped-def]
    length, rotary, q, turned, end, end_map, centre, centre_map, end_turn, middle_turn, inertia
):
    """Write everything that depends on the strains `q` (4,) alone; see `Scratch`."""
    x, y, z = length * q[1], length * q[2], length * q[3]
    rho = length * (1.0 + q[0])
    u = x * x + y * y + z * z
    c1, c2, c3, c4, c5, c6, _, _ = stumpff_to_8(u)
    # d c_k / du = (k c_{k+2} - c_{k+1}) / 2
    d1, d2, d3 = 0.5 * (c3 - c2), c4 - 0.5 * c3, 1.5 * c5 - 0.5 * c4
    d4 = 2.0 * c6 - 0.5 * c5
    _point(x, y, z, c1, c2, c3, d1, d2, d3, length, rho, end, end_map)
    _point(x, y, z, c2, c3, c4, d2, d3, d4, length, rho, centre, centre_map)
    _turning(x, y, z, c1, c2, c3, length, end_turn)
    c0 = 1.0 - u * c2
    turned[0, 0] = c0 + c2 * x * x
    turned[1, 1] = c0 + c2 * y * y
    turned[2, 2] = c0 + c2 * z * z
    turned[0, 1] = c2 * x * y - c1 * z
    turned[1, 0] = c2 * x * y + c1 * z
    turned[0, 2] = c2 * x * z + c1 * y
    turned[2, 0] = c2 * x * z - c1 * y
    turned[1, 2] = c2 * y * z - c1 * x
    turned[2, 1] = c2 * y * z + c1 * x
    x, y, z, u = 0.5 * x, 0.5 * y, 0.5 * z, 0.25 * u
    c1, c2, c3, _, _, _, _, _ = stumpff_to_8(u)
    _turning(x, y, z, c1, c2, c3, 0.5 * length, middle_turn)
    # R diag(j) R^T = j0 I + (j1 - j0) r1 r1^T + (j2 - j0) r2 r2^T of the middle frame
    c0 = 1.0 - u * c2
    ax, ay, az = c2 * x * y - c1 * z, c0 + c2 * y * y, c2 * y * z + c1 * x
    bx, by, bz = c2 * x * z + c1 * y, c2 * y * z - c1 * x, c0 + c2 * z * z
    j0, j1, j2 = rotary[0], rotary[1] - rotary[0], rotary[2] - rotary[0]
    inertia[0, 0] = j0 + j1 * ax * ax + j2 * bx * bx
    inertia[1, 1] = j0 + j1 * ay * ay + j2 * by * by
    inertia[2, 2] = j0 + j1 * az * az + j2 * bz * bz
    inertia[0, 1] = j1 * ax * ay + j2 * bx * by
    inertia[0, 2] = j1 * ax * az + j2 * bx * bz
    inertia[1, 2] = j1 * ay * az + j2 * by * bz
    inertia[1, 0], inertia[2, 0], inertia[2, 1] = inertia[0, 1], inertia[0, 2], inertia[1, 2]


@njit(cache=True, fastmath=False, error_model='numpy', inline='always')
def _point_drift(  # type: ignore[no-untyped-def]
    x, y, z, fx, fy, fz, s, nu, b, c, da, db, dc, dda, ddb, ddc
):
    """Return first rate and unforced second rate of a e3 + b phi x e3 + c phi_z phi."""
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


@njit(cache=True, fastmath=False, error_model='numpy', inline='always')
def _turning_drift(x, y, z, fx, fy, fz, s, nu, c1, c2, c3, c4, c5):  # type: ignore[no-untyped-def]
    """Return angular velocity and unforced angular acceleration of exp(phi), phi' = f."""
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


@njit(cache=True, fastmath=False, error_model='numpy', inline='always')
def segment_rates(length, q, v):  # type: ignore[no-untyped-def]
    """
    Return velocities and unforced accelerations of a segment's frames, local axes.

    Four groups of six numbers: distal point, centre of mass (velocity, acceleration), distal
    frame, middle frame (angular velocity, angular acceleration).
    """
    x, y, z = length * q[1], length * q[2], length * q[3]
    fx, fy, fz = length * v[1], length * v[2], length * v[3]
    rho, stretching = length * (1.0 + q[0]), length * v[0]
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
