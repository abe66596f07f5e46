"""Inverse kinematics of a rod on pairs of cables: the least contractions for a tip pose."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.actuation_range import ActuationRange, bounds_of
from softarm_ros.models.arm_model import ModelError, Shape
from softarm_ros.models.bounded_least_squares import Rows
from softarm_ros.models.cable_driven.inverse import BendProblem
from softarm_ros.models.cosserat.shots import DeadLoad
from softarm_ros.models.inverse import End, Outcome, PoseTarget
from softarm_ros.models.stepped_search import Place, SteppedProblem

if TYPE_CHECKING:
    from softarm_ros.models.cable_driven.rod_statics import RodStatics

_PASSED = 1e-6  # tolerance for rounding, as a share of a bending limit


class RodContractions(SteppedProblem):
    """
    Search for the least contractions (m,) [m] within bending limits and motor range.

    Least bends would not do: pairs cross sections, so small bends of the single sections may need
    a large contraction of one pair.

    Parameters
    ----------
    rod
        Statics of the arm.
    arcs
        Search for the least bends of arcs; supplies a start.
    limits_rad : (sections,)
        Largest bends.
    load
        Gravity and tip load.
    within
        Range of the motors.

    """

    def __init__(
        self,
        rod: RodStatics,
        arcs: BendProblem,
        limits_rad: Array,
        load: DeadLoad,
        within: ActuationRange | None = None,
    ) -> None:
        self._rod, self._arcs, self._limits, self._load = rod, arcs, limits_rad, load
        count = len(rod.names)
        self.scale = np.full(count, 1.0 / rod.largest_gain_rad_m)
        self.max_step = np.full(count, np.inf)
        self.ranges = (bounds_of(within, count),)

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return zero contractions, and those of the least bends of arcs found for the pose."""
        yield np.zeros(len(self.scale))
        ends = [self._arcs.descend(start, target, False) for start in self._arcs.starts(target)]
        reached = [end for end in ends if end.residual_m <= target.tolerance_m]
        if reached:
            best = min(reached, key=self._arcs.effort)
        else:
            best = min(ends, key=lambda end: end.residual_m)
        yield self._rod.arc_contractions(best.unknowns)

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the `Place` of contractions (m,) [m]."""
        rod = self._rod
        wound = rod.wound(unknowns)
        start = rod.arcs(unknowns) if near is None else near.state
        rest = rod.under(wound, self._load, start)
        bends = rod.bends_by_contraction(rest, wound)
        tip = rod.section_tips(rest)[-1]

        def derivative() -> Array:
            return rod.twist_by_contraction(rest, wound)

        wish = np.zeros(len(unknowns))
        return Place(unknowns, tip, derivative, wish, self._rows(rest.bend, bends), rest)

    def effort(self, end: End) -> float:
        """Return the norm of the contractions, in units of their scale."""
        return float(np.linalg.norm(end.unknowns / self.scale))

    def outcome(self, end: End) -> Outcome:
        """Return contractions and their shape; refuse bends beyond their limits."""
        rod = self._rod
        rest = rod.under(rod.wound(end.unknowns), self._load, rod.arcs(end.unknowns))
        tips = rod.section_tips(rest)
        shape = Shape(tips[-1].copy(), tips, rest.bend, partial(rod.centerline, rest))
        beyond = np.linalg.norm(rest.bend.reshape(-1, 2), axis=1) > (1 + _PASSED) * self._limits
        refusal = ', '.join(
            f'{section.name} bent beyond its {section.max_bending_angle_deg:g} deg'
            for section, over in zip(rod.sections, beyond)
            if over
        )
        return Outcome(end.unknowns, shape, refusal)

    def limits_met(self, end: End) -> list[str]:
        """Return the sections at their bending limits."""
        if end.place is None:
            raise ModelError('the search has no place to end at')
        return self._arcs.limits_met(End(end.place.state.bend, end.residual_m))

    def _rows(self, bend: Array, by_contraction: Array) -> Rows:
        """Return the rows that keep the bends within their limits, in shares of the limits."""
        sides, room = np.zeros((len(self._limits), len(self.scale))), np.ones(len(self._limits))
        for k, most in enumerate(self._limits):
            two = slice(2 * k, 2 * k + 2)
            size = float(np.linalg.norm(bend[two]))
            if size > 1e-6:
                sides[k] = (bend[two] / (size * most)) @ by_contraction[two]
                room[k] = 1.0 - size / most
        return Rows(sides, np.full(len(room), -np.inf), room)
