"""Tensions for a wanted tip: bounded Levenberg-Marquardt around any tendon model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import Array, ModelError
from softarm_ros.models.tendon_rod.tension_choice import bounded_least_squares

# Of the distance from the pretension against the miss of the tip, both as shares of the largest
# gain. The last one leaves the tip up to some 1e-5 m off, which the searches after it take away.
_FIRST_WISH, _LAST_WISH, _FADING = 1e-1, 3e-4, 0.3
_LEAST_DAMPING = 1e-5  # its square is what the quadratic programme resolves beside 1
_MAX_ITERATIONS = 60
_MAX_TRIES = 12
_STEP_N = 1e-6
# A search ends when a step gains less than this share of its merit: with a wish that faded, with
# one that was weak from the start and so has a narrow valley to go along, without a wish.
_CHOSEN, _CHOSEN_NEAR, _NEAREST = 1e-3, 1e-5, 1e-6
TOLERANCE_M = 1e-6  # largest miss of a solution
_CLOSE_M = 1e-8  # a miss with which nothing is left to do

_NO_NEARER = 'the tip does not get nearer: out of reach, or a limit of the tensions'

PoseAndJacobian = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class WantedPose:
    """
    Pose of the tip that a search is for.

    Attributes
    ----------
    target : (4, 4)
        Base -> tip [m].
    with_orientation : bool
        Whether its rotation counts.
    lever_m : float
        Length by which a rotation counts as a miss.

    """

    target: Array
    with_orientation: bool
    lever_m: float

    @property
    def weights(self) -> Array:
        """Weights (r,) of the components of a twist that count."""
        return np.array([1.0] * 3 + ([self.lever_m] * 3 if self.with_orientation else []))

    def miss_of(self, tip: Array) -> Array:
        """Return by how much (r,) [m] a tip (4, 4) misses."""
        weights = self.weights
        return weights * displacement(tip, self.target)[: len(weights)]


@dataclass(frozen=True)
class PoseSearch:
    """Tensions (m,) [N], by how much they miss the pose [m], and whether that is a solution."""

    tensions: Array
    residual_m: float
    converged: bool
    message: str


@dataclass(frozen=True)
class _Place:
    """Tensions (m,) [N] with their weighted miss (r,) [m] and its derivative (r, m)."""

    tensions: Array
    miss: Array
    gains: Array

    @property
    def residual_m(self) -> float:
        return float(np.linalg.norm(self.miss))


Look = Callable[[Array], _Place]


def search_pose(
    pose_and_jacobian: PoseAndJacobian,
    wanted: WantedPose,
    start: Array,
    pretension: Array,
    upper: Array,
) -> PoseSearch:
    """
    Return the tensions within 0..upper that bring the tip to a pose.

    Searches from the end of one another, as far as they are needed: for the tensions nearest to
    the pretension that (nearly) reach the pose; from there, by small changes, to the pose itself;
    where that is out of reach, with cables looser than the pretension. A start that leads nowhere
    is given up for the pretension.

    Parameters
    ----------
    pose_and_jacobian
        Tip (4, 4) and its twist by tension (6, m) at tensions (m,); may raise ModelError, and
        the search then goes elsewhere.
    wanted
        Where the tip shall be.
    start, pretension, upper : (m,)
        Where to begin, the tensions to be near to, and the largest [N].

    Raises
    ------
    ModelError
        If there is no equilibrium at `start`.

    """
    weights = wanted.weights[:, None]

    def look(tensions: Array) -> _Place:
        tip, jacobian = pose_and_jacobian(tensions)
        return _Place(tensions, wanted.miss_of(tip), weights * jacobian[: len(weights)])

    cold = np.array_equal(start, pretension)
    best, message = _search(look, start, pretension, upper, near=not cold)
    if not cold and best.residual_m > TOLERANCE_M:
        other, why = _search(look, pretension, pretension, upper, near=False)
        if other.residual_m < best.residual_m:
            best, message = other, why
    converged = best.residual_m <= TOLERANCE_M
    if not converged:
        message = f'{1e3 * best.residual_m:.3g} mm left: {message}'
    return PoseSearch(best.tensions, best.residual_m, converged, '' if converged else message)


def _search(
    look: Look, start: Array, pretension: Array, upper: Array, near: bool
) -> tuple[_Place, str]:
    """Return where the searches from a start (m,) end, and why; `near` keeps to its branch."""
    place = look(np.clip(start, pretension, upper))
    place = _choose(look, place, pretension, upper, near)
    place, message = _approach(look, place, pretension, upper)
    if place.residual_m > TOLERANCE_M:
        place, message = _approach(look, place, np.zeros_like(upper), upper)
    return place, message


def _choose(look: Look, place: _Place, pretension: Array, upper: Array, near: bool) -> _Place:
    """
    Return the tensions near the pretension that nearly reach the pose.

    The wish to be near the pretension is strong at first and fades: so the load is shared among
    the cables on the way, instead of afterwards along a narrow valley.
    """
    weight, enough = (_LAST_WISH, _CHOSEN_NEAR) if near else (_FIRST_WISH, _CHOSEN)
    damping = 0.0
    for _ in range(_MAX_ITERATIONS):
        trial, damping, gained, _ = _step(
            look, place, pretension, upper, weight, pretension, damping
        )
        if weight == _LAST_WISH and (trial is None or gained < enough):
            return place if trial is None else trial
        place = place if trial is None else trial
        weight = max(_FADING * weight, _LAST_WISH)
    return place


def _approach(look: Look, place: _Place, lower: Array, upper: Array) -> tuple[_Place, str]:
    """Return the nearest place to the pose by least changes of the tensions, and why no nearer."""
    message, damping = _NO_NEARER, 0.0
    for _ in range(_MAX_ITERATIONS):
        if place.residual_m <= _CLOSE_M:
            break
        trial, damping, gained, problem = _step(
            look, place, lower, upper, _LEAST_DAMPING, None, damping
        )
        message = problem or message
        if trial is None:
            break
        change = float(np.max(np.abs(trial.tensions - place.tensions)))
        place = trial
        if change < _STEP_N or gained < _NEAREST:
            break
    return place, message


def _step(
    look: Look,
    place: _Place,
    lower: Array,
    upper: Array,
    weight: float,
    wish: Array | None,
    damping: float,
) -> tuple[_Place | None, float, float, str]:
    """
    Take a step of Levenberg-Marquardt within lower..upper, damped until it gains something.

    What it makes less is the square of the miss and, weighed, of the distance from `wish` (m,);
    without a wish, of the change of the tensions.

    Returns the place, if one is better, the damping for the next step, the share of the merit
    gained, and what kept the model from an answer on the way.
    """
    count = len(upper)
    problem = ''
    gain = float(np.linalg.norm(place.gains, 2))
    if gain == 0.0:
        return None, damping, 0.0, 'no cable moves the tip'

    def pull_of(tensions: Array) -> Array:
        return np.zeros(count) if wish is None else weight * gain * (wish - tensions)

    def merit_of(miss: Array, tensions: Array) -> float:
        return float(miss @ miss) + float(np.sum(pull_of(tensions) ** 2))

    merit = merit_of(place.miss, place.tensions)
    for _ in range(_MAX_TRIES):
        step = bounded_least_squares(
            np.vstack(
                [place.gains, weight * gain * np.eye(count), damping * gain * np.eye(count)]
            ),
            np.concatenate([place.miss, pull_of(place.tensions), np.zeros(count)]),
            lower - place.tensions,
            upper - place.tensions,
        )
        try:
            trial = look(np.clip(place.tensions + step, lower, upper))
        except ModelError as error:
            problem = str(error)
        else:
            cost = merit_of(trial.miss, trial.tensions)
            if cost < merit:
                relaxed = 0.1 * damping if damping > 1e-4 else 0.0
                return trial, relaxed, 1.0 - cost / merit, problem
        damping = max(4.0 * damping, 1e-2)
    return None, damping, 0.0, problem
