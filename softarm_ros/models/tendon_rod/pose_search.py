"""Tensions for a wanted tip: bounded Levenberg-Marquardt around any tendon model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import Array, ModelError
from softarm_ros.models.tendon_rod.tension_choice import bounded_least_squares

# Of the distance from the pretension against the miss of the tip: moves the tip by some 1e-7 m.
_NORM_WEIGHT = 3e-4
_MAX_ITERATIONS = 60
_MAX_TRIES = 12
_STEP_N = 1e-6

PoseAndJacobian = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class PoseSearch:
    """Tensions (m,) [N], by how much they miss the pose [m], and whether that is a solution."""

    tensions: Array
    residual_m: float
    converged: bool
    message: str


def search_pose(
    pose_and_jacobian: PoseAndJacobian,
    target: Array,
    with_orientation: bool,
    start: Array,
    pretension: Array,
    upper: Array,
    lever_m: float,
    tolerance_m: float = 1e-6,
) -> PoseSearch:
    """
    Return the tensions within pretension..upper that bring the tip to a pose.

    Of all that do, the nearest to the pretension is approached.

    Parameters
    ----------
    pose_and_jacobian
        Tip (4, 4) and its twist by tension (6, m) at tensions (m,); may raise ModelError, and
        the search then goes elsewhere.
    target : (4, 4)
        Wanted pose.
    with_orientation : bool
        Whether its rotation counts.
    start, pretension, upper : (m,)
        Where to begin, and the bounds [N].
    lever_m : float
        Length by which a rotation counts as a miss.
    tolerance_m : float
        Largest miss of a solution.

    Raises
    ------
    ModelError
        If there is no equilibrium at `start`.

    """
    weights = np.array([1.0] * 3 + ([lever_m] * 3 if with_orientation else []))
    rows = len(weights)
    identity = np.eye(len(start))
    tensions = np.clip(start, pretension, upper)
    tip, jacobian = pose_and_jacobian(tensions)
    error = weights * displacement(tip, target)[:rows]
    damping = 0.0
    message = 'the tip does not get nearer: out of reach, or a limit of the tensions'
    for _ in range(_MAX_ITERATIONS):
        scaled = weights[:, None] * jacobian[:rows]
        gain = float(np.linalg.norm(scaled, 2))
        if gain == 0.0:
            message = 'no cable moves the tip'
            break
        norm = _NORM_WEIGHT * gain
        merit = float(error @ error) + norm**2 * float(np.sum((tensions - pretension) ** 2))
        moved = False
        for _ in range(_MAX_TRIES):
            step = bounded_least_squares(
                np.vstack([scaled, norm * identity, damping * gain * identity]),
                np.concatenate([error, norm * (pretension - tensions), np.zeros(len(start))]),
                pretension - tensions,
                upper - tensions,
            )
            trial = np.clip(tensions + step, pretension, upper)
            try:
                trial_tip, trial_jacobian = pose_and_jacobian(trial)
            except ModelError as problem:
                message = str(problem)
            else:
                miss = weights * displacement(trial_tip, target)[:rows]
                cost = float(miss @ miss) + norm**2 * float(np.sum((trial - pretension) ** 2))
                if cost < merit:
                    moved = True
                    break
            damping = max(4.0 * damping, 1e-2)
        if not moved:
            break
        change = float(np.max(np.abs(trial - tensions)))
        tensions, jacobian, error = trial, trial_jacobian, miss
        damping = 0.1 * damping if damping > 1e-4 else 0.0
        if change < _STEP_N:
            break
    residual = float(np.linalg.norm(error))
    converged = residual <= tolerance_m
    return PoseSearch(tensions, residual, converged, '' if converged else message)
