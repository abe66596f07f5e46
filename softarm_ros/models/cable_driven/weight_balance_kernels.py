"""
Compiled rest of bending sections under weight: solves the free unknowns of `weight_kernels`.

The search reuses the Cholesky factor of a neighbour if there is one, and otherwise minimises the
energy by Newton's method. Cables that pull stiffen the sections against twist.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import solve_by_factor, solve_small
from softarm_ros.models.cable_driven.slack_kernels import holding_shares
from softarm_ros.models.cable_driven.weight_kernels import gradient_into, stiffness_of
from softarm_ros.models.cable_driven.weight_layout import Cables, Frames, Loads, Rod

HELD, UNSTABLE, NOT_FOUND = 0, 1, 2
_STEP = 1e-5  # rad, step of the differences of the gradient
_BALANCED = 1e-12  # tolerance of the free moments, in K_b / L
_MAX_STEP_RAD = 0.5
_ROUNDED = 1e3  # accepted multiple of the tolerance where no step improves the balance
_ROUNDS, _CHORD_ROUNDS = 100, 15


@kernel
def _hessian_into(
    q: Array,
    rod: Rod,
    load: Loads,
    frames: Frames,
    hessian: Array,
) -> None:
    """Write the Hessian (S u, S u), by central differences of the gradient."""
    count = q.shape[0]
    up, down, beside = np.empty(count), np.empty(count), q.copy()
    for a in range(count):
        beside[a] = q[a] + _STEP
        gradient_into(beside, rod, load, frames, up)
        beside[a] = q[a] - _STEP
        gradient_into(beside, rod, load, frames, down)
        beside[a] = q[a]
        for b in range(count):
            hessian[b, a] = (up[b] - down[b]) / (2.0 * _STEP)


@kernel
def _factorise(
    hessian: Array, free: IntArray, extra: float, diagonal: Array, factor: Array
) -> bool:
    """Write the Cholesky factor of the free block plus `extra` diagonal; False if indefinite."""
    n = free.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = 0.5 * (hessian[free[i], free[j]] + hessian[free[j], free[i]])
            if i == j:
                total += extra * diagonal[i]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
            else:
                if not total > 1e-9 * diagonal[i]:
                    return False
                factor[i, i] = math.sqrt(total)
    return True


@kernel
def _largest(gradient: Array, free: IntArray) -> float:
    """Return the largest moment among the free unknowns [N m]."""
    most = 0.0
    for i in range(free.shape[0]):
        most = max(most, abs(gradient[free[i]]))
    return most


@kernel
def _twist_of_cables(
    q: Array,
    gradient: Array,
    rod: Rod,
    cables: Cables,
    added: Array,
    slopes: Array,
) -> None:
    """
    Write the torsional stiffness that taut cables add, and add its moments to the gradient.

    A cable at distance r with tension T resists a twist tau with the moment T r^2 tau. The two
    cables next to the direction of the moment D pull. Writes `added` (S,) [N m^2] and its
    derivative `slopes` (S, 2) by D [m].
    """
    sections, _, bends, twists = rod
    unknowns = 2 * bends + twists
    for k in range(sections.shape[0]):
        mine = cables.paths[cables.first[k] : cables.first[k + 1]]
        dx, dy = gradient[unknowns * k], gradient[unknowns * k + 1]
        added[k], slopes[k, 0], slopes[k, 1] = 0.0, 0.0, 0.0
        if dx == 0.0 and dy == 0.0:
            continue
        i, j, share_i, share_j, _ = holding_shares(dx, dy, mine)
        square = mine[i, 0] * mine[i, 0] + mine[i, 1] * mine[i, 1]
        added[k] = square * (share_i + share_j)
        if i == j:
            slopes[k, 0], slopes[k, 1] = mine[i, 0], mine[i, 1]
        else:
            det = mine[i, 0] * mine[j, 1] - mine[i, 1] * mine[j, 0]
            slopes[k, 0] = square * (mine[j, 1] - mine[i, 1]) / det
            slopes[k, 1] = square * (mine[i, 0] - mine[j, 0]) / det
        for n in range(twists):
            a = unknowns * k + 2 * bends + n
            gradient[a] += added[k] * q[a] / (sections[k, 0] * (2 * n + 1))


@kernel
def settle_into(
    q: Array,
    rod: Rod,
    load: Loads,
    cables: Cables,
    near: Array,
    held: Array,
    stiffness: Array,
    factor: Array,
    slopes: Array,
) -> int:
    """
    Solve the free unknowns of `q` (S u,) at its bends b, starting from `q`; return the status.

    `near` (f, f) is the `factor` of the neighbour that supplied the start; the status is NOT_FOUND
    if steps with it do not converge. Without a neighbour, it is (0, 0). Writes `held` (2 S,),
    D = dV/db [N m]; `stiffness` (2 S, 2 S), dD/db with the free unknowns following; `factor`
    (f, f), the Cholesky factor of the free unknowns' stiffness; `slopes` (f, 2 S), the derivative
    of the free unknowns by b.
    """
    sections, _, bends, twists = rod
    count = q.shape[0]
    unknowns = 2 * bends + twists
    groups = count // unknowns
    f = count - 2 * groups
    free, diagonal = np.empty(f, np.int64), np.empty(f)
    i = 0
    for a in range(count):
        if a % unknowns >= 2:
            free[i] = a
            diagonal[i] = stiffness_of(rod, a // unknowns, a % unknowns)
            i += 1
    elements = load.forces.shape[0] - 1
    frames = Frames(
        np.empty((elements + 1, 3, 3)),
        np.empty((elements + 1, 3)),
        np.empty((elements, 3)),
        np.empty((elements, 3)),
    )
    gradient, step, trial = np.empty(count), np.empty(f), q.copy()
    hessian = np.empty((count, count))
    added, by_held = np.empty(groups), np.empty((groups, 2))
    stiffer = Rod(sections.copy(), rod.basis, bends, twists)
    limit = _BALANCED * sections[0, 2] / sections[0, 0]
    balanced = near.shape[0] == f and _chord(
        q, rod, load, cables, free, near, limit, frames, gradient, step, trial, added, by_held
    )
    if near.shape[0] == f and not balanced:
        return NOT_FOUND
    for _ in range(_ROUNDS):
        if balanced:
            break
        gradient_into(q, rod, load, frames, gradient)
        _twist_of_cables(q, gradient, rod, cables, added, by_held)
        for k in range(groups):
            stiffer.sections[k, 3] = sections[k, 3] + added[k]
        if not _descend(
            q, stiffer, load, free, diagonal, limit, frames, gradient, step, trial, hessian, factor
        ):
            return NOT_FOUND
        balanced = _chord(
            q,
            rod,
            load,
            cables,
            free,
            factor,
            limit,
            frames,
            gradient,
            step,
            trial,
            added,
            by_held,
        )
    if not balanced:
        return NOT_FOUND
    _hessian_into(q, rod, load, frames, hessian)
    for k in range(groups):
        for n in range(twists):
            a = unknowns * k + 2 * bends + n
            hessian[a, a] += added[k] / (sections[k, 0] * (2 * n + 1))
    if not _factorise(hessian, free, 0.0, diagonal, factor):
        return UNSTABLE
    for k in range(groups):  # the cables' pull grows with the moment they hold
        for n in range(twists):
            a = unknowns * k + 2 * bends + n
            share = q[a] / (sections[k, 0] * (2 * n + 1))
            for b in range(count):
                hessian[a, b] += share * (
                    by_held[k, 0] * hessian[unknowns * k, b]
                    + by_held[k, 1] * hessian[unknowns * k + 1, b]
                )
    matrix, column = np.empty((f, f)), np.empty(f)
    for b in range(2 * groups):
        at = unknowns * (b // 2) + b % 2
        held[b] = gradient[at]
        for i in range(f):
            column[i] = -hessian[free[i], at]
            for j in range(f):
                matrix[i, j] = hessian[free[i], free[j]]
        solve_small(matrix, column)
        slopes[:, b] = column
    for b in range(2 * groups):
        row = unknowns * (b // 2) + b % 2
        for d in range(2 * groups):
            total = hessian[row, unknowns * (d // 2) + d % 2]
            for i in range(f):
                total += hessian[row, free[i]] * slopes[i, d]
            stiffness[b, d] = total
    return HELD


@kernel
def _chord(
    q: Array,
    rod: Rod,
    load: Loads,
    cables: Cables,
    free: IntArray,
    factor: Array,
    limit: float,
    frames: Frames,
    gradient: Array,
    step: Array,
    trial: Array,
    added: Array,
    by_held: Array,
) -> bool:
    """Move `q` to the balance by steps with a fixed factor; on failure, keep it, return False."""
    trial[:] = q
    last = math.inf
    for _ in range(_CHORD_ROUNDS):
        gradient_into(trial, rod, load, frames, gradient)
        _twist_of_cables(trial, gradient, rod, cables, added, by_held)
        size = _largest(gradient, free)
        if size <= limit:
            q[:] = trial
            return True
        if not size < 0.7 * last:
            return False
        last = size
        for i in range(free.shape[0]):
            step[i] = gradient[free[i]]
        solve_by_factor(factor, step)
        for i in range(free.shape[0]):
            trial[free[i]] -= step[i]
    return False


@kernel
def _descend(
    q: Array,
    rod: Rod,
    load: Loads,
    free: IntArray,
    diagonal: Array,
    limit: float,
    frames: Frames,
    gradient: Array,
    step: Array,
    trial: Array,
    hessian: Array,
    factor: Array,
) -> bool:
    """Move `q` to the least energy at given stiffnesses; return True if found."""
    f = free.shape[0]
    energy = gradient_into(q, rod, load, frames, gradient)
    moment = load.moment
    conservative = moment[0] == 0.0 and moment[1] == 0.0 and moment[2] == 0.0
    for _ in range(_ROUNDS):
        size = _largest(gradient, free)
        _hessian_into(q, rod, load, frames, hessian)
        extra = 0.0
        while not _factorise(hessian, free, extra, diagonal, factor):
            extra = 4.0 * extra + 0.05
        if size <= limit:
            return True
        gradient_into(q, rod, load, frames, gradient)
        largest, downhill = 0.0, 0.0
        for i in range(f):
            step[i] = gradient[free[i]]
        solve_by_factor(factor, step)
        for i in range(f):
            largest = max(largest, abs(step[i]))
            downhill += step[i] * gradient[free[i]]
        share = min(1.0, _MAX_STEP_RAD / largest)
        # A moment has no energy, and near the minimum the energy is rounded: use the gradient.
        flat = not conservative or downhill <= 1e-10 * limit / _BALANCED
        moved = False
        for _ in range(30):
            trial[:] = q
            for i in range(f):
                trial[free[i]] -= share * step[i]
            there = gradient_into(trial, rod, load, frames, gradient)
            if flat:
                moved = _largest(gradient, free) < size
            else:
                moved = there <= energy - 1e-4 * share * downhill
            if moved:
                q[:] = trial
                energy = there
                break
            share *= 0.5
        if not moved:
            return size <= _ROUNDED * limit
    return False
