"""
Derivatives of the equations of motion: static equilibrium and linearisation for control.

The recursion is differentiated by complex steps (Squire & Trapp 1998). They are exact to rounding,
need no choice of a step size, and cost the square of the number of segments (n passes of a linear
recursion).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics, checked
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch, allocate_scratch
from softarm_ros.models.dynamics.recursion_kernels import (
    place_arm,
    replace_segment,
    residual,
    static_residual,
)

ComplexArray = NDArray[np.complex128]

_STEP = 1e-30


@kernel
def strain_tangent_into(
    body: Body,
    loads: Loads,
    q: ComplexArray,
    v: ComplexArray,
    a: ComplexArray,
    scratch: Scratch,
    column: ComplexArray,
    out: Array,
) -> None:
    """Write d residual / d strains (4 n, 4 n); complex work arrays (n, 4)."""
    n = q.shape[0]
    for j in range(4 * n):
        q[j // 4, j % 4] += 1j * _STEP
        place_arm(body, q, scratch)
        residual(body, loads, q, v, a, scratch, column)
        q[j // 4, j % 4] = q[j // 4, j % 4].real
        for i in range(4 * n):
            out[i, j] = column[i // 4, i % 4].imag / _STEP


@kernel
def static_tangent_into(
    body: Body,
    loads: Loads,
    q: ComplexArray,
    still: ComplexArray,
    scratch: Scratch,
    column: ComplexArray,
    out: Array,
) -> None:
    """Write d static_residual / d strains (4 n, 4 n); complex work arrays (n, 4)."""
    n = q.shape[0]
    place_arm(body, q, scratch)
    for k in range(n):
        for j in range(4):
            q[k, j] += 1j * _STEP
            replace_segment(body, q, k, scratch)
            static_residual(body, loads, q, still, scratch, column)
            q[k, j] = q[k, j].real
            for i in range(4 * n):
                out[i, 4 * k + j] = column[i // 4, i % 4].imag / _STEP
        replace_segment(body, q, k, scratch)


@kernel
def _rate_tangent_into(
    body: Body,
    loads: Loads,
    q: ComplexArray,
    v: ComplexArray,
    a: ComplexArray,
    scratch: Scratch,
    column: ComplexArray,
    out: Array,
) -> None:
    """Write d residual / d rates (4 n, 4 n); complex work arrays (n, 4)."""
    n = q.shape[0]
    place_arm(body, q, scratch)
    for j in range(4 * n):
        v[j // 4, j % 4] += 1j * _STEP
        residual(body, loads, q, v, a, scratch, column)
        v[j // 4, j % 4] = v[j // 4, j % 4].real
        for i in range(4 * n):
            out[i, j] = column[i // 4, i % 4].imag / _STEP


def residual_tangents(
    arm: ArmDynamics, strains: Array, rates: Array, accelerations: Array, loads: Loads
) -> tuple[Array, Array]:
    """Return d inverse_dynamics / d strains and / d rates, (4 n, 4 n) each."""
    n = arm.segments
    q, v, a = (np.array(x, np.complex128) for x in (strains, rates, accelerations))
    scratch, column = allocate_scratch(n, np.complex128), np.zeros((n, 4), np.complex128)
    by_strain, by_rate = np.empty((4 * n, 4 * n)), np.empty((4 * n, 4 * n))
    strain_tangent_into(arm.body, loads, q, v, a, scratch, column, by_strain)
    _rate_tangent_into(arm.body, loads, q, v, a, scratch, column, by_rate)
    return by_strain, by_rate


@dataclass(frozen=True)
class Equilibrium:
    """
    Static equilibrium under loads.

    Attributes
    ----------
    strains : (n, 4)
        Strains; those of the last iterate if not converged.
    residual : float
        Largest unbalanced generalised force, as the strain that it would cause [-, 1/m].
    converged, stable : bool
        Whether the forces balance; whether the stiffness (4 n, 4 n) is positive definite (for
        follower loads, its symmetric part), that is, the load is not beyond a buckling load.
    iterations : int
        Number of Newton iterations.
    stiffness : (4 n, 4 n)
        Derivative of the unbalanced forces by the strains.
    message : str
        Reason of failure or instability, otherwise empty.

    """

    strains: Array
    residual: float
    converged: bool
    stable: bool
    iterations: int
    stiffness: Array
    message: str = ''


def equilibrium(
    arm: ArmDynamics,
    loads: Loads,
    guess: ArrayLike | None = None,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 200,
) -> Equilibrium:
    """
    Return the static equilibrium, by Newton from a guess or by increasing the loads from rest.

    Parameters
    ----------
    arm : ArmDynamics
        The arm.
    loads : Loads
        Loads on the arm.
    guess : (n, 4), optional
        Strains to start from, such as those of a neighbouring load.
    tolerance : float
        Largest unbalanced strain, relative to the inverse rest length of a segment for curvatures
        (so that it bounds angles [rad] and stretches).
    max_iterations : int
        Largest total number of Newton iterations.

    """
    scale = _strain_scale(arm)
    iterations = 0
    if guess is not None:
        start = checked('guess', guess, (arm.segments, 4))
        found, q, left, iterations, K = _newton(arm, loads, start, tolerance, 30, scale)
        if found:
            return _equilibrium(q, left, True, iterations, K)
    q = arm.straight
    fraction, step, last_step = 0.0, 1.0, 1.0
    left, K = np.inf, np.eye(q.size)
    last = q
    while fraction < 1.0 and iterations < max_iterations:
        target = min(1.0, fraction + step)
        # Predict along the loads by the secant of the last two equilibria.
        begin = q + (q - last) * ((target - fraction) / last_step)
        share = _share(loads, target)
        found, trial, left, used, K = _newton(arm, share, begin, tolerance, 12, scale)
        iterations += used
        if found:
            last, q = q, trial
            last_step = target - fraction
            fraction, step = target, 1.6 * step
        else:
            step *= 0.35
            if step < 1e-5:
                break
    if fraction >= 1.0:
        return _equilibrium(q, left, True, iterations, K)
    return _equilibrium(
        q,
        left,
        False,
        iterations,
        K,
        f'followed the loads to {100.0 * fraction:.3g} % only: unstable beyond, or too large',
    )


def _equilibrium(
    q: Array, left: float, found: bool, iterations: int, K: Array, message: str = ''
) -> Equilibrium:
    stable = bool(np.isfinite(K).all() and eigvalsh(0.5 * (K + K.T))[0] > 0.0)
    if found and not stable:
        message = 'equilibrium is unstable: the stiffness is not positive definite'
    return Equilibrium(q, left, found, stable, iterations, K, message)


def _strain_scale(arm: ArmDynamics) -> Array:
    """Return the factors (n, 4) from generalised forces to dimensionless strains."""
    length = arm.body.length
    stiffness = np.diagonal(arm.body.stiffness, axis1=1, axis2=2)
    scale = 1.0 / (stiffness * length[:, None])
    scale[:, 1:] *= length[:, None]
    return scale


def _share(loads: Loads, fraction: float) -> Loads:
    """Return a fraction of the loads."""
    return loads._replace(
        gravity=loads.gravity * fraction,
        drive=loads.drive * fraction,
        wrench=loads.wrench * fraction,
        cable_tension=loads.cable_tension * fraction,
    )


def _newton(
    arm: ArmDynamics, loads: Loads, start: Array, tolerance: float, limit: int, scale: Array
) -> tuple[bool, Array, float, int, Array]:
    """Run damped Newton; return (converged, strains, residual, iterations, stiffness)."""
    n = arm.segments
    q = start.copy()
    still = np.zeros_like(q)
    zero = np.zeros((n, 4), np.complex128)
    scratch, column = allocate_scratch(n, np.complex128), zero.copy()
    K = np.eye(4 * n)
    r = arm.inverse_dynamics(q, still, still, loads)
    left = float(np.abs(r * scale).max())
    if not (q[:, 0] > -1.0).all():
        return False, q, left, 0, K
    fresh, slow = False, False
    for iteration in range(limit + 1):
        # Reuse a stiffness as long as its steps contract well: it costs more than they do.
        if not fresh and (iteration == 0 or slow or left <= tolerance):
            complex_q = q.astype(np.complex128)
            static_tangent_into(arm.body, loads, complex_q, zero, scratch, column, K)
            fresh = True
            try:
                inverse = np.linalg.inv(K)
            except LinAlgError:
                break
        if left <= tolerance:
            return True, q, left, iteration, K
        if iteration == limit:
            break
        change = -(inverse @ r.ravel()).reshape(n, 4)
        factor, new = 1.0, np.inf
        for _ in range(6):
            trial = q + factor * change
            if (trial[:, 0] > -1.0).all():
                r_trial = arm.inverse_dynamics(trial, still, still, loads)
                new = float(np.abs(r_trial * scale).max())
                if new < (1.0 - 0.1 * factor) * left or new <= tolerance:
                    break
            factor *= 0.5
        else:
            if fresh:
                break
            slow = True
            continue
        slow = new > 0.1 * left
        q, r, left, fresh = trial, r_trial, new, False
    return False, q, left, limit, K


@dataclass(frozen=True)
class LinearModel:
    """
    Linear model x' = A x + B command about a state, x = (strains, rates) flat (8 n,).

    Attributes
    ----------
    a, b : (8 n, 8 n), (8 n, m)
        System and input matrix.
    tip : (6, 8 n)
        Small displacement of the tip [m, rad] per state, base axes, linear rows first.
    drift : (8 n,)
        x' at the state itself, zero at an equilibrium.

    """

    a: Array
    b: Array
    tip: Array
    drift: Array


def linearise(
    arm: ArmDynamics,
    strains: ArrayLike,
    rates: ArrayLike,
    loads: Loads,
    inputs: ArrayLike | None = None,
) -> LinearModel:
    """
    Return the linear model about any state.

    Parameters
    ----------
    arm : ArmDynamics
        The arm.
    strains, rates : (n, 4)
        The state; it need not be an equilibrium.
    loads : Loads
        Loads on the arm.
    inputs : (n, 4, m), optional
        Drive resultants per command, as for `loads(drive=...)`. If not given, the commands are
        the four resultants of each segment (m = 4 n).

    Raises
    ------
    ModelError
        On a wrong shape, or a mass matrix that is not positive definite.

    """
    n = arm.segments
    q = checked('strains', strains, (n, 4))
    v = checked('rates', rates, (n, 4))
    acceleration = arm.forward_dynamics(q, v, loads)
    by_strain, by_rate = residual_tangents(arm, q, v, acceleration, loads)
    count = 4 * n if inputs is None else np.asarray(inputs).shape[-1]
    per_command = (
        np.eye(4 * n).reshape(n, 4, 4 * n)
        if inputs is None
        else checked('inputs', inputs, (n, 4, count))
    )
    forces = (arm.body.length[:, None, None] * per_command).reshape(4 * n, count)
    try:
        factor = cho_factor(arm.mass_matrix(q, loads))
    except LinAlgError as error:
        raise ModelError('mass matrix is not positive definite') from error
    size = 4 * n
    a, b = np.zeros((2 * size, 2 * size)), np.zeros((2 * size, count))
    a[:size, size:] = np.eye(size)
    a[size:, :size] = -cho_solve(factor, by_strain)
    a[size:, size:] = -cho_solve(factor, by_rate)
    b[size:] = cho_solve(factor, forces)
    tip = np.hstack([arm.tip_jacobian(q), np.zeros((6, size))])
    return LinearModel(a, b, tip, np.concatenate([v.ravel(), acceleration.ravel()]))
