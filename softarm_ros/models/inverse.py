"""
The one inverse search: the actuation that brings the tip of an arm to a pose.

A model poses the problem in unknowns of its own (`PoseProblem`): where to start, how to descend
from there, and the result of where that ends. How to descend is the same for all models that can
give the tip and its derivative (`stepped_search.SteppedProblem`); bending sections go down by a
compiled kernel to the same stop, for speed.

Converged, for every model: the shape that belongs to the returned actuation misses the target by
at most `TOLERANCE` of the arm's length. A rotation, where one was asked for, counts as the way of
a point half an arm's length from the tip, so that miss and tolerance are one length [m]. And
nothing forbids the actuation: no bound is passed, the actuators can do it, the equilibrium is the
one the arm takes.
Everything else is `converged = False`, with what is left, the bounds reached and the reason in
the message; the actuation is then that of the nearest pose found.
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
LEVER = 0.5  # of the arm's length, by which a rotation counts as a miss
_ROTATION_TOLERANCE = 1e-6
_POSITION_ONLY = np.eye(3)


@dataclass(frozen=True)
class PoseTarget:
    """
    Pose that the tip shall take; made by `pose_target`.

    Attributes
    ----------
    position, rotation : (3,), (3, 3)
        Of the tip in the base frame [m]; the rotation is not used without `with_orientation`.
    length_m : float
        Length of the arm, the measure of a miss.

    """

    position: Array
    rotation: Array
    with_orientation: bool
    length_m: float

    @property
    def lever_m(self) -> float:
        """Length [m] by which a rotation [rad] counts as a miss."""
        return LEVER * self.length_m

    @property
    def tolerance_m(self) -> float:
        """Largest miss [m] of a solution."""
        return TOLERANCE * self.length_m

    @property
    def exact_m(self) -> float:
        """Miss [m] with which a search need not go on."""
        return EXACT * self.length_m

    def miss_of(self, tip: Array) -> Array:
        """Return by how much (3,) or (6,) [m] a tip (4, 4) misses, the rotation with its lever."""
        linear = self.position - tip[:3, 3]
        if not self.with_orientation:
            return np.asarray(linear)
        return np.concatenate([linear, self.lever_m * log_so3(self.rotation @ tip[:3, :3].T)])

    def rows_of(self, twist: Array) -> Array:
        """Return the derivative (3 or 6, n) [m] of a motion of the tip from its twist (6, n)."""
        if not self.with_orientation:
            return twist[:3]
        return np.vstack([twist[:3], self.lever_m * twist[3:]])


def pose_target(position: Vector3, orientation: Array | None, length_m: float) -> PoseTarget:
    """
    Return the target for a position (3,) [m] and maybe a rotation (3, 3), checked.

    Raises
    ------
    ValueError
        For a wrong shape, a value that is not finite, or a matrix that is no rotation.
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
    Where a descent from one start ended.

    Attributes
    ----------
    unknowns : (n,)
    residual_m : float
        Miss of the target there.
    why : str
        Why it is not less.
    place
        What the model knows about it, for its own use.

    """

    unknowns: Array
    residual_m: float
    why: str = ''
    place: Any = None


@dataclass(frozen=True)
class Outcome:
    """
    Result of an end: the actuation (m,), the shape under it, and what forbids it, if anything.

    The shape is the one the arm takes under that actuation by itself, as far as the model can
    say, not the one the search has followed.
    """

    actuation: Array
    shape: Shape
    refusal: str = ''


class PoseProblem(Protocol):
    """A model's side of an inverse search; holds nothing from one search to the next."""

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return unknowns (n,) to start from where there is no guess or it leads nowhere."""
        ...

    def descend(self, start: Array, target: PoseTarget, near: bool) -> End:
        """
        Return where the search from a start (n,) ends; `near` keeps to its branch.

        Raises
        ------
        ModelError
            If there is no shape to start from.

        """
        ...

    def effort(self, end: End) -> float:
        """Return the effort that is to be least among ends that reach the target."""
        ...

    def outcome(self, end: End) -> Outcome:
        """Return the result of an end."""
        ...

    def limits_met(self, end: End) -> list[str]:
        """Return the bounds that an end stands at, in words."""
        ...


def find_pose(
    problem: PoseProblem,
    target: PoseTarget,
    guess: Array | None = None,
    within: ActuationRange | None = None,
) -> InverseSolution:
    """
    Return the actuation for a pose.

    A guess (n,) that leads to the target decides. Otherwise the solution of least effort among
    those found from the model's own starts is returned, or the nearest approach if there is none.
    An actuation that is not `within` the range of the actuators is no solution.

    Raises
    ------
    ModelError
        If the model has a shape for none of the starts.

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
        raise ModelError(f'no shape to start from towards {_where(target)}: {nowhere}')
    reached = [end for end in ends if end.residual_m <= target.tolerance_m]
    refused: InverseSolution | None = None
    # Equal but for rounding: the first start wins.
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
    """Return which values (n,) stand at bounds (n,), (n,), to a millionth of their range."""
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
