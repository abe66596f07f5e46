"""Tensions of a Cosserat rod arm for a tip pose, or for given cable lengths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, ModelError, Vector3
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.cosserat.shape import shape_of_state
from softarm_ros.models.cosserat.state import RodState
from softarm_ros.models.inverse import End, Outcome, PoseTarget, values_at_limits
from softarm_ros.models.stepped_search import Place, SteppedProblem


class LeastTensions(SteppedProblem):
    """
    Search for the tensions (cables,) [N] of least norm, within their limits, for a tip pose.

    Parameters
    ----------
    rod
        The arm.
    tip_force : (3,)
        Load at the tip, base frame [N].

    Raises
    ------
    ModelError
        If the arm has no cables.

    """

    def __init__(self, rod: CosseratRod, tip_force: Vector3) -> None:
        cables = rod.config.cables
        if not cables:
            raise ModelError('the arm has no cables, so it has no inverse')
        self._rod, self._tip_force = rod, tip_force
        self._names = [cable.name for cable in cables]
        self.scale = np.ones(len(cables))
        self.max_step = np.full(len(cables), np.inf)
        least, most = np.array([cable.tension_range_N for cable in cables]).T
        self.ranges = ((least, most),)

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return zero tensions as the only start."""
        return [np.zeros(len(self._names))]

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the `Place` of tensions (cables,) [N], if they hold the arm stably."""
        rod, force = self._rod, self._tip_force
        if near is None:
            state = rod.solve(unknowns, force)
        else:
            state = rod.solve(unknowns, force, near=near.state, search=False)
        if not state.stable:
            raise ModelError(state.message)

        def derivative() -> Array:
            rod.load(unknowns, force)
            rod.resume(state.start)
            return rod.derivatives().tip_by_tension

        return Place(unknowns, state.tip, derivative, wish=np.zeros(len(unknowns)), state=state)

    def effort(self, end: End) -> float:
        """Return the norm of the tensions [N]."""
        return float(np.linalg.norm(end.unknowns))

    def outcome(self, end: End) -> Outcome:
        """Return the tensions and the shape found."""
        return Outcome(end.unknowns, shape_of_state(end.place.state))

    def limits_met(self, end: End) -> list[str]:
        """Return the cables at their least or largest tension."""
        return values_at_limits(self._names, end.unknowns, self.ranges[0], 'N')


@dataclass(frozen=True)
class TensionSolution:
    """Tensions (cables,) [N], the resulting state, and how well it meets the request."""

    tensions: Array
    state: RodState
    residual: float
    converged: bool
    message: str = ''


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

    The path of a taut cable is shorter than at rest by exactly its contraction. The path of a
    slack cable is shorter by more, and its tension is zero. This complementarity problem is solved
    by Newton's method on bounded quadratic programmes (scipy) with the symmetric derivative of
    contraction by tension.

    `residual` [m] is the worst violation. The tensions of a shear-rigid rod with more cables than
    degrees of freedom are not unique. Lengths that do not fit together are reported as not
    converged.
    """
    from scipy.optimize import lsq_linear  # imported late: half of a node's import time

    if any(cable.bore for cable in rod.config.cables):
        raise ModelError('cable lengths given: a bore is no cable, it cannot go slack')
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
    message = 'the lengths do not fit together, or a tension is at its limit'
    if not state.stable:
        return TensionSolution(tensions, state, np.inf, False, f'at the start: {state.message}')
    excess, worst = violation(state)
    for _ in range(max_iterations):
        if worst <= tolerance_m:
            return TensionSolution(tensions, state, worst, True)
        rod.load(tensions, tip_force, tip_moment)
        rod.resume(state.start)
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
            candidate = rod.solve(trial, tip_force, tip_moment, near=state, search=False)
            if candidate.stable:
                new_excess, new_worst = violation(candidate)
                # The violation may rise when a cable goes slack or taut: tolerate some rise.
                if new_worst < 2.0 * worst or fraction < 0.02:
                    break
            fraction *= 0.4
        else:
            break
        tensions, state, excess, worst = trial, candidate, new_excess, new_worst
    return TensionSolution(tensions, state, worst, False, message)
