"""
Compiled implicit time steps: generalised-alpha with error control, solved by Newton iterations.

Chung & Hulbert (1993) in the form of Arnold & Bruels (2007): the equations of motion hold exactly
at the end of every step, and a filter gives the algorithmic acceleration. spectral_radius = 1 is
the trapezoidal rule (no numerical damping); smaller values damp motion that the step cannot
resolve. The Newton matrix has mass, drag, damping and stiffness, but not the change of gravity and
inertia forces as the arm turns. It therefore factorises in linear time, and the iterations still
contract quickly because the neglected terms are never stiff. Newton corrections and errors are
measured as displacement of the nodes [m].
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.dynamics.articulated_kernels import factorise, solve
from softarm_ros.models.dynamics.energy_kernels import node_twists
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch
from softarm_ros.models.dynamics.recursion_kernels import place_arm, residual

REACHED, TOO_SMALL, TOO_MANY = 0, 1, 2
MAX_ITERATIONS = 8
# Number of steps after which the contraction of the iterations is measured again.
MAX_AGE = 8
# Newton iterations stop when corrections are below this share of the error tolerance. The error of
# a correction also enters the velocity and grows over a swing, so the share must be well below
# omega h.
NEWTON_SHARE = 0.01


@kernel
def accelerations_into(
    body: Body, loads: Loads, q: Array, v: Array, scratch: Scratch, work: Array, out: Array
) -> bool:
    """Write the accelerations (n, 4) of a state; False if the mass matrix is not positive."""
    place_arm(body, q, scratch)
    out[:] = 0.0
    residual(body, loads, q, v, out, scratch, work)
    if not factorise(body, loads, 0.0, 0.0, 0.0, scratch):
        return False
    for k in range(q.shape[0]):
        for j in range(4):
            work[k, j] = -work[k, j]
    solve(body, scratch, work, out)
    return True


@kernel
def solve_mass_into(
    body: Body, loads: Loads, q: Array, right: Array, scratch: Scratch, out: Array
) -> bool:
    """Write M^-1 times forces (n, 4); False if the mass matrix is not positive."""
    place_arm(body, q, scratch)
    if not factorise(body, loads, 0.0, 0.0, 0.0, scratch):
        return False
    solve(body, scratch, right, out)
    return True


@kernel
def _displacement(
    body: Body, scratch: Scratch, strains: Array, factor: float, out: Array
) -> float:
    """Return the largest displacement [m] of a node by small strains times `factor`."""
    node_twists(body, strains, scratch, out)
    largest = 0.0
    for k in range(out.shape[0]):
        x, y, z = out[k, 0], out[k, 1], out[k, 2]
        square = x * x + y * y + z * z
        if not square <= largest:  # also true of NaN, which is passed on
            largest = square
    return abs(factor) * math.sqrt(largest)


@kernel
def advance(
    body: Body,
    loads: Loads,
    state: Array,
    duration: float,
    step: float,
    max_step: float,
    tolerance: float,
    radius: float,
    contraction: float,
    frozen: Scratch,
    moving: Scratch,
    work: Array,
    twists: Array,
    max_steps: int,
) -> tuple[int, float, float, float, int, int, int]:
    """
    Integrate `state` over `duration` [s] in place.

    Parameters
    ----------
    body, loads : Body, Loads
        The arm, and the loads on it over the whole duration.
    duration : float
        Time to integrate over [s].
    state : (5, n, 4)
        Strains, rates, accelerations, algorithmic accelerations, jerk (for prediction).
    step, max_step : float
        First step to try, and longest step allowed [s].
    tolerance : float
        Largest local error of any node per step [m].
    radius : float
        Spectral radius at infinity, 0..1.
    contraction : float
        Newton contraction per step^2 [1/s^2] measured before, negative if unknown.
    frozen, moving : Scratch
        Scratch space of the factorised and of the current shape.
    work, twists : (5, n, 4), (n, 6)
        Scratch space.
    max_steps : int
        Largest number of steps and rejections together.

    Returns
    -------
    status, time reached [s], next step [s], contraction, steps, rejected steps, iterations

    """
    n = state.shape[1]
    q, v, a, b, jerk = state[0], state[1], state[2], state[3], state[4]
    q1, v1, a1, r, delta = work[0], work[1], work[2], work[3], work[4]
    alpha_m = (2.0 * radius - 1.0) / (radius + 1.0)
    alpha_f = radius / (radius + 1.0)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    eta = (1.0 - alpha_f) / (1.0 - alpha_m)
    error_constant = abs(beta + 0.5 * (alpha_m - alpha_f) - 1.0 / 6.0)
    _restart(body, loads, state, tolerance, frozen, r, delta, twists, step)
    time, steps, rejected, iterations = 0.0, 0, 0, 0
    smallest = 1e-9 * duration
    known, age = contraction >= 0.0, MAX_AGE
    status = REACHED
    while duration - time > smallest:
        if steps + rejected >= max_steps:
            status = TOO_MANY
            break
        step = min(step, max_step)
        left = duration - time
        h = left / math.ceil(left / step * (1.0 - 1e-9))
        h2 = h * h
        for k in range(n):
            for j in range(4):
                guess = a[k, j] + h * jerk[k, j]
                filtered = (1.0 - alpha_f) * guess + alpha_f * a[k, j] - alpha_m * b[k, j]
                filtered /= 1.0 - alpha_m
                a1[k, j] = guess
                v1[k, j] = v[k, j] + h * ((1.0 - gamma) * b[k, j] + gamma * filtered)
                q1[k, j] = q[k, j] + h * v[k, j] + h2 * ((0.5 - beta) * b[k, j] + beta * filtered)
        place_arm(body, q1, frozen)
        residual(body, loads, q1, v1, a1, frozen, r)
        good = factorise(body, loads, h * gamma * eta, h * gamma * eta, h2 * beta * eta, frozen)
        converged, last = False, 0.0
        for iteration in range(MAX_ITERATIONS):
            if not good:
                break
            iterations += 1
            if iteration > 0:
                place_arm(body, q1, moving)
                residual(body, loads, q1, v1, a1, moving, r)
            solve(body, frozen, r, delta)
            for k in range(n):
                for j in range(4):
                    a1[k, j] -= delta[k, j]
                    v1[k, j] -= h * gamma * eta * delta[k, j]
                    q1[k, j] -= h2 * beta * eta * delta[k, j]
            moved = _displacement(body, frozen, delta, h2 * beta * eta, twists)
            if not math.isfinite(moved):
                break
            if iteration > 0:
                rate = moved / max(last, 1e-300)
                if rate > 0.7 and moved > 1e-3 * NEWTON_SHARE * tolerance:
                    break
                contraction = max(rate / h2, 0.5 * contraction if known else 0.0)
                known, age = True, 0
            last = moved
            # The contraction of the simplified iteration grows with h^2.
            rate = contraction * h2
            if known and age < MAX_AGE and rate < 0.5:
                converged = moved * rate / (1.0 - rate) <= NEWTON_SHARE * tolerance
            elif iteration > 0:
                converged = moved <= NEWTON_SHARE * tolerance
            if converged:
                break
        if not converged:
            rejected += 1
            known = False
            step = 0.25 * h
            if step < smallest:
                status = TOO_SMALL
                break
            continue
        # Local error of the positions: error_constant h^3 q''', from the accelerations.
        for k in range(n):
            for j in range(4):
                delta[k, j] = (1.0 - alpha_f) * a1[k, j] + alpha_f * a[k, j] - alpha_m * b[k, j]
                delta[k, j] = delta[k, j] / (1.0 - alpha_m) - b[k, j]
        error = _displacement(body, frozen, delta, error_constant * h2, twists)
        ratio = 0.9 * (tolerance / max(error, 1e-300)) ** (1.0 / 3.0)
        if error > tolerance:
            rejected += 1
            step = h * max(0.25, ratio)
            if step < smallest:
                status = TOO_SMALL
                break
            continue
        for k in range(n):
            for j in range(4):
                jerk[k, j] = (a1[k, j] - a[k, j]) / h
                q[k, j], v[k, j], a[k, j] = q1[k, j], v1[k, j], a1[k, j]
                b[k, j] += delta[k, j]
        time += h
        steps += 1
        age += 1
        # Double the step at most; a step cut short by the end of the interval sets no limit.
        step = max(h * min(max(ratio, 0.5), 2.0), min(step, h * ratio))
    return status, time, step, contraction if known else -1.0, steps, rejected, iterations


@kernel
def _restart(
    body: Body,
    loads: Loads,
    state: Array,
    tolerance: float,
    scratch: Scratch,
    r: Array,
    delta: Array,
    twists: Array,
    step: float,
) -> None:
    """Replace the stored accelerations by those under new loads, if they differ."""
    q, v, a, b, jerk = state[0], state[1], state[2], state[3], state[4]
    place_arm(body, q, scratch)
    residual(body, loads, q, v, a, scratch, r)
    if not factorise(body, loads, 0.0, 0.0, 0.0, scratch):
        return
    solve(body, scratch, r, delta)
    moved = _displacement(body, scratch, delta, 0.25 * step * step, twists)
    if moved > NEWTON_SHARE * tolerance:
        for k in range(q.shape[0]):
            for j in range(4):
                jerk[k, j] = 0.0
                a[k, j] -= delta[k, j]
                b[k, j] -= delta[k, j]
