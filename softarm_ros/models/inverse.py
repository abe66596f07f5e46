"""
The inverse search of all models: the actuation that brings the tip of an arm to a pose.

A model states the problem in its own unknowns (`PoseProblem`): the starts, the descent from a
start, and the outcome of its end. All models that give the tip and its derivative share one
descent (`stepped_search.SteppedProblem`). Bending sections use a compiled kernel with the same
stopping rule, for speed.

Converged means the same for every model. The shape under the returned actuation misses the target
by at most `TOLERANCE` of the arm's length. A rotation, if requested, counts as the displacement of
a point half an arm's length from the tip, so miss and tolerance are lengths [m]. And nothing
forbids the actuation: it violates no bound, the actuators can apply it, and the equilibrium is the
one the arm takes.
Otherwise `converged` is False, and the message gives the remaining miss, the bounds reached and
the reason; the actuation is that of the nearest pose found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.rotations import log_so3
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import InverseSolution, ModelError, Shape, Vector3

TOLERANCE = 1e-6  # of the arm's length: the largest miss of a solution
EXACT = 1e-8  # of the arm's length: a miss at which a search stops
FURTHEST = 1e9  # times the arm's length: beyond it, rounding hides the tolerance
LEVER = 0.5  # of the arm's length: turns a rotation into a miss
_ROTATION_TOLERANCE = 1e-6
_POSITION_ONLY = np.eye(3)


@dataclass(frozen=True)
class PoseTarget:
    """
    Target pose of the tip; made by `pose_target`.

    Attributes
    ----------
    position, rotation : (3,), (3, 3)
        Pose of the tip in the base frame [m]; `rotation` is only used if `with_orientation`.
    length_m : float
        Length of the arm, to which the tolerances are relative.

    """

    position: Array
    rotation: Array
    with_orientation: bool
    length_m: float

    @property
    def lever_m(self) -> float:
        """Lever [m] that turns a rotation [rad] into a miss [m]."""
        return LEVER * self.length_m

    @property
    def tolerance_m(self) -> float:
        """Largest miss [m] of a solution."""
        return TOLERANCE * self.length_m

    @property
    def exact_m(self) -> float:
        """Miss [m] at which a search stops."""
        return EXACT * self.length_m

    def miss_of(self, tip: Array) -> Array:
        """Return the miss (3,) or (6,) [m] of a tip (4, 4); rotations are times `lever_m`."""
        linear = self.position - tip[:3, 3]
        if not self.with_orientation:
            return np.asarray(linear)
        return np.concatenate([linear, self.lever_m * log_so3(self.rotation @ tip[:3, :3].T)])

    def rows_of(self, twist: Array) -> Array:
        """Return the rows (3 or 6, n) [m] of a twist (6, n) that match the rows of `miss_of`."""
        if not self.with_orientation:
            return twist[:3]
        return np.vstack([twist[:3], self.lever_m * twist[3:]])


def pose_target(position: Vector3, orientation: Array | None, length_m: float) -> PoseTarget:
    """
    Return the checked target for a position (3,) [m] and optionally a rotation (3, 3).

    Raises
    ------
    ValueError
        For a wrong shape, a value that is not finite, or a matrix that is not a rotation.
    ModelError
        For a position so far away that rounding hides the tolerance.

    """
    point = finite_array(position, (3,), 'position')
    if float(np.abs(point).max()) > FURTHEST * length_m:
        raise ModelError(
            f'position = {point.tolist()} m, expected at most {FURTHEST * length_m:.3g} m: '
            f'{FURTHEST:g} times the length of the arm'
        )
    if orientation is None:
        return PoseTarget(point, _POSITION_ONLY, False, length_m)
    rotation = finite_array(orientation, (3, 3), 'orientation')
    error = float(np.abs(rotation @ rotation.T - np.eye(3)).max())
    if error > _ROTATION_TOLERANCE or np.linalg.det(rotation) < 0.0:
        raise ValueError(
            f'orientation is not a rotation matrix: R R^T differs from 1 by {error:.2g} '
            f'(at most {_ROTATION_TOLERANCE:g}), det R = {np.linalg.det(rotation):.3g}'
        )
    return PoseTarget(point, rotation, True, length_m)


@dataclass(frozen=True)
class End:
    """
    The end of a descent from one start.

    Attributes
    ----------
    unknowns : (n,)
    residual_m : float
        Miss of the target at the end.
    why : str
        Why the miss is not smaller.
    place
        Data of the model about this end, for its own use.

    """

    unknowns: Array
    residual_m: float
    why: str = ''
    place: Any = None


@dataclass(frozen=True)
class Outcome:
    """
    Result of an end: the actuation (m,), the shape under it, and the reason for a refusal, if any.

    The shape is the one the arm takes by itself under that actuation, as far as the model knows,
    not the one the search followed.
    """

    actuation: Array
    shape: Shape
    refusal: str = ''


class PoseProblem(Protocol):
    """A model's side of an inverse search; it keeps no state between searches."""

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return the starts (n,) to use if there is no guess or the guess fails."""
        ...

    def descend(self, start: Array, target: PoseTarget, near: bool) -> End:
        """
        Return the end of the search from a start (n,); `near` keeps to the branch of the start.

        Raises
        ------
        ModelError
            If the start has no shape.

        """
        ...

    def effort(self, end: End) -> float:
        """Return the effort of an end; among ends that reach the target, the least effort wins."""
        ...

    def outcome(self, end: End) -> Outcome:
        """Return the outcome of an end."""
        ...

    def limits_met(self, end: End) -> list[str]:
        """Return the bounds that an end has reached, as texts."""
        ...


def find_pose(
    problem: PoseProblem,
    target: PoseTarget,
    guess: Array | None = None,
    within: ActuationRange | None = None,
) -> InverseSolution:
    """
    Return the actuation for a pose.

    If a guess (n,) leads to the target, its solution is returned. Otherwise the solution of least
    effort among those from the model's own starts is returned, or else the nearest approach.
    An actuation that is not `within` the range of the actuators is not a solution.

    Raises
    ------
    ModelError
        If none of the starts has a shape.

    """
    ends: list[End] = []
    nowhere = ''
    for start, near in _starts(problem, target, guess):
        try:
            end = problem.descend(start, target, near)
        except ModelError as error:
            nowhere = str(error)
            continue
        if near and end.residual_m <= target.tolerance_m:
            solution = _solution(problem, end, target, within)
            if solution.converged:
                return solution
        ends.append(end)
    if not ends:
        raise ModelError(f'no start of the search for {_where(target)} has a shape: {nowhere}')
    reached = [end for end in ends if end.residual_m <= target.tolerance_m]
    refused: InverseSolution | None = None
    # Rounded, so that of equal efforts the first start wins.
    for end in sorted(reached, key=lambda end: round(problem.effort(end), 9)):
        solution = _solution(problem, end, target, within)
        if solution.converged:
            return solution
        refused = refused or solution
    if refused is not None:
        return refused
    nearest = min(ends, key=lambda end: round(end.residual_m / target.length_m, 9))
    return _solution(problem, nearest, target, within)


def values_at_limits(
    names: Sequence[str],
    values: Array,
    bounds: tuple[Array, Array],
    unit: str,
    units_per_si: float = 1.0,
) -> list[str]:
    """Return texts of the values (n,) within a millionth of their range of a bound (n,), (n,)."""
    low, high = bounds
    near = 1e-6 * (high - low)
    at_low, at_high = values <= low + near, values >= high - near
    bound = np.where(at_low, low, high)
    return [
        f'{names[int(i)]} at {units_per_si * bound[i]:.4g} {unit}'
        for i in np.flatnonzero(at_low | at_high)
    ]


def _starts(
    problem: PoseProblem, target: PoseTarget, guess: Array | None
) -> Iterator[tuple[Array, bool]]:
    if guess is not None:
        yield guess, True
    for start in problem.starts(target):
        yield start, False


def _solution(
    problem: PoseProblem, end: End, target: PoseTarget, within: ActuationRange | None
) -> InverseSolution:
    outcome = problem.outcome(end)
    if within is not None and (beyond := within.refusal(outcome.actuation)):
        outcome = replace(outcome, refusal='; '.join(filter(None, [outcome.refusal, beyond])))
    miss = target.miss_of(outcome.shape.tip)
    residual = float(np.linalg.norm(miss))
    reached = residual <= target.tolerance_m
    message = outcome.refusal
    if not reached:
        parts = [f'target {_where(target)} not reached: {_left(target, miss)} left']
        limits = problem.limits_met(end)
        if limits:
            parts.append('at a limit: ' + ', '.join(limits))
        parts += [reason for reason in dict.fromkeys((outcome.refusal, end.why)) if reason]
        if len(parts) == 1 and end.residual_m > target.tolerance_m:
            parts.append('out of reach: no start of the search came nearer')
        message = '; '.join(parts)
    return InverseSolution(
        outcome.actuation, outcome.shape, residual, reached and not outcome.refusal, message
    )


def _where(target: PoseTarget) -> str:
    return '(' + ', '.join(f'{value:.4f}' for value in target.position) + ') m'


def _left(target: PoseTarget, miss: Array) -> str:
    left = f'{1e3 * float(np.linalg.norm(miss[:3])):.3f} mm'
    if target.with_orientation:
        angle = float(np.linalg.norm(miss[3:])) / target.lever_m
        left += f' and {np.degrees(angle):.2f} deg'
    return left
