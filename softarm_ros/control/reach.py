"""Check which parts of a path an arm can reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.controller import AnswerError
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.nearest import Nearest, nearest_from
from softarm_ros.control.path import Path
from softarm_ros.geometry.answers import described
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, InverseSolution, Shape, described_model

_HARDLY = 1.02  # a miss up to this factor above the least ends the search
REACH_TOLERANCE_M = 1e-3


@dataclass(frozen=True)
class Reach:
    """
    Reachability of points along one lap.

    Attributes
    ----------
    points : (n, 3)
        Points of the path [m].
    miss_m : (n,)
        Distance to the nearest tip position found within the limits, 0 if reached; larger than the
        tolerance if none is found.
    nearest : (n, 3)
        That tip position [m]; if none is found within the limits, the model's nearest one.
    start_configuration : (dof,)
        Configuration for the first point that can be approached within the limits.

    """

    points: Array
    miss_m: Array
    nearest: Array
    start_configuration: Array

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Mask (n,) of the points within the tolerance."""
        return self.miss_m <= REACH_TOLERANCE_M

    def worst(self) -> tuple[Array, float, Array]:
        """Return the point (3,) with the largest miss, that miss [m], and the nearest tip (3,)."""
        i = int(np.argmax(self.miss_m))
        return self.points[i], float(self.miss_m[i]), self.nearest[i]


def check_reach(
    model: ArmModel,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    path: Path,
    n: int = 120,
    progress: Callable[[float], None] = lambda _: None,
) -> Reach:
    """
    Solve the inverse problem along a path, each point started from the previous one.

    `limits` apply to the model's actuation: the actuators' limits without pretension. `progress`
    is called with the share of points solved.
    """
    points = path.sample(n)
    miss, nearest = np.empty(n), np.empty((n, 3))
    start: Array | None = None
    found = _solved(model, limits, configuration_limits, points)
    for i, (missed, tip, configuration) in enumerate(found):
        miss[i], nearest[i] = missed, tip
        start = configuration if start is None else start
        progress((i + 1) / n)
    if start is None:  # no point can be approached within the limits
        start = model.rest_configuration
    return Reach(points, miss, nearest, np.array(start))


def reaches_any(
    model: ArmModel,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    path: Path,
    n: int = 120,
) -> bool:
    """Return whether any point is reachable by `check_reach`; stop at the first that is."""
    found = _solved(model, limits, configuration_limits, path.sample(n))
    return any(missed <= REACH_TOLERANCE_M for missed, _, _ in found)


def inverse_of(model: ArmModel, position: Array, guess: Array | None) -> InverseSolution:
    """
    Return the solution of a model's inverse problem for a tip position (3,) [m].

    Raises
    ------
    AnswerError
        If the model of another package returns anything else.

    """
    solution: object = model.inverse(position, guess=guess)
    if not (isinstance(solution, InverseSolution) and isinstance(solution.shape, Shape)):
        raise AnswerError(
            f'{described_model(model)} returned inverse {described(solution)}; '
            'expected an InverseSolution'
        )
    return solution


def _solved(
    model: ArmModel,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    points: Array,
) -> Iterator[tuple[float, Array, Array | None]]:
    """Yield the miss [m], the tip (3,) [m], and the configuration (dof,), None beyond limits."""
    guess: Array | None = None
    last: Array | None = None
    for point in points:
        solution = inverse_of(model, point, guess)
        tip = solution.shape.tip[:3, 3]
        miss = float(np.linalg.norm(tip - point))
        guess = None  # never start from a solution beyond the limits
        configuration = solution.shape.configuration
        try:
            limits.check(solution.actuation)
            configuration_limits.check(configuration, model.configuration_names)
        except ValueError:
            # The model's search does not know all of these limits. An arm with more actuators than
            # a position needs may reach the point in another configuration.
            within = nearest_within(
                model, limits, configuration_limits, point, (configuration, last, None), miss
            )
            if within is None:
                yield max(miss, 2.0 * REACH_TOLERANCE_M), tip, None
            else:
                last = within.configuration
                yield within.miss_m, within.tip, last
        else:
            guess, last = solution.actuation, configuration
            yield miss, tip, configuration


def nearest_within(
    model: ArmModel,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    point: Array,
    starts: Sequence[Array | None],
    least_m: float = 0.0,
) -> Nearest | None:
    """
    Return the configuration within all limits whose tip is nearest to a point (3,) [m].

    The search runs from each start (dof,) in turn (None: the arm at rest) and stops when the point
    is reached, or missed by hardly more than `least_m`, the miss of the model without limits. None
    if no search ends within the limits.
    """
    best: Nearest | None = None
    for start in starts:
        begin = model.rest_configuration if start is None else start
        found = nearest_from(model, limits, configuration_limits, point, begin)
        if found is None:
            continue
        if best is None or found.miss_m < best.miss_m:
            best = found
        if best.miss_m <= max(REACH_TOLERANCE_M, _HARDLY * least_m):
            break
    return best
