"""Inverse kinematics of sections under weight: the least bends for a tip pose."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError, Shape
from softarm_ros.models.bending_limits import clipped_bends
from softarm_ros.models.bounded_least_squares import Rows
from softarm_ros.models.cable_driven.inverse import BendProblem
from softarm_ros.models.config import SectionConfig
from softarm_ros.models.inverse import End, Outcome, PoseTarget
from softarm_ros.models.stepped_search import Place, SteppedProblem

_MAX_STEP_RAD = 0.4
_STRAIGHT_RAD = 1e-6


class HeldBody(Protocol):
    """Statics of a body whose bends are held; each body has its own types of rest and load."""

    def settled(self, bend: Array, load: Any, near: Any = None) -> Any:
        """Return the body at rest with bends (dof,) [rad]."""
        ...

    def section_tips(self, held: Any) -> Array:
        """Return the section tips (sections, 4, 4)."""
        ...

    def tip_twist(self, held: Any) -> Array:
        """Return the tip twist per bend rate (6, dof)."""
        ...

    def centerline(self, held: Any, n: int) -> Array:
        """Return (n, 3) points [m] from base to tip."""
        ...


class HeldArm(Protocol):
    """Arm with a `HeldBody`."""

    sections: tuple[SectionConfig, ...]

    @property
    def rod(self) -> HeldBody:
        """The body."""
        ...

    @property
    def cable_count(self) -> int:
        """Number of contractions."""
        ...

    def contraction_of(self, held: Any) -> Array:
        """Return the contractions (m,) [m] that hold the body at a rest."""
        ...


class HeldBends(SteppedProblem):
    """
    Search for the least bends (dof,) [rad] within their limits at which the arm is stable.

    Parameters
    ----------
    arm
        The arm.
    arcs
        Search among weightless arcs; supplies starts.
    load
        Weight and tip load of the body.

    """

    def __init__(self, arm: HeldArm, arcs: BendProblem, load: Any) -> None:
        self._arm, self._arcs, self._load = arm, arcs, load
        self._limits = np.radians([s.max_bending_angle_deg for s in arm.sections])
        dof = 2 * len(self._limits)
        self.scale = np.ones(dof)
        self.max_step = np.full(dof, _MAX_STEP_RAD)
        most = np.repeat(self._limits, 2)
        self.ranges = ((-most, most),)

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return the straight arm, and the arcs that reach the pose or come closest."""
        yield np.zeros(len(self.scale))
        ends = [self._arcs.descend(start, target, False) for start in self._arcs.starts(target)]
        reached = [end for end in ends if end.residual_m <= target.tolerance_m]
        if reached:
            yield min(reached, key=self._arcs.effort).unknowns
        else:
            yield min(ends, key=lambda end: end.residual_m).unknowns

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the `Place` of bends (dof,) [rad], clipped to their limits."""
        rod = self._arm.rod
        bend = clipped_bends(unknowns.reshape(-1, 2), self._limits).ravel()
        held = rod.settled(bend, self._load, None if near is None else near.state)
        tip = rod.section_tips(held)[-1]
        wish = np.zeros(len(bend))
        return Place(bend, tip, lambda: rod.tip_twist(held), wish, self._rows(bend), held)

    def effort(self, end: End) -> float:
        """Return the sum of the squared bends."""
        return float(end.unknowns @ end.unknowns)

    def outcome(self, end: End) -> Outcome:
        """
        Return contractions and shape of the bends, solved again without a neighbour.

        The outcome is refused if this fails: the search has then followed a rest that the bends
        alone do not determine.
        """
        rod, refusal = self._arm.rod, ''
        try:
            held = rod.settled(np.array(end.unknowns), self._load)
        except ModelError as error:
            held, refusal = end.place.state, str(error)
        tips = rod.section_tips(held)
        shape = Shape(tips[-1].copy(), tips, held.bend, partial(rod.centerline, held))
        try:
            actuation = self._arm.contraction_of(held)
        except ModelError as error:
            actuation, refusal = np.zeros(self._arm.cable_count), str(error)
        return Outcome(actuation, shape, refusal)

    def limits_met(self, end: End) -> list[str]:
        """Return the sections at their bending limits."""
        return self._arcs.limits_met(end)

    def _rows(self, bend: Array) -> Rows:
        """Return the rows that keep the bends within their limits, in shares of the limits."""
        sides, room = np.zeros((len(self._limits), len(bend))), np.ones(len(self._limits))
        for k, most in enumerate(self._limits):
            two = slice(2 * k, 2 * k + 2)
            size = float(np.linalg.norm(bend[two]))
            if size > _STRAIGHT_RAD:
                sides[k, two] = bend[two] / (size * most)
                room[k] = 1.0 - size / most
        return Rows(sides, np.full(len(room), -np.inf), room)
