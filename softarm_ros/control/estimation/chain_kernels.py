"""
A chain of sections by its strains, with derivatives, compiled.

A section's strain is the logarithm (6,) of the transform from its base to its tip: linear part
[m], then rotation vector [rad]. A point at a fraction f of it lies at exp(f strain): the section
is bent evenly. Stumpff functions as in `rotation_kernels`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import exp_so3_into, log_so3_of, stumpff

_TERMS = 20  # of the series of the tangent: 2.6 rad to the 20th over 21! is 4e-12
_ENOUGH = 1e-17  # left out of it, where fewer do


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
    """Write the logarithm (6,) of a transform (4, 4) that turns by less than pi."""
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
def tangent_into(strain: Array, share: float, turn: Array, mixed: Array, work: Array) -> None:
    """
    Write the right tangent of exp at share strain: [[turn, mixed], [0, turn]], each (3, 3).

    exp(s + ds) = exp(s) exp(tangent ds) to first order. By its series in the adjoint, which ends
    after 20 terms for every rotation below pi, and earlier for small ones; `work` (4, 3, 3) is
    overwritten.
    """
    angle = share * math.sqrt(strain[3] ** 2 + strain[4] ** 2 + strain[5] ** 2)
    terms, left = 2, angle / 3.0  # of the part by the linear strain, which counts a power less
    while terms < _TERMS and left > _ENOUGH:
        terms += 1
        left *= angle * terms / ((terms - 1.0) * (terms + 1.0))
    w, v, next_turn, next_mixed = work[0], work[1], work[2], work[3]
    cross_matrix_into(share * strain[3], share * strain[4], share * strain[5], w)
    cross_matrix_into(share * strain[0], share * strain[1], share * strain[2], v)
    for i in range(3):
        for j in range(3):
            turn[i, j] = 1.0 if i == j else 0.0
            mixed[i, j] = 0.0
    for term in range(terms, 0, -1):
        factor = -1.0 / (term + 1.0)
        for i in range(3):
            for j in range(3):
                a, b = 0.0, 0.0
                for m in range(3):
                    a += w[i, m] * turn[m, j]
                    b += w[i, m] * mixed[m, j] + v[i, m] * turn[m, j]
                next_turn[i, j] = factor * a + (1.0 if i == j else 0.0)
                next_mixed[i, j] = factor * b
        turn[:, :] = next_turn
        mixed[:, :] = next_mixed


@kernel
def _twist_into(
    frame: Array, share: float, turn: Array, mixed: Array, point: Array, jacobian: Array
) -> None:
    """Write the base-frame twist (6, 6) at a point (3,) by the strain of a section.

    `frame` (4, 4) is where the section's part that counts ends.
    """
    a, b = np.empty(3), np.empty(3)
    for j in range(6):
        for i in range(3):
            linear, angular = 0.0, 0.0
            for m in range(3):
                if j < 3:
                    linear += frame[i, m] * turn[m, j]
                else:
                    linear += frame[i, m] * mixed[m, j - 3]
                    angular += frame[i, m] * turn[m, j - 3]
            a[i], b[i] = linear, angular
        x, y, z = point[0] - frame[0, 3], point[1] - frame[1, 3], point[2] - frame[2, 3]
        jacobian[0, j] = share * (a[0] + b[1] * z - b[2] * y)
        jacobian[1, j] = share * (a[1] + b[2] * x - b[0] * z)
        jacobian[2, j] = share * (a[2] + b[0] * y - b[1] * x)
        for i in range(3):
            jacobian[3 + i, j] = share * b[i]


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
    work, step = np.empty((4, 3, 3)), np.empty((4, 4))
    part_turn, part_mixed, part = np.empty((3, 3)), np.empty((3, 3)), np.empty((4, 4))
    for i in range(4):
        frames[0, i, i] = 1.0
    for k in range(count):
        exp_se3_into(strains[k], 1.0, step)
        _compose(frames[k], step, frames[k + 1])
        tangent_into(strains[k], 1.0, turns[k], mixeds[k], work)
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
            _compose(frames[section], step, part)
        _compose(part, offsets[n], poses[n])
        point = poses[n, :3, 3]
        for k in range(section):
            _twist_into(
                frames[k + 1], 1.0, turns[k], mixeds[k], point, jacobians[n][:, 6 * k : 6 * k + 6]
            )
        own = jacobians[n][:, 6 * section : 6 * section + 6]
        if share == 1.0:
            _twist_into(part, 1.0, turns[section], mixeds[section], point, own)
        else:
            tangent_into(strains[section], share, part_turn, part_mixed, work)
            _twist_into(part, share, part_turn, part_mixed, point, own)


@kernel(allocates=False)
def _compose(first: Array, second: Array, out: Array) -> None:
    for i in range(3):
        for j in range(4):
            value = first[i, 3] if j == 3 else 0.0
            for m in range(3):
                value += first[i, m] * second[m, j]
            out[i, j] = value
    out[3, 0] = out[3, 1] = out[3, 2] = 0.0
    out[3, 3] = 1.0
