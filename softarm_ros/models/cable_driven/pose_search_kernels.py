"""
Compiled inverse kinematics: Levenberg-Marquardt over the bending vectors, within their limits.

Every section keeps |b| within its limit, and b in a direction that its cables can hold. Each
iterate is projected onto these sets; a section that is on the border of its set and pushed outward
moves only along the border. Gradient and step therefore vanish together at the closest approach.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import solve_by_factor
from softarm_ros.geometry.rotation_kernels import exp_so3_into, log_so3_of
from softarm_ros.models.cable_driven.constant_curvature_kernels import tip_jacobian_into
from softarm_ros.models.cable_driven.slack_kernels import nearest_holdable

_MAX_ITERATIONS = 300
_PROBE_RAD = 1e-6


@kernel
def project_into(bend: Array, limits: Array, cables: Array, first: NDArray[np.int64]) -> None:
    """Move `bend` (2 sections,) to the nearest admissible bending vectors."""
    for k in range(limits.shape[0]):
        bx, by = bend[2 * k], bend[2 * k + 1]
        bx, by = nearest_holdable(bx, by, cables[first[k] : first[k + 1]])
        theta = math.hypot(bx, by)
        if theta > limits[k]:
            bx, by = bx * limits[k] / theta, by * limits[k] / theta
        bend[2 * k], bend[2 * k + 1] = bx, by


@kernel
def _tip_rotation_into(bend: Array, rotation: Array) -> None:
    """Write the rotation base -> tip (3, 3)."""
    part, product = np.empty((3, 3)), np.empty((3, 3))
    for k in range(bend.shape[0] // 2):
        exp_so3_into(-bend[2 * k + 1], bend[2 * k], 0.0, part)
        if k == 0:
            rotation[:, :] = part
            continue
        for i in range(3):
            for j in range(3):
                product[i, j] = 0.0
                for n in range(3):
                    product[i, j] += rotation[i, n] * part[n, j]
        rotation[:, :] = product


@kernel
def _errors_into(
    bend: Array,
    lengths: Array,
    target: Array,
    orientation: Array,
    lever: float,
    error: Array,
    jacobian: Array,
) -> float:
    """
    Write the error (rows,) [m] and the Jacobian (rows, dof) of the tip; return the squared error.

    With an orientation, rows = 6: the last three are the rotation vector to the target, in the
    base frame, times `lever` [m/rad].
    """
    rows = error.shape[0]
    tip = np.empty(3)
    tip_jacobian_into(bend, lengths, rows, tip, jacobian)
    for i in range(3):
        error[i] = target[i] - tip[i]
    if rows == 6:
        rotation, relative = np.empty((3, 3)), np.empty((3, 3))
        _tip_rotation_into(bend, rotation)
        for i in range(3):
            for j in range(3):
                relative[i, j] = 0.0
                for n in range(3):
                    relative[i, j] += orientation[i, n] * rotation[j, n]
        error[3], error[4], error[5] = log_so3_of(relative)
        for i in range(3, 6):
            error[i] *= lever
            for j in range(bend.shape[0]):
                jacobian[i, j] *= lever
    total = 0.0
    for i in range(rows):
        total += error[i] * error[i]
    return total


@kernel
def _restrict_to_borders(
    bend: Array,
    limits: Array,
    cables: Array,
    first: NDArray[np.int64],
    gradient: Array,
    jacobian: Array,
) -> float:
    """
    Remove the components that the borders forbid from `jacobian` and `gradient`.

    Return the norm of the remaining descent direction `gradient`.
    """
    rows, dof = jacobian.shape
    size = 0.0
    for j in range(dof):
        size += gradient[j] * gradient[j]
    if size == 0.0:
        return 0.0
    scale = _PROBE_RAD / math.sqrt(size)
    probe = np.empty(dof)
    for j in range(dof):
        probe[j] = bend[j] + scale * gradient[j]
    project_into(probe, limits, cables, first)
    left = 0.0
    for k in range(dof // 2):
        i = 2 * k
        sx, sy = scale * gradient[i], scale * gradient[i + 1]
        tx, ty = probe[i] - bend[i], probe[i + 1] - bend[i + 1]
        if math.hypot(tx - sx, ty - sy) > 1e-4 * math.hypot(sx, sy):
            norm = math.hypot(tx, ty)
            if norm > 1e-8 * _PROBE_RAD:
                tx, ty = tx / norm, ty / norm
            else:
                tx, ty = 0.0, 0.0
            along = gradient[i] * tx + gradient[i + 1] * ty
            gradient[i], gradient[i + 1] = along * tx, along * ty
            for row in range(rows):
                along = jacobian[row, i] * tx + jacobian[row, i + 1] * ty
                jacobian[row, i], jacobian[row, i + 1] = along * tx, along * ty
        left += gradient[i] ** 2 + gradient[i + 1] ** 2
    return math.sqrt(left)


@kernel
def _solve_in_place(matrix: Array, vector: Array) -> None:
    """Solve matrix x = vector (positive definite) by Cholesky; write x to `vector`."""
    n = vector.shape[0]
    for j in range(n):
        for k in range(j):
            matrix[j, j] -= matrix[j, k] * matrix[j, k]
        matrix[j, j] = math.sqrt(matrix[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
            matrix[i, j] /= matrix[j, j]
    solve_by_factor(matrix, vector)


@kernel
def search_pose(
    bend: Array,
    lengths: Array,
    limits: Array,
    cables: Array,
    first: NDArray[np.int64],
    target: Array,
    orientation: Array,
    lever: float,
    exact: float,
) -> float:
    """
    Improve `bend` (dof,) [rad] in place; return the final error [m].

    The search stops when the error is at most `exact` [m]. lever = 0 means position only
    (`orientation` is not used).
    """
    dof = bend.shape[0]
    rows = 6 if lever > 0.0 else 3
    error, trial_error = np.empty(rows), np.empty(rows)
    jacobian, trial_jacobian = np.empty((rows, dof)), np.empty((rows, dof))
    gradient, step, trial = np.empty(dof), np.empty(dof), np.empty(dof)
    normal = np.empty((dof, dof))
    reach = 0.0
    for k in range(lengths.shape[0]):
        reach += lengths[k, 0] + 2.0 * lengths[k, 1]
    project_into(bend, limits, cables, first)
    cost = _errors_into(bend, lengths, target, orientation, lever, error, jacobian)
    damping, growth = 1e-4 * reach * reach, 2.0
    for _ in range(_MAX_ITERATIONS):
        for j in range(dof):
            gradient[j] = 0.0
            for i in range(rows):
                gradient[j] += jacobian[i, j] * error[i]
        left = _restrict_to_borders(bend, limits, cables, first, gradient, jacobian)
        if math.sqrt(cost) <= exact or left < 1e-13 * reach * reach:
            break
        for a in range(dof):
            step[a] = gradient[a]
            for b in range(a + 1):
                normal[a, b] = 0.0
                for i in range(rows):
                    normal[a, b] += jacobian[i, a] * jacobian[i, b]
            normal[a, a] += damping
        _solve_in_place(normal, step)
        size, predicted = 0.0, 0.0
        for j in range(dof):
            trial[j] = bend[j] + step[j]
            size = max(size, abs(step[j]))
            predicted += step[j] * (damping * step[j] + gradient[j])
        if size < 1e-14:
            break
        project_into(trial, limits, cables, first)
        trial_cost = _errors_into(
            trial, lengths, target, orientation, lever, trial_error, trial_jacobian
        )
        gain = (cost - trial_cost) / predicted
        if gain > 0.0:
            bend[:] = trial
            error[:] = trial_error
            jacobian[:, :] = trial_jacobian
            cost = trial_cost
            # Nielsen's rule: damping falls smoothly with the quality of the linear prediction.
            damping *= max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3)
            damping = max(damping, 1e-14 * reach * reach)
            growth = 2.0
        else:
            damping *= growth
            growth *= 2.0
            if damping > 1e12 * reach * reach:
                break
            # The Jacobian was restricted to the borders; restore it for the next attempt.
            cost = _errors_into(bend, lengths, target, orientation, lever, error, jacobian)
    return math.sqrt(cost)
