"""
Compiled muscles as springs: lengths in the parallel modules (Chen et al. 2022, eq. 54).

Muscle i of module t joins the points a on the disks at both ends of the module:
p = (R_b - R_a) a + r_b - r_a, l = |p|, with the same a on both disks (eq. 54 mixes t and t - 1).
It pulls with k (l - l_0) - c / l: a skeleton and enclosed gas.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.minimum_energy.kernels import (
    add_vector_term,
    rotate,
    step_jacobian_into,
    times_unit,
)


class Springs(NamedTuple):
    """
    Springs of the muscles under a command u; all arrays are (modules, 3).

    Attributes
    ----------
    stiffness, rest
        k [N/m] and l_0 [m].
    gas
        c [N m]: absolute pressure times cross-section times length, constant for a command.
    by_command, gas_by_command
        Decrease of the pull with the command, d [N/m] and e [N]: dT/du = -(d + e / l).

    """

    stiffness: Array
    rest: Array
    gas: Array
    by_command: Array
    gas_by_command: Array


NO_SPRINGS = Springs(*(np.zeros((0, 3)) for _ in Springs._fields))


@kernel(allocates=False)
def muscle_vectors_into(q: Array, r: Array, anchors: Array, vectors: Array) -> None:
    """Write the vectors p (modules, 3, 3) [m] of the muscles, base frame."""
    modules = anchors.shape[0]
    if modules == 0:
        return
    stride = (q.shape[0] - 1) // modules
    for t in range(modules):
        a, b = t * stride, (t + 1) * stride
        for i in range(3):
            x, y, z = anchors[t, i, 0], anchors[t, i, 1], anchors[t, i, 2]
            ax, ay, az = rotate(q[a], x, y, z)
            bx, by, bz = rotate(q[b], x, y, z)
            vectors[t, i, 0] = bx - ax + r[b, 0] - r[a, 0]
            vectors[t, i, 1] = by - ay + r[b, 1] - r[a, 1]
            vectors[t, i, 2] = bz - az + r[b, 2] - r[a, 2]


@kernel(allocates=False)
def muscle_energy(vectors: Array, springs: Springs) -> float:
    """Return the sum of k (l - l_0)^2 / 2 - c log(l / m) [J]."""
    energy = 0.0
    for t in range(vectors.shape[0]):
        for i in range(3):
            p = vectors[t, i]
            norm = math.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
            excess = norm - springs.rest[t, i]
            energy += 0.5 * springs.stiffness[t, i] * excess * excess
            energy -= springs.gas[t, i] * math.log(norm)
    return energy


@kernel(allocates=False)
def add_muscle_forces(vectors: Array, springs: Springs, forces: Array) -> None:
    """Subtract the muscle tensions from the backbone forces (n, 3): muscles compress it."""
    modules = vectors.shape[0]
    if modules == 0:
        return
    stride = forces.shape[0] // modules
    for t in range(modules):
        for i in range(3):
            p = vectors[t, i]
            norm = math.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
            pull = springs.stiffness[t, i] * (norm - springs.rest[t, i]) / norm
            pull -= springs.gas[t, i] / (norm * norm)
            for j in range(t * stride, (t + 1) * stride):
                for k in range(3):
                    forces[j, k] -= pull * p[k]


@kernel(allocates=False)
def chord_jacobian_into(
    q: Array, ds: float, a: int, b: int, by_a: Array, by_b: Array, out: Array
) -> None:
    """Write d(r_b - r_a)/du (3, 3 (b - a + 1)) of nodes a to b; overwrites by_a, by_b (3, 3)."""
    out[:, :] = 0.0
    for i in range(a, b):
        step_jacobian_into(q[i], q[i + 1], ds, by_a, by_b)
        column = 3 * (i - a)
        for j in range(3):
            for k in range(3):
                out[j, column + k] += by_a[j, k]
                out[j, column + 3 + k] += by_b[j, k]


@kernel(allocates=False)
def add_anchor_jacobian(q: Array, a: int, b: int, anchor: Array, out: Array) -> None:
    """Add to d(r_b - r_a)/du (3, 3 (b - a + 1)) the anchors of one muscle: dp/du."""
    for end in range(2):
        node = b if end == 1 else a
        sign = 1.0 if end == 1 else -1.0
        column = 3 * (node - a)
        for k in range(3):
            # The vector part of anchor e_k is anchor x e_k; times -2 it is 2 e_k x anchor.
            _, x, y, z = times_unit(0.0, anchor[0], anchor[1], anchor[2], k)
            vx, vy, vz = rotate(q[node], -2.0 * x, -2.0 * y, -2.0 * z)
            out[0, column + k] += sign * vx
            out[1, column + k] += sign * vy
            out[2, column + k] += sign * vz


@kernel
def add_muscle_terms(
    q: Array,
    ds: float,
    anchors: Array,
    vectors: Array,
    springs: Springs,
    gradient: Array,
    band: Array,
    by_lengths: Array,
    second: bool,
) -> None:
    """
    Add the muscle terms besides `add_muscle_forces`: moments at the disks, and muscle stiffness.

    If `second`, also write -d gradient / d command (3 n, 3 modules) into `by_lengths`.
    """
    modules = anchors.shape[0]
    if modules == 0:
        return
    size = 3 * ((q.shape[0] - 1) // modules + 1)
    if second:
        by_lengths[:, :] = 0.0
    add_muscles(
        q, ds, anchors, vectors, springs, np.empty(3), np.empty((3, 3)), np.empty((3, 3)),
        np.empty((3, size)), np.empty((3, size)), np.empty((3, size)),
        gradient, band, by_lengths, second,
    )  # fmt: skip


@kernel(allocates=False)
def add_muscles(
    q: Array,
    ds: float,
    anchors: Array,
    vectors: Array,
    springs: Springs,
    force: Array,
    by_a: Array,
    by_b: Array,
    chord: Array,
    jacobian: Array,
    weighted: Array,
    gradient: Array,
    band: Array,
    by_lengths: Array,
    second: bool,
) -> None:
    """Add what `add_muscle_terms` adds; the arrays `force` to `weighted` are overwritten."""
    modules, size = anchors.shape[0], chord.shape[1]
    stride = (q.shape[0] - 1) // modules
    for t in range(modules):
        a, b = t * stride, (t + 1) * stride
        first = 3 if a == 0 else 0  # node 0 is clamped
        if second:
            chord_jacobian_into(q, ds, a, b, by_a, by_b, chord)
        for i in range(3):
            p = vectors[t, i]
            norm = math.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
            pull = springs.stiffness[t, i] * (norm - springs.rest[t, i]) / norm
            pull -= springs.gas[t, i] / (norm * norm)
            for k in range(3):
                force[k] = -pull * p[k]
            add_vector_term(q[b], force, anchors[t, i], 3 * b - 3, gradient, band, second)
            if a > 0:
                for k in range(3):
                    force[k] = pull * p[k]
                add_vector_term(q[a], force, anchors[t, i], 3 * a - 3, gradient, band, second)
            if not second:
                continue
            for k in range(3):
                for m in range(size):
                    jacobian[k, m] = chord[k, m]
            add_anchor_jacobian(q, a, b, anchors[t, i], jacobian)
            gives = springs.stiffness[t, i] + springs.gas[t, i] / (norm * norm)
            by_command = springs.by_command[t, i] + springs.gas_by_command[t, i] / norm
            p0, p1, p2 = p[0], p[1], p[2]
            n0, n1, n2 = p0 / norm, p1 / norm, p2 / norm
            for m in range(first, size):
                j0, j1, j2 = jacobian[0, m], jacobian[1, m], jacobian[2, m]
                along = 0.0 + n0 * j0 + n1 * j1 + n2 * j2
                weighted[0, m] = pull * j0 + (gives - pull) * along * p0 / norm
                weighted[1, m] = pull * j1 + (gives - pull) * along * p1 / norm
                weighted[2, m] = pull * j2 + (gives - pull) * along * p2 / norm
                by_lengths[3 * a - 3 + m, 3 * t + i] += by_command * along
            for m in range(first, size):
                j0, j1, j2 = jacobian[0, m], jacobian[1, m], jacobian[2, m]
                row = band[3 * a - 3 + m]
                for c in range(first, m + 1):
                    row[m - c] += (
                        0.0 + j0 * weighted[0, c] + j1 * weighted[1, c] + j2 * weighted[2, c]
                    )
