"""
Compiled rotation functions, called by other kernels and wrapped by `rotations`.

Rotations and constant-curvature arcs are written with the entire functions c1..c4 of u = angle^2
(Stumpff functions), which avoids divisions by an angle:
c1 = sin(t)/t, c2 = (1 - cos t)/t^2, c3 = (t - sin t)/t^3, c4 = (t^2/2 - 1 + cos t)/t^4, u = t^2.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

# 1/(3!), 1/(5!), ... and 1/(4!), 1/(6!), ... with alternating signs; at u = 1 the first
# neglected terms are 1/23! and 1/24!, far below the rounding of the sums.
_C3_SERIES = tuple((-1.0) ** k / math.factorial(2 * k + 3) for k in range(10))
_C4_SERIES = tuple((-1.0) ** k / math.factorial(2 * k + 4) for k in range(10))


@kernel
def stumpff(u: float) -> tuple[float, float, float, float]:
    """
    Return (c1, c2, c3, c4) at u = angle^2 >= 0, exact to rounding for every u.

    Derivatives follow without cancellation: dc1/du = (c3 - c2)/2, dc2/du = c4 - c3/2.
    """
    if u < 1.0:
        c3 = _C3_SERIES[9]
        c4 = _C4_SERIES[9]
        for k in range(8, -1, -1):
            c3 = c3 * u + _C3_SERIES[k]
            c4 = c4 * u + _C4_SERIES[k]
        return 1.0 - u * c3, 0.5 - u * c4, c3, c4
    angle = math.sqrt(u)
    half_sine = math.sin(0.5 * angle)
    c1 = math.sin(angle) / angle
    c2 = 2.0 * half_sine * half_sine / u
    return c1, c2, (1.0 - c1) / u, (0.5 - c2) / u


@kernel
def exp_so3_into(x: float, y: float, z: float, rotation: Array) -> None:
    """Write the rotation by the rotation vector (x, y, z) [rad] into `rotation` (3, 3)."""
    c1, c2, _, _ = stumpff(x * x + y * y + z * z)
    rotation[0, 0] = 1.0 - c2 * (y * y + z * z)
    rotation[1, 1] = 1.0 - c2 * (x * x + z * z)
    rotation[2, 2] = 1.0 - c2 * (x * x + y * y)
    rotation[0, 1] = c2 * x * y - c1 * z
    rotation[1, 0] = c2 * x * y + c1 * z
    rotation[0, 2] = c2 * x * z + c1 * y
    rotation[2, 0] = c2 * x * z - c1 * y
    rotation[1, 2] = c2 * y * z - c1 * x
    rotation[2, 1] = c2 * y * z + c1 * x


@kernel
def quaternion_of(rotation: Array) -> tuple[float, float, float, float]:
    """Return the unit quaternion (x, y, z, w), w >= 0, of a rotation matrix (Shepperd)."""
    r00, r11, r22 = rotation[0, 0], rotation[1, 1], rotation[2, 2]
    # The largest of the four squares 4 q^2 is at least 1: dividing by it is safe.
    if r00 + r11 + r22 >= max(r00, r11, r22):
        x = rotation[2, 1] - rotation[1, 2]
        y = rotation[0, 2] - rotation[2, 0]
        z = rotation[1, 0] - rotation[0, 1]
        w = 1.0 + r00 + r11 + r22
    elif r00 >= r11 and r00 >= r22:
        x = 1.0 + r00 - r11 - r22
        y = rotation[0, 1] + rotation[1, 0]
        z = rotation[0, 2] + rotation[2, 0]
        w = rotation[2, 1] - rotation[1, 2]
    elif r11 >= r22:
        x = rotation[0, 1] + rotation[1, 0]
        y = 1.0 + r11 - r00 - r22
        z = rotation[1, 2] + rotation[2, 1]
        w = rotation[0, 2] - rotation[2, 0]
    else:
        x = rotation[0, 2] + rotation[2, 0]
        y = rotation[1, 2] + rotation[2, 1]
        z = 1.0 + r22 - r00 - r11
        w = rotation[1, 0] - rotation[0, 1]
    scale = 1.0 / math.sqrt(x * x + y * y + z * z + w * w)
    if w < 0.0:
        scale = -scale
    return x * scale, y * scale, z * scale, w * scale


@kernel
def log_so3_of(rotation: Array) -> tuple[float, float, float]:
    """
    Return the rotation vector (x, y, z) [rad] of a rotation matrix, of length 0..pi.

    It is smooth at the identity. At pi, both axes +-n describe the rotation and one of them is
    returned.
    """
    x, y, z, w = quaternion_of(rotation)
    sine = math.sqrt(x * x + y * y + z * z)
    # 2 atan2(sine, w) / sine, without the quotient 0/0 at the identity.
    factor = 2.0 / w if sine < 1e-8 else 2.0 * math.atan2(sine, w) / sine
    return x * factor, y * factor, z * factor


@kernel
def exp_so3_kernel(vector: Array) -> Array:
    """Return the rotation matrix (3, 3) of a rotation vector (3,) [rad]."""
    rotation = np.empty((3, 3))
    exp_so3_into(vector[0], vector[1], vector[2], rotation)
    return rotation


@kernel
def log_so3_kernel(rotation: Array) -> Array:
    """Return the rotation vector (3,) [rad] of a rotation matrix (3, 3)."""
    vector = np.empty(3)
    vector[0], vector[1], vector[2] = log_so3_of(rotation)
    return vector


@kernel
def quaternion_kernel(rotation: Array) -> Array:
    """Return the unit quaternion (4,) x, y, z, w of a rotation matrix (3, 3)."""
    quaternion = np.empty(4)
    quaternion[0], quaternion[1], quaternion[2], quaternion[3] = quaternion_of(rotation)
    return quaternion
