"""Inverse kinematics of arms with pairs of cables: the least contractions for a tip pose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.actuation_range import bounds_of
from softarm_ros.models.bounded_least_squares import Rows
from softarm_ros.models.cable_driven.inverse import BendProblem
from softarm_ros.models.inverse import End, Outcome, PoseTarget
from softarm_ros.models.stepped_search import Place, SteppedProblem

if TYPE_CHECKING:
    from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm

_PASSED = 1e-6  # tolerance for rounding, as a share of a bending limit


class LeastContractions(SteppedProblem):
    """
    Search for the least contractions (m,) [m] within bending limits and motor range.

    Least bends would not do: pairs cross sections, so small bends of the single sections may need
    a large contraction of one pair.

    Parameters
    ----------
    arm
        The arm.
    bends
        Search for the least bends; supplies a start.

    """

    def __init__(self, arm: PairedCablesArm, bends: BendProblem) -> None:
        self._arm, self._bends = arm, bends
        self._limits = np.radians([s.max_bending_angle_deg for s in arm.sections])
        count = len(arm.cables)
        # One radian of bending moves the tip by about the length of the arm.
        self.scale = np.full(count, 1.0 / float(np.linalg.norm(arm.bends_per_contraction, 2)))
        self.max_step = np.full(count, np.inf)
        self.ranges = (bounds_of(arm.within, count),)

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return zero contractions, and those of the least bends found for the pose."""
        yield np.zeros(len(self.scale))
        ends = [self._bends.descend(start, target, False) for start in self._bends.starts(target)]
        reached = [end for end in ends if end.residual_m <= target.tolerance_m]
        if reached:
            best = min(reached, key=self._bends.effort)
        else:
            best = min(ends, key=lambda end: end.residual_m)
        yield self._arm.actuation_of(best.unknowns)

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the `Place` of contractions (m,) [m]."""
        arm = self._arm
        bend = arm.configuration_of(unknowns)
        slope = arm.bend_slope(bend)

        def derivative() -> Array:
            return np.asarray(arm.twist_jacobian(bend) @ slope)

        tip = arm.shape_of(bend).tip
        return Place(unknowns, tip, derivative, np.zeros(len(unknowns)), self._rows(bend, slope))

    def effort(self, end: End) -> float:
        """Return the norm of the contractions, in units of their scale."""
        return float(np.linalg.norm(end.unknowns / self.scale))

    def outcome(self, end: End) -> Outcome:
        """Return contractions and shape; refuse bends beyond their limits."""
        bend = self._arm.configuration_of(end.unknowns)
        beyond = np.linalg.norm(bend.reshape(-1, 2), axis=1) > (1.0 + _PASSED) * self._limits
        refusal = ', '.join(
            f'{section.name} bent beyond its {section.max_bending_angle_deg:g} deg'
            for section, over in zip(self._arm.sections, beyond)
            if over
        )
        return Outcome(end.unknowns, self._arm.shape_of(bend), refusal)

    def limits_met(self, end: End) -> list[str]:
        """Return the sections at their bending limits."""
        bend = self._arm.configuration_of(end.unknowns)
        return self._bends.limits_met(End(bend, end.residual_m))

    def _rows(self, bend: Array, slope: Array) -> Rows:
        """Return the rows that keep the bends within their limits, in shares of the limits."""
        sides, room = np.zeros((len(self._limits), len(self.scale))), np.ones(len(self._limits))
        for k, most in enumerate(self._limits):
            two = slice(2 * k, 2 * k + 2)
            size = float(np.linalg.norm(bend[two]))
            if size > 1e-6:
                sides[k] = (bend[two] / (size * most)) @ slope[two]
                room[k] = 1.0 - size / most
        return Rows(sides, np.full(len(room), -np.inf), room)
