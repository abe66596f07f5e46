"""
Compiled Newton methods for the least energy of a rod of quaternion nodes.

Two iterations share the same derivatives. One solves the conditions of the constrained minimum
(quadratic convergence from a good start). The other minimises the energy plus a spring that pulls
the tip to its target (a descent that converges from any start, including the straight pose). Both
factorise the banded Hessian H and the Schur complement of the tip constraints. The pivots show
whether the energy is convex along the constraints.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.banded_kernels import (
    banded_ldl_into,
    banded_solve_into,
    dense_ldl_solve_into,
)
from softarm_ros.models.minimum_energy.kernels import (
    derivatives_into,
    elastic_energy,
    positions_into,
    relative,
    retract_into,
    times_unit,
    tip_jacobian_into,
)
from softarm_ros.models.minimum_energy.muscle_kernels import (
    Springs,
    add_muscle_forces,
    add_muscle_terms,
    muscle_energy,
    muscle_vectors_into,
)

CONVERGED, NOT_CONVERGED, UNSTABLE = 0, 1, 2
_MAX_STEP = 0.35  # of |u|: 40 degrees
_GRADIENT_TOLERANCE = 1e-10  # of EI / L
_POSITION_TOLERANCE = 1e-12  # of L
_ROUNDING = 1e-14  # of muscle stiffness times L^2: rounding error of stiff muscles' gradients


@kernel(allocates=False)
def constraint_into(q: Array, tip: Array, target: Array, attitude: Array, c: Array) -> None:
    """Write r_n - target [m] and, for 6 rows, 2 vec(attitude* q_n) of the shorter rotation."""
    rows = c.size
    if rows == 0:
        return
    for k in range(3):
        c[k] = tip[k] - target[k]
    if rows == 6:
        r0, r1, r2, r3 = relative(attitude, q[q.shape[0] - 1])
        sign = 2.0 if r0 >= 0.0 else -2.0
        c[3], c[4], c[5] = sign * r1, sign * r2, sign * r3


@kernel(allocates=False)
def potential(
    q: Array,
    ds: float,
    stiffness: Array,
    loads: Array,
    target: Array,
    attitude: Array,
    multipliers: Array,
    spring: Array,
    anchors: Array,
    springs: Springs,
    r: Array,
    vectors: Array,
    c: Array,
) -> float:
    """Return elastic + load + muscle energy - multipliers . c + spring . c^2 / 2 [J]."""
    positions_into(q, ds, r)
    energy = elastic_energy(q, ds, stiffness)
    for i in range(loads.shape[0]):
        for k in range(3):
            energy -= loads[i, k] * (r[i + 1, k] - r[i, k])
    muscle_vectors_into(q, r, anchors, vectors)
    energy += muscle_energy(vectors, springs)
    constraint_into(q, r[r.shape[0] - 1], target, attitude, c)
    for k in range(c.size):
        energy += (0.5 * spring[k] * c[k] - multipliers[k]) * c[k]
    return energy


@kernel(allocates=False)
def system_into(
    q: Array,
    ds: float,
    stiffness: Array,
    loads: Array,
    attitude: Array,
    effective: Array,
    anchors: Array,
    vectors: Array,
    springs: Springs,
    forces: Array,
    gradient: Array,
    band: Array,
    border: Array,
    by_lengths: Array,
    second: bool,
) -> None:
    """
    Write gradient and Hessian at effective multipliers (rows,), and the constraint Jacobian.

    `border` (3 n, rows) receives dc/du transposed. Call `potential` first; it writes `vectors`.
    """
    n = q.shape[0] - 1
    rows = effective.size
    for i in range(n):
        for k in range(3):
            forces[i, k] = loads[i, k] + (effective[k] if rows > 0 else 0.0)
    add_muscle_forces(vectors, springs, forces)
    derivatives_into(q, ds, stiffness, forces, gradient, band, second)
    add_muscle_terms(q, ds, anchors, vectors, springs, gradient, band, by_lengths, second)
    if rows > 0:
        tip_jacobian_into(q, ds, border)
    if rows == 6:
        border[:, 3:] = 0.0
        r0, r1, r2, r3 = relative(attitude, q[n])
        sign = 2.0 if r0 >= 0.0 else -2.0
        turning = sign * (effective[3] * r1 + effective[4] * r2 + effective[5] * r3)
        for k in range(3):
            _, x, y, z = times_unit(r0, r1, r2, r3, k)
            border[3 * n - 3 + k, 3] = sign * x
            border[3 * n - 3 + k, 4] = sign * y
            border[3 * n - 3 + k, 5] = sign * z
            for j in range(3):
                gradient[3 * n - 3 + k] -= effective[3 + j] * border[3 * n - 3 + k, 3 + j]
            if second:
                band[3 * n - 3 + k, 0] += turning


@kernel(allocates=False)
def newton_step_into(
    band: Array,
    gradient: Array,
    border: Array,
    compliance: Array,
    defect: Array,
    columns: Array,
    schur: Array,
    step: Array,
    change: Array,
) -> bool:
    """
    Solve [H, -C'; C, compliance] [step; change] = [-gradient; -defect]; factorises `band`.

    Return whether H is convex along the constraints (with compliance: H + C' C / compliance).
    """
    size, rows = border.shape
    negative = banded_ldl_into(band)
    if negative < 0:
        return False
    for i in range(size):
        columns[i, rows] = gradient[i]
        for k in range(rows):
            columns[i, k] = border[i, k]
    banded_solve_into(band, columns)
    for k in range(rows):
        for j in range(rows):
            value = 0.0
            for i in range(size):
                value += border[i, k] * columns[i, j]
            schur[k, j] = value
        schur[k, k] += compliance[k]
        value = -defect[k]
        for i in range(size):
            value += border[i, k] * columns[i, rows]
        change[k] = value
    negative_schur, neutral = dense_ldl_solve_into(schur, change)
    for i in range(size):
        value = -columns[i, rows]
        for k in range(rows):
            value += columns[i, k] * change[k]
        step[i] = value
    return negative_schur <= negative <= negative_schur + neutral


@kernel
def stiffest(springs: Springs) -> float:
    """Return the largest stiffness [N/m] without that of the gas; 0 without muscles."""
    return springs.stiffness.max() if springs.stiffness.size > 0 else 0.0


@kernel(allocates=False)
def longest(step: Array) -> float:
    """Return the largest |u| of a step (3 n,)."""
    largest = 0.0
    for i in range(step.size // 3):
        x, y, z = step[3 * i], step[3 * i + 1], step[3 * i + 2]
        largest = max(largest, x * x + y * y + z * z)
    return math.sqrt(largest)


@kernel
def constrained_newton(
    q: Array,
    ds: float,
    stiffness: Array,
    loads: Array,
    target: Array,
    attitude: Array,
    multipliers: Array,
    anchors: Array,
    springs: Springs,
    r: Array,
    vectors: Array,
    band: Array,
    by_lengths: Array,
    step: Array,
    gradient_at_start: float,
    max_iterations: int,
) -> tuple[int, int, float, float]:
    """
    Find the constrained minimum by Newton; `q` and `multipliers` (rows,) are start and result.

    On return with status CONVERGED, `r` (n + 1, 3), `vectors` (modules, 3, 3) and `by_lengths`
    (3 n, 3 modules) are those of the result, and `band` (3 n, w + 1) is its factorised Hessian.
    If the largest gradient at the start [N m] is given and not yet small enough, `step` (3 n,) is
    taken as the first step, which `descend` has computed without constraints; else pass 0.

    Return status, iterations, largest gradient [N m] and largest constraint defect [m or rad].
    """
    n = q.shape[0] - 1
    rows = multipliers.size
    size = 3 * n
    length = n * ds
    forces, gradient, border = np.empty((n, 3)), np.empty(size), np.empty((size, rows))
    columns, schur, change = np.empty((size, rows + 1)), np.empty((rows, rows)), np.empty(rows)
    c, zero = np.empty(rows), np.zeros(rows)
    moved = q.copy()
    limit = _GRADIENT_TOLERANCE * stiffness[0] / length
    limit += _ROUNDING * length * length * stiffest(springs)
    worst_gradient, worst_defect = np.inf, np.inf
    for iteration in range(max_iterations):
        if iteration > 0 or gradient_at_start <= limit:
            potential(
                q, ds, stiffness, loads, target, attitude, multipliers, zero, anchors, springs,
                r, vectors, c,
            )  # fmt: skip
            system_into(
                q, ds, stiffness, loads, attitude, multipliers, anchors, vectors, springs,
                forces, gradient, band, border, by_lengths, True,
            )  # fmt: skip
            worst_gradient, worst_defect = np.abs(gradient).max(), 0.0
            for k in range(rows):
                worst_defect = max(worst_defect, abs(c[k]))
            if not (math.isfinite(worst_gradient) and math.isfinite(worst_defect)):
                return NOT_CONVERGED, iteration, worst_gradient, worst_defect
            stable = newton_step_into(
                band, gradient, border, zero, c, columns, schur, step, change
            )
            if worst_gradient <= limit and worst_defect <= _POSITION_TOLERANCE * max(length, 1.0):
                status = CONVERGED if stable else UNSTABLE
                return status, iteration, worst_gradient, worst_defect
        scale = longest(step)
        if not math.isfinite(scale):
            return NOT_CONVERGED, iteration, worst_gradient, worst_defect
        scale = 1.0 if scale <= _MAX_STEP else _MAX_STEP / scale
        retract_into(q, step, scale, moved)
        q[:, :] = moved
        for k in range(rows):
            multipliers[k] += scale * change[k]
    return NOT_CONVERGED, max_iterations, worst_gradient, worst_defect


@kernel
def descend(
    q: Array,
    ds: float,
    stiffness: Array,
    loads: Array,
    target: Array,
    attitude: Array,
    multipliers: Array,
    spring: Array,
    anchors: Array,
    springs: Springs,
    width: int,
    step: Array,
    tolerance: float,
    max_iterations: int,
) -> tuple[int, int, float]:
    """
    Minimise the energy with springs (rows,) [N/m, N m] on the constraints; `q` is changed.

    On return `multipliers` are the effective multipliers: the wrench that acts on the tip. Return
    status, iterations and largest gradient [N m]. Converged means a gradient below tolerance
    EI / L at a convex point; `step` (3 n,) is then Newton's step from there.
    """
    n = q.shape[0] - 1
    rows = multipliers.size
    size = 3 * n
    length = n * ds
    r, vectors = np.empty((n + 1, 3)), np.empty(anchors.shape)
    forces, gradient, band = np.empty((n, 3)), np.empty(size), np.empty((size, width + 1))
    factor = np.empty((size, width + 1))
    border, by_lengths = np.empty((size, rows)), np.empty((size, 3 * anchors.shape[0]))
    columns, schur = np.empty((size, rows + 1)), np.empty((rows, rows))
    change = np.empty(rows)
    c, zero, effective = np.empty(rows), np.zeros(rows), np.empty(rows)
    compliance = 1.0 / spring
    moved = q.copy()
    limit = tolerance * stiffness[0] / length
    limit += _ROUNDING * length * length * stiffest(springs)
    first_shift = stiffness[0] * ds / (length * length)
    status, used, worst_gradient = NOT_CONVERGED, max_iterations, np.inf
    energy = potential(
        q, ds, stiffness, loads, target, attitude, multipliers, spring, anchors, springs,
        r, vectors, c,
    )  # fmt: skip
    for k in range(rows):
        effective[k] = multipliers[k] - spring[k] * c[k]
    for iteration in range(max_iterations):
        system_into(
            q, ds, stiffness, loads, attitude, effective, anchors, vectors, springs,
            forces, gradient, band, border, by_lengths, True,
        )  # fmt: skip
        shift = 0.0
        convex = False
        for attempt in range(12):
            factor[:, :] = band
            for i in range(size):
                factor[i, 0] += shift
            convex = newton_step_into(
                factor, gradient, border, compliance, zero, columns, schur, step, change
            )
            if convex:
                break
            shift = first_shift if attempt == 0 else 8.0 * shift
        if not convex:
            break
        worst_gradient = np.abs(gradient).max()
        if worst_gradient <= limit and shift == 0.0:
            status, used = CONVERGED, iteration
            break
        scale = longest(step)
        scale = 1.0 if scale <= _MAX_STEP else _MAX_STEP / scale
        slope = 0.0
        for i in range(size):
            slope += gradient[i] * step[i]
        accepted = False
        for _ in range(30):
            retract_into(q, step, scale, moved)
            trial = potential(
                moved, ds, stiffness, loads, target, attitude, multipliers, spring, anchors,
                springs, r, vectors, c,
            )  # fmt: skip
            if trial <= energy + 1e-4 * scale * slope + 1e-14 * abs(energy):
                accepted = True
                break
            scale *= 0.5
        if not accepted:
            break
        q[:, :] = moved
        energy = trial
        for k in range(rows):
            effective[k] = multipliers[k] - spring[k] * c[k]
    multipliers[:] = effective
    return status, used, worst_gradient
