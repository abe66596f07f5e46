"""Which parts of a path an arm can reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.path import Path
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel

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
        Distance to the nearest tip position the model finds, 0 where reached.
    nearest : (n, 3)
        That position [m].
    start_configuration : (dof,)
        Configuration for the first point that the limits allow.

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
        """Return the point (3,) that is missed most, by how much [m], and what is reached (3,)."""
        i = int(np.argmax(self.miss_m))
        return self.points[i], float(self.miss_m[i]), self.nearest[i]


def check_reach(
    model: ArmModel,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    path: Path,
    n: int = 120,
) -> Reach:
    """
    Solve the inverse problem along a path, each point started from the one before.

    `limits` are those of what the model asks for: the actuators' without pretension.
    """
    points = path.sample(n)
    miss, nearest = np.empty(n), np.empty((n, 3))
    start: Array | None = None
    found = _solved(model, limits, configuration_limits, points)
    for i, (missed, tip, configuration) in enumerate(found):
        miss[i], nearest[i] = missed, tip
        start = configuration if start is None else start
    if start is None:  # no other configuration to try
        start = model.rest_configuration
    return Reach(points, miss, nearest, np.array(start))


def reaches_any(
    model: ArmModel,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    path: Path,
    n: int = 120,
) -> bool:
    """Return whether any point is reachable by `check_reach`; ends with the first that is."""
    found = _solved(model, limits, configuration_limits, path.sample(n))
    return any(missed <= REACH_TOLERANCE_M for missed, _, _ in found)


def _solved(
    model: ArmModel,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    points: Array,
) -> Iterator[tuple[float, Array, Array | None]]:
    """Yield the miss [m], the tip (3,) [m], and the configuration (dof,) if limits allow it."""
    guess: Array | None = None
    for point in points:
        solution = model.inverse(point, guess=guess)
        tip = solution.shape.tip[:3, 3]
        miss = float(np.linalg.norm(tip - point))
        guess = solution.actuation
        configuration = solution.shape.configuration
        try:
            limits.check(solution.actuation)
            configuration_limits.check(configuration, model.configuration_names)
        except ValueError:
            # Outside the range: bending that far is not available on this rig.
            yield max(miss, 2.0 * REACH_TOLERANCE_M), tip, None
        else:
            yield miss, tip, configuration
