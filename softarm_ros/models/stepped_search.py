"""Levenberg-Marquardt within bounds, for any model that gives its tip and the derivative."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.bounded_least_squares import Rows, bounded_least_squares
from softarm_ros.models.inverse import End, Outcome, PoseTarget

# Weight of the distance from the wish relative to the miss of the tip divided by the largest gain.
# The last weight leaves a small miss, which the search that follows removes.
_FIRST_WISH, _LAST_WISH, _FADING = 1e-1, 3e-4, 0.3
_LEAST_DAMPING = 1e-5  # its square is the least the quadratic programme resolves beside 1
_MAX_ITERATIONS, _MAX_TRIES = 60, 12
_SMALL_STEP = 1e-9  # of the scales: smaller steps end the search
# A search ends when a step gains less than this share of its merit: with a wish that faded; with
# a wish that was weak from the start, so that the search follows a narrow valley; without a wish.
_CHOSEN, _CHOSEN_NEAR, _NEAREST = 1e-3, 1e-5, 1e-6
_KEPT = 1e-7  # of their ranges: tolerance of the rows

NO_NEARER = 'the tip does not get nearer: out of reach, or held back by a limit'
NOTHING_MOVES = 'no change of the actuation moves the tip'

Derivative = Callable[[], Array]


@dataclass(frozen=True)
class Place:
    """
    A model evaluated at some unknowns.

    Attributes
    ----------
    unknowns : (n,)
        The unknowns as the model took them.
    tip : (4, 4)
        Base -> tip [m].
    derivative
        Returns the twist of the tip by the unknowns (6, n), linear rows first, or only the linear
        rows (3, n) if no orientation is requested. It is called once, if the search continues
        from this place.
    wish : (n,), optional
        Preferred unknowns; the search ends near those.
    rows
        Bounds on a step from here (k, n), in shares of their ranges; kept to first order.
    state
        Data the model reuses at a neighbouring place.

    """

    unknowns: Array
    tip: Array
    derivative: Derivative
    wish: Array | None = None
    rows: Rows | None = None
    state: Any = None

    @cached_property
    def twist(self) -> Array:
        """Twist of the tip by the unknowns (6, n) or (3, n)."""
        return self.derivative()

    @cached_property
    def passed(self) -> float:
        """Amount by which this place violates its rows, in shares of their ranges."""
        if self.rows is None:
            return 0.0
        over = np.maximum(self.rows.low, 0.0) + np.maximum(-self.rows.high, 0.0)
        return float(np.linalg.norm(over))


class SteppedProblem(ABC):
    """
    A `PoseProblem` that descends in damped, bounded steps.

    The search first goes to unknowns near the wish that almost reach the pose. The weight of the
    wish is large at first and fades, so that the load is shared on the way and not afterwards
    along a narrow valley. From there the search goes to the pose itself with the least changes; if
    the pose is out of reach, it continues within the next wider range.

    Attributes
    ----------
    scale : (n,)
        Change of each unknown that moves the tip by about the arm's length; smaller for unknowns
        that should change little.
    reach_scale : (n,), optional
        The scale for the search for the pose alone, in which no unknown is spared; `scale` if
        None.
    max_step : (n,)
        Largest change in one step; infinite for no limit.
    ranges
        Bounds (n,), (n,) of the unknowns: first the normal ones, then wider ones.

    """

    scale: Array
    reach_scale: Array | None = None
    max_step: Array
    ranges: tuple[tuple[Array, Array], ...]

    @abstractmethod
    def look(self, unknowns: Array, near: Place | None) -> Place:
        """
        Return the place at unknowns (n,); `near` is the place at neighbouring unknowns.

        Raises
        ------
        ModelError
            If the arm cannot take these unknowns; the search then tries others.

        """

    @abstractmethod
    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """See `PoseProblem`."""

    @abstractmethod
    def effort(self, end: End) -> float:
        """See `PoseProblem`."""

    @abstractmethod
    def outcome(self, end: End) -> Outcome:
        """See `PoseProblem`."""

    @abstractmethod
    def limits_met(self, end: End) -> list[str]:
        """See `PoseProblem`."""

    def ranges_from(self, near: bool) -> tuple[tuple[Array, Array], ...]:
        """Return the ranges for a search from a guess (`near`) or from one of `starts`."""
        return self.ranges

    def descend(self, start: Array, target: PoseTarget, near: bool) -> End:
        """See `PoseProblem`."""
        place = self.look(np.clip(start, *self.ranges[0]), None)
        search = _Search(self, target)
        if place.wish is not None:
            place = search.choose(place, near)
        why = ''
        for low, high in self.ranges_from(near):
            place, why = search.approach(place, low, high)
            if search.residual(place) <= target.tolerance_m:
                break
        return End(place.unknowns, search.residual(place), why, place)


@dataclass(frozen=True)
class _Step:
    """A better place or None, the damping of the next step, and the share of merit gained."""

    place: Place | None
    damping: float
    gained: float = 0.0
    problem: str = ''


@dataclass(frozen=True)
class _Search:
    problem: SteppedProblem
    target: PoseTarget

    def residual(self, place: Place) -> float:
        return float(np.linalg.norm(self.target.miss_of(place.tip)))

    def choose(self, place: Place, near: bool) -> Place:
        """Return a place near the wish that almost reaches the pose."""
        weight, enough = (_LAST_WISH, _CHOSEN_NEAR) if near else (_FIRST_WISH, _CHOSEN)
        low, high = self.problem.ranges[0]
        damping = 0.0
        for _ in range(_MAX_ITERATIONS):
            step = self._step(place, low, high, weight, place.wish, damping)
            damping = step.damping
            if weight == _LAST_WISH and (step.place is None or step.gained < enough):
                return step.place or place
            place = step.place or place
            weight = max(_FADING * weight, _LAST_WISH)
        return place

    def approach(self, place: Place, low: Array, high: Array) -> tuple[Place, str]:
        """Return the place nearest to the pose, reached with least changes, and why it stopped."""
        why, damping = NO_NEARER, 0.0
        for _ in range(_MAX_ITERATIONS):
            if self.residual(place) <= self.target.exact_m and place.passed <= _KEPT:
                break
            step = self._step(place, low, high, _LEAST_DAMPING, None, damping)
            why, damping = step.problem or why, step.damping
            if step.place is None:
                break
            change = np.abs(step.place.unknowns - place.unknowns) / self.problem.scale
            place = step.place
            if float(np.max(change)) < _SMALL_STEP or step.gained < _NEAREST:
                break
        return place, why

    def _step(
        self,
        place: Place,
        low: Array,
        high: Array,
        weight: float,
        wish: Array | None,
        damping: float,
    ) -> _Step:
        """
        Take a step within low..high (n,), with the damping raised until the merit decreases.

        The step minimises the squared miss, the squared violation of the rows and, times `weight`,
        the squared distance from `wish` (n,); without a wish, the squared change.
        """
        scale = self.problem.scale
        if wish is None and self.problem.reach_scale is not None:
            scale = self.problem.reach_scale
        count = len(scale)
        try:
            gains = self.target.rows_of(place.twist) * scale
        except ModelError as error:
            return _Step(None, damping, problem=str(error))
        gain = float(np.linalg.svd(gains, compute_uv=False).max())
        if gain < 1e-12 * self.target.length_m:
            return _Step(None, damping, problem=NOTHING_MOVES)
        unit = np.eye(count)
        strict = self.target.length_m / gain

        def pull_of(at: Place) -> Array:
            return np.zeros(count) if wish is None else weight * (wish - at.unknowns) / scale

        def merit_of(at: Place) -> float:
            miss = self.target.miss_of(at.tip) / gain
            pull = pull_of(at)
            return float(miss @ miss + pull @ pull) + (strict * at.passed) ** 2

        right = np.concatenate(
            [self.target.miss_of(place.tip) / gain, pull_of(place), np.zeros(count)]
        )
        most = self.problem.max_step
        lower = np.maximum(low - place.unknowns, -most) / scale
        upper = np.minimum(high - place.unknowns, most) / scale
        rows = place.rows and Rows(place.rows.matrix * scale, place.rows.low, place.rows.high)
        merit, problem = merit_of(place), ''
        for _ in range(_MAX_TRIES):
            matrix = np.vstack([gains / gain, weight * unit, damping * unit])
            try:
                change = bounded_least_squares(matrix, right, lower, upper, rows)
                wanted = np.clip(place.unknowns + scale * change, low, high)
                trial = self.problem.look(wanted, place)
            except (ArithmeticError, ModelError) as error:
                problem = str(error)
            else:
                cost = merit_of(trial)
                if cost < merit:
                    relaxed = 0.1 * damping if damping > 1e-4 else 0.0
                    return _Step(trial, relaxed, 1.0 - cost / merit, problem)
            damping = max(4.0 * damping, 1e-2)
        return _Step(None, damping, problem=problem)
