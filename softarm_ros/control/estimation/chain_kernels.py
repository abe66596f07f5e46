"""
Compiled kinematics of a chain of sections, from its strains, with derivatives.

A section's strain is the logarithm (6,) of the transform from its base to its tip: linear part
[m], then rotation vector [rad]. A point at a fraction f of the section lies at exp(f strain): the
section is bent evenly. Stumpff functions as in `rotation_kernels`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.pose_kernels import compose_into
from softarm_ros.geometry.rotation_kernels import exp_so3_into, log_so3_of, stumpff

# 1/(5!), 1/(7!), ... with alternating signs, as the series of `rotation_kernels`.
_C5_SERIES = tuple((-1.0) ** k / math.factorial(2 * k + 5) for k in range(10))


@kernel(allocates=False)
def cross_matrix_into(x: float, y: float, z: float, out: Array) -> None:
    """Write the matrix (3, 3) whose product with b is (x, y, z) x b."""
    out[0, 0] = 0.0
    out[0, 1] = -z
    out[0, 2] = y
    out[1, 0] = z
    out[1, 1] = 0.0
    out[1, 2] = -x
    out[2, 0] = -y
    out[2, 1] = x
    out[2, 2] = 0.0


@kernel
def exp_se3_into(strain: Array, share: float, transform: Array) -> None:
    """Write exp(share strain) into `transform` (4, 4)."""
    x, y, z = share * strain[3], share * strain[4], share * strain[5]
    a, b, c = share * strain[0], share * strain[1], share * strain[2]
    exp_so3_into(x, y, z, transform[:3, :3])
    _, c2, c3, _ = stumpff(x * x + y * y + z * z)
    # (I + c2 w^ + c3 w^ w^) v
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    transform[0, 3] = a + c2 * d + c3 * (y * f - z * e)
    transform[1, 3] = b + c2 * e + c3 * (z * d - x * f)
    transform[2, 3] = c + c2 * f + c3 * (x * e - y * d)
    transform[3, 0] = transform[3, 1] = transform[3, 2] = 0.0
    transform[3, 3] = 1.0


@kernel
def log_se3_into(transform: Array, strain: Array) -> None:
    """Write the logarithm (6,) of a transform (4, 4) that rotates by less than pi."""
    x, y, z = log_so3_of(transform[:3, :3])
    a, b, c = transform[0, 3], transform[1, 3], transform[2, 3]
    u = x * x + y * y + z * z
    if u < 0.05:
        factor = 1.0 / 12.0 + u / 720.0 + u * u / 30240.0 + u * u * u / 1209600.0
    else:
        c1, c2, _, _ = stumpff(u)
        factor = (1.0 - 0.5 * c1 / c2) / u
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    strain[0] = a - 0.5 * d + factor * (y * f - z * e)
    strain[1] = b - 0.5 * e + factor * (z * d - x * f)
    strain[2] = c - 0.5 * f + factor * (x * e - y * d)
    strain[3], strain[4], strain[5] = x, y, z


@kernel
def strains_of(section_tips: Array) -> Array:
    """Return the strains (sections, 6) of section tips (sections, 4, 4) in the base frame."""
    count = len(section_tips)
    strains, relative = np.empty((count, 6)), np.zeros((4, 4))
    for k in range(count):
        if k == 0:
            log_se3_into(section_tips[0], strains[0])
            continue
        before, tip = section_tips[k - 1], section_tips[k]
        for i in range(3):
            for j in range(4):
                value = 0.0
                for m in range(3):
                    value += before[m, i] * (tip[m, j] - (before[m, 3] if j == 3 else 0.0))
                relative[i, j] = value
        log_se3_into(relative, strains[k])
    return strains


@kernel
def _fifth_stumpff(u: float, c3: float) -> float:
    """Return c5 = (sin t - t + t^3/6)/t^5 at u = t^2 >= 0, given c3; dc3/du = (3 c5 - c4)/2."""
    if u >= 1.0:
        return (1.0 / 6.0 - c3) / u
    c5 = _C5_SERIES[9]
    for k in range(8, -1, -1):
        c5 = c5 * u + _C5_SERIES[k]
    return c5


@kernel
def tangent_into(strain: Array, share: float, turn: Array, mixed: Array) -> None:
    """
    Write the right tangent of exp at share strain: [[turn, mixed], [0, turn]], each (3, 3).

    exp(s + ds) = exp(s) exp(tangent ds) to first order. With w the rotation vector and v the
    linear part, turn = 1 - c2 w^ + c3 w^ w^ and mixed is its derivative along v, in which products
    of three and more w^, v^ are reduced by w^ v^ w^ = -(w . v) w^ (Barfoot 2017, eq. 7.86).
    """
    x, y, z = share * strain[3], share * strain[4], share * strain[5]
    a, b, c = share * strain[0], share * strain[1], share * strain[2]
    u, along = x * x + y * y + z * z, x * a + y * b + z * c
    _, c2, c3, c4 = stumpff(u)
    c5 = _fifth_stumpff(u, c3)
    by_w, by_ww = along * (2.0 * c4 - c3), along * (3.0 * c5 - c4)
    cross_matrix_into(-c2 * x, -c2 * y, -c2 * z, turn)
    cross_matrix_into(-c2 * a - by_w * x, -c2 * b - by_w * y, -c2 * c - by_w * z, mixed)
    for i in range(3):
        turn[i, i] += 1.0 - c3 * u
        mixed[i, i] -= 2.0 * c3 * along + by_ww * u
        for j in range(3):
            w_i, w_j = share * strain[3 + i], share * strain[3 + j]
            turn[i, j] += c3 * w_i * w_j
            mixed[i, j] += c3 * share * (strain[i] * w_j + w_i * strain[j]) + by_ww * w_i * w_j


@kernel
def _twist_into(
    frame: Array,
    share: float,
    turn: Array,
    mixed: Array,
    point: Array,
    jacobian: Array,
    first: int,
) -> None:
    """Write six columns from `first` on: the base-frame twist at a point (3,) by a strain.

    `frame` (4, 4) is the end of the part of the section that moves the point.
    """
    x, y, z = point[0] - frame[0, 3], point[1] - frame[1, 3], point[2] - frame[2, 3]
    for j in range(3):
        a, b, c = _rotated(frame, turn, j)
        d, e, f = _rotated(frame, mixed, j)
        column = first + j
        jacobian[0, column] = share * a
        jacobian[1, column] = share * b
        jacobian[2, column] = share * c
        jacobian[3, column] = jacobian[4, column] = jacobian[5, column] = 0.0
        column += 3
        jacobian[0, column] = share * (d + b * z - c * y)
        jacobian[1, column] = share * (e + c * x - a * z)
        jacobian[2, column] = share * (f + a * y - b * x)
        jacobian[3, column] = share * a
        jacobian[4, column] = share * b
        jacobian[5, column] = share * c


@kernel(allocates=False)
def _rotated(frame: Array, matrix: Array, j: int) -> tuple[float, float, float]:
    """Return column j of a matrix (3, 3), rotated by a frame (4, 4)."""
    x, y, z = matrix[0, j], matrix[1, j], matrix[2, j]
    return (
        frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z,
        frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z,
        frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z,
    )


@kernel
def places_into(
    strains: Array,
    sections: NDArray[np.int64],
    fractions: Array,
    offsets: Array,
    poses: Array,
    jacobians: Array,
) -> None:
    """
    Write the poses (n, 4, 4) of places on the chain and their derivatives (n, 6, 6 sections).

    Rows of a derivative: position [m], then rotation vector [rad], along the axes of the base;
    columns: the strains (sections, 6). Section -1 is the base.
    """
    count, places = len(strains), len(sections)
    frames = np.zeros((count + 1, 4, 4))
    turns, mixeds = np.empty((count, 3, 3)), np.empty((count, 3, 3))
    step = np.empty((4, 4))
    part_turn, part_mixed, part = np.empty((3, 3)), np.empty((3, 3)), np.empty((4, 4))
    for i in range(4):
        frames[0, i, i] = 1.0
    for k in range(count):
        exp_se3_into(strains[k], 1.0, step)
        compose_into(frames[k], step, frames[k + 1])
        tangent_into(strains[k], 1.0, turns[k], mixeds[k])
    for n in range(places):
        jacobians[n] = 0.0
        section, share = sections[n], fractions[n]
        if section < 0:
            poses[n] = offsets[n]
            continue
        if share == 1.0:
            part[:, :] = frames[section + 1]
        else:
            exp_se3_into(strains[section], share, step)
            compose_into(frames[section], step, part)
        compose_into(part, offsets[n], poses[n])
        point = poses[n, :3, 3]
        for k in range(section):
            _twist_into(frames[k + 1], 1.0, turns[k], mixeds[k], point, jacobians[n], 6 * k)
        own = 6 * section
        if share == 1.0:
            _twist_into(part, 1.0, turns[section], mixeds[section], point, jacobians[n], own)
        else:
            tangent_into(strains[section], share, part_turn, part_mixed)
            _twist_into(part, share, part_turn, part_mixed, point, jacobians[n], own)
