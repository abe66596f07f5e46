"""Tensions for a wanted tip pose, or for given cable lengths, of a Cosserat rod arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from softarm_ros.geometry.poses import displacement, pose
from softarm_ros.models.arm_model import ZERO3, Array, ModelError, Vector3
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.cosserat.state import RodState

# Weight of the size of the tensions against the miss of the tip, relative to the largest gain:
# small enough to move the tip by less than the tolerance, large enough to choose the least norm.
NORM_WEIGHT = 1e-6


@dataclass(frozen=True)
class TensionSolution:
    """Tensions (cables,) [N], the state they lead to, and how well that is the one wanted."""

    tensions: Array
    state: RodState
    residual: float
    converged: bool
    message: str = ''


def tensions_of_pose(
    rod: CosseratRod,
    position: Vector3,
    orientation: Array | None = None,
    guess: Array | None = None,
    tip_force: Vector3 = ZERO3,
    tip_moment: Vector3 = ZERO3,
    tolerance_m: float = 1e-7,
    max_iterations: int = 60,
) -> TensionSolution:
    """
    Return the least-norm tensions within 0 and their limits that bring the tip to a pose.

    Levenberg-Marquardt with the exact Jacobian; every step is a bounded least-squares problem
    (scipy). Of several sets of tensions with the same tip, the one of least norm is approached.

    Parameters
    ----------
    rod
        The arm.
    position : (3,)
        Wanted tip [m], base frame.
    orientation : (3, 3)
        Wanted attitude; without it any is good.
    guess : (cables,)
        Tensions to start from.
    tip_force, tip_moment : (3,)
        Load at the tip, base frame [N, N m].
    tolerance_m : float
        Miss of the tip [m] (attitude: tolerance over half the arm's length, [rad]).
    max_iterations : int
        Steps of Levenberg-Marquardt.

    """
    limits = np.array([cable.max_tension_N for cable in rod.config.cables])
    if not len(limits):
        raise ModelError('inverse of an arm without cables')
    target = pose(np.eye(3) if orientation is None else orientation, position)
    if not np.isfinite(target).all():
        raise ValueError(f'target pose {target.tolist()} is not finite')
    lever = 0.5 * rod.rest_length_m
    weights = np.array([1.0] * 3 + ([] if orientation is None else [lever] * 3))
    rows = len(weights)
    tensions = np.clip(np.zeros(len(limits)) if guess is None else guess, 0.0, limits)
    state = rod.solve(tensions, tip_force, tip_moment)
    if not state.stable:
        return TensionSolution(tensions, state, np.inf, False, f'at the start: {state.message}')
    error = weights * displacement(state.tip, target)[:rows]
    damping = 0.0
    message = 'the tip does not get nearer: out of reach, or a limit of the tensions'
    for _ in range(max_iterations):
        jacobian = weights[:, None] * rod.derivatives().tip_by_tension[:rows]
        gain = float(np.linalg.norm(jacobian, 2))
        if gain < 1e-12:
            message = 'no cable moves the tip: singular routing'
            break
        norm = NORM_WEIGHT * gain
        merit = error @ error + (norm**2) * tensions @ tensions
        moved = False
        for _ in range(12):
            identity = np.eye(len(limits))
            step = lsq_linear(
                np.vstack([jacobian, norm * identity, damping * gain * identity]),
                np.concatenate([error, -norm * tensions, np.zeros(len(limits))]),
                bounds=(-tensions - 1e-15, limits - tensions + 1e-15),
                method='bvls',
            ).x
            trial = np.clip(tensions + step, 0.0, limits)
            candidate = rod.solve(trial, tip_force, tip_moment, warm=True, search=False)
            if candidate.stable:
                miss = weights * displacement(candidate.tip, target)[:rows]
                if miss @ miss + (norm**2) * trial @ trial < merit:
                    moved = True
                    break
            else:
                rod.solve(tensions, tip_force, tip_moment)
            damping = max(4.0 * damping, 1e-3)
        if not moved:
            rod.solve(tensions, tip_force, tip_moment)
            break
        change = float(np.linalg.norm(trial - tensions))
        tensions, state, error = trial, candidate, miss
        damping = 0.05 * damping if damping > 1e-4 else 0.0
        if change < 1e-7 * max(1.0, float(np.linalg.norm(tensions))):
            break
        if float(np.linalg.norm(error)) <= tolerance_m:
            break
    residual = float(np.linalg.norm(error))
    if residual > tolerance_m:
        return TensionSolution(tensions, state, residual, False, message)

    def miss_of(state: RodState) -> Array:
        return weights * displacement(state.tip, target)[:rows]

    def solve(tensions: Array) -> RodState:
        return rod.solve(tensions, tip_force, tip_moment, warm=True, search=False)

    return _least_norm(rod, state, limits, weights, miss_of, solve, tolerance_m)


def _bounded_step(
    jacobian: Array, error: Array, towards: Array, room: tuple[Array, Array]
) -> Array:
    """Return the step (cables,) that removes `error` and else comes as near to `towards`."""
    norm = NORM_WEIGHT * max(float(np.linalg.norm(jacobian, 2)), 1e-12)
    return lsq_linear(
        # Scaled so that the solver's tolerance sees the norm too.
        np.vstack([jacobian / norm, np.eye(len(towards))]),
        np.concatenate([error / norm, towards]),
        bounds=(room[0] - 1e-15, room[1] + 1e-15),
        method='bvls',
    ).x


def _least_norm(
    rod: CosseratRod,
    state: RodState,
    limits: Array,
    weights: Array,
    miss_of: Callable[[RodState], Array],
    solve: Callable[[Array], RodState],
    tolerance_m: float,
) -> TensionSolution:
    """Slide along the tensions that hold the tip where it is, towards the least norm of them."""
    rows = len(weights)

    def gains() -> Array:
        return weights[:, None] * rod.derivatives().tip_by_tension[:rows]

    for _ in range(20):
        tensions = state.tensions
        slide = _bounded_step(gains(), miss_of(state), -tensions, (-tensions, limits - tensions))
        size = float(np.linalg.norm(tensions))
        if np.linalg.norm(slide) < 1e-6 * max(size, 1e-3):
            break
        fraction, better = 1.0, None
        while fraction > 0.02 and better is None:
            trial = np.clip(tensions + fraction * slide, 0.0, limits)
            for _ in range(4):
                # Back to the target by the smallest change.
                candidate = solve(trial)
                if not candidate.stable:
                    break
                miss = miss_of(candidate)
                if np.linalg.norm(miss) <= tolerance_m:
                    if np.linalg.norm(trial) < size * (1.0 - 1e-9):
                        better = candidate
                    break
                back = _bounded_step(gains(), miss, 0.0 * trial, (-trial, limits - trial))
                trial = np.clip(trial + back, 0.0, limits)
            if better is None:
                fraction *= 0.4
                solve(tensions)
        if better is None:
            break
        state = better
    return TensionSolution(state.tensions, state, float(np.linalg.norm(miss_of(state))), True)


def tensions_of_lengths(
    rod: CosseratRod,
    contractions: Array,
    guess: Array | None = None,
    tip_force: Vector3 = ZERO3,
    tip_moment: Vector3 = ZERO3,
    tolerance_m: float = 1e-9,
    max_iterations: int = 60,
) -> TensionSolution:
    """
    Return the tensions of inextensible cables wound up by `contractions` (cables,) [m].

    A taut cable's path is shorter than at rest by just its contraction; a slack one's by more,
    and its tension is zero: a complementarity problem, solved by Newton's method on bounded
    quadratic programmes (scipy) with the symmetric derivative of contraction by tension.

    `residual` [m] is the worst violation; the tensions of a shear-rigid rod with more cables than
    freedoms are not unique, and lengths that do not fit together are reported as unreached.
    """
    wanted = np.asarray(contractions, dtype=np.float64)
    limits = np.array([cable.max_tension_N for cable in rod.config.cables])
    if wanted.shape != limits.shape or not np.isfinite(wanted).all():
        raise ValueError(f'contractions {wanted.tolist()}: expected {len(limits)} finite values')
    tensions = np.clip(np.zeros(len(limits)) if guess is None else guess, 0.0, limits)

    def violation(state: RodState) -> tuple[Array, float]:
        excess = state.contractions - wanted
        taut = state.tensions > 0.0
        return excess, float(np.max(np.where(taut, np.abs(excess), np.maximum(-excess, 0.0))))

    state = rod.solve(tensions, tip_force, tip_moment)
    message = 'the lengths do not fit together, or a limit of the tensions'
    if not state.stable:
        return TensionSolution(tensions, state, np.inf, False, f'at the start: {state.message}')
    excess, worst = violation(state)
    for _ in range(max_iterations):
        if worst <= tolerance_m:
            return TensionSolution(tensions, state, worst, True)
        softness = rod.derivatives().contraction_by_tension
        softness = 0.5 * (softness + softness.T)
        scale = float(np.trace(softness))
        if not scale > 0.0:
            message = 'no cable changes its length: singular routing'
            break
        values, vectors = np.linalg.eigh(softness)
        values = np.maximum(values, 1e-10 * scale)
        root = np.sqrt(values)[:, None] * vectors.T
        step = lsq_linear(
            root,
            -(vectors.T @ excess) / np.sqrt(values),
            bounds=(-tensions - 1e-15, limits - tensions + 1e-15),
            method='bvls',
        ).x
        fraction = 1.0
        for _ in range(10):
            trial = np.clip(tensions + fraction * step, 0.0, limits)
            trial[trial < 1e-12] = 0.0
            candidate = rod.solve(trial, tip_force, tip_moment, warm=True, search=False)
            if candidate.stable:
                new_excess, new_worst = violation(candidate)
                # A cable going slack or taut changes the measure: allow it to rise a little.
                if new_worst < 2.0 * worst or fraction < 0.02:
                    break
            else:
                rod.solve(tensions, tip_force, tip_moment)
            fraction *= 0.4
        else:
            rod.solve(tensions, tip_force, tip_moment)
            break
        tensions, state, excess, worst = trial, candidate, new_excess, new_worst
    return TensionSolution(tensions, state, worst, False, message)
