"""Statics of cables that cut in, on an arm with weight and a tip load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import (
    ZERO3,
    ModelError,
    Vector3,
)
from softarm_ros.models.cable_driven.cable_equilibrium_kernels import STRAIGHT_RAD
from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm
from softarm_ros.models.cable_driven.held_bending_arm import HeldBendingArm, HeldPosture
from softarm_ros.models.cable_driven.pulled_sections import CablePull, PulledSections
from softarm_ros.models.cable_driven.weight_layout import Loads
from softarm_ros.models.cable_driven.weighted_sections import HeldSections, WeightedSections
from softarm_ros.models.config import CableConfig, SectionConfig

_LITTLE_RAD = 5e-3  # a section whose cables limit its lean to less is nearly guided
_MAX_ROUNDS, _MAX_HALVINGS = 60, 30
_FOUND = 1e-10  # rad, tolerance of the Newton step
_MAX_STEP_RAD = 0.5
_FIRST_SHARE, _LEAST_SHARE = 0.5, 1e-3  # first and smallest step of the load, as shares of it


class HeavyPosture(HeldPosture):
    """`Posture` of sections under weight."""

    @cached_property
    def _pull(self) -> CablePull:
        return self._arm.pull_of(self.held)

    @property
    def actuation(self) -> Array:
        """See `Posture`."""
        return self._pull.contraction

    @property
    def actuation_jacobian(self) -> Array:
        """See `Posture`."""
        return self._pull.by_bend

    @cached_property
    def preferred(self) -> Array:
        """See `Posture`."""
        return self._arm.preferred_configuration(self.held.bend)


class HeavyCableStaticsArm(HeldBendingArm):
    """
    `cable_statics` for sections that sag; without weight and load, both models are equal.

    Configuration: the integral of each section's curvature, in the axes of its cross-section
    [rad]. For an arc, this is the bending vector; a section under weight is no arc, and its tip
    turns by nearly the same angle. The cables leave the change of curvature along a section and
    the twist free; weight and elasticity determine both (`weight_kernels`). The cables hold the
    moment that remains at the bends. The cut-in follows from the mean curvature, as in eq. 18.
    Taut cables resist twist; cables that only just touch, or that are wound further than the
    model says, are neglected in this.

    Parameters
    ----------
    sections, cables
        As for `BendingArm`, with masses.
    gravity_m_s2 : (3,)
        Base frame.
    tip_weight_N : (3,)
        Permanent load at the tip, base frame.
    bends, twists, pieces
        Resolution of a section: see `WeightedSections`.
    within
        As for `BendingArm`.

    """

    name = 'heavy_cable_statics'
    POSTURE = HeavyPosture

    def __init__(
        self,
        sections: Sequence[SectionConfig],
        cables: Sequence[CableConfig],
        gravity_m_s2: Vector3 = ZERO3,
        tip_weight_N: Vector3 = ZERO3,
        *,
        bends: int = 3,
        twists: int = 2,
        pieces: int = 8,
        within: ActuationRange | None = None,
    ) -> None:
        super().__init__(sections, cables, within)
        gravity = finite_array(gravity_m_s2, (3,), 'gravity_m_s2')
        self.rod = WeightedSections(sections, gravity, self._paths, bends, twists, pieces)
        self._tip_weight = finite_array(tip_weight_N, (3,), 'tip_weight_N')
        self._weightless = CableStaticsArm(sections, cables)
        self._own_load = self.rod.load(self._tip_weight, np.zeros(3))
        self._pulled = PulledSections(self.rod, self._weightless, self._columns, self._paths)

    # Actuation <-> configuration.

    def pull_of(self, held: HeldSections) -> CablePull:
        """Return the pull of the cables that hold a rest; all other cables are just taut."""
        return self._pulled.pull(held)

    def contraction_of(self, held: HeldSections) -> Array:
        """Return the contractions (m,) [m] that hold sections at rest."""
        return self.pull_of(held).contraction

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d actuation / d configuration (m, dof) [m/rad]."""
        return self.pull_of(self._settled(configuration)).by_bend

    def tensions_of(self, configuration: Array) -> Array:
        """Return the tensions (m,) [N] that hold a configuration (dof,) [rad]."""
        return self.pull_of(self._settled(configuration)).tension

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per contraction (6, m), base frame; slack cables: zero columns."""
        contraction = self._commanded(actuation)
        held = self._rest_under(contraction, ZERO3, ZERO3)
        slope = held.stiffness.copy()
        by_contraction = np.zeros((len(held.bend), len(contraction)))
        for k, columns in enumerate(self._columns):
            two = slice(2 * k, 2 * k + 2)
            found = self._pulled.moments(k, held, contraction[columns])
            if found is None:  # straight section: its taut cables guide it
                guide = self._pulled.guided(k, held, contraction[columns])
                along = guide @ self._paths[k][:, :2]
                slope[two] -= along @ slope[two]
                slope[two, two] += along
                by_contraction[two, columns] = guide
                continue
            slope[two] -= found.by_bend
            by_contraction[two, columns] = found.by_contraction
        return np.asarray(self.rod.tip_twist(held) @ np.linalg.solve(slope, by_contraction))

    def _rest_under(
        self, actuation: Array, tip_force: Vector3, tip_moment: Vector3
    ) -> HeldSections:
        """Return the arm at rest; apply the load in steps where the whole load fails."""
        contraction = self._checked_actuation(actuation)
        force = self._tip_weight + finite_array(tip_force, (3,), 'tip_force')
        whole = self.rod.load(force, finite_array(tip_moment, (3,), 'tip_moment'))
        bend = self._weightless.configuration_of(contraction)
        held = self._found_under(contraction, whole, bend)
        done, pace = 0.0, _FIRST_SHARE
        while held is None:
            share = min(done + pace, 1.0)
            part = Loads(share * whole.forces, share * whole.moment)
            found = self._found_under(contraction, part, bend)
            if found is None:
                pace *= 0.5
                if pace < _LEAST_SHARE:
                    pulled = ', '.join(
                        f'{n} {1e3 * c:.3f} mm' for n, c in zip(self.actuator_names, contraction)
                    )
                    raise ModelError(
                        f'no stable rest beyond {100.0 * done:.0f} % of weight and load, '
                        f'with contractions {pulled}'
                    )
            elif share == 1.0:
                held = found
            else:
                done, bend = share, found.bend
        self.rod.check_the_only(held, whole)
        return held

    def _found_under(self, contraction: Array, load: Loads, start: Array) -> HeldSections | None:
        """Return the stable rest near a start (dof,) [rad], or None if none is found."""
        bend, guided, nearly = start.copy(), [], []
        straight = self._straight(start)
        if straight:
            try:
                held = self.rod.rest_near(start, load)
            except ModelError:
                return None
            for k in straight:
                wound = contraction[self._columns[k]]
                lean, limited = self._pulled.leaning(k, held, wound)
                bend[2 * k : 2 * k + 2], by = lean, math.hypot(*lean)
                if by < STRAIGHT_RAD and not self._pulled.has_play(wound):
                    guided.append(k)
                elif limited and by < _LITTLE_RAD:
                    nearly.append(k)
        found = self._balanced(contraction, load, bend, guided)
        if found is not None:
            return found
        nearly += [
            k
            for k, columns in enumerate(self._columns)
            if k not in straight and self._pulled.is_tight(k, start, contraction[columns])
        ]
        if not nearly:
            return None
        # With so little play, Newton's method oscillates: treat these sections as guided too.
        return self._balanced(contraction, load, bend, guided + nearly)

    def _balanced(
        self, contraction: Array, load: Loads, bend: Array, guided: list[int]
    ) -> HeldSections | None:
        """Return the stable rest near `bend` (dof,), or None; `guided` sections keep theirs."""
        state = self._residual(contraction, load, bend, None, guided)
        if state is None:
            return None
        for _ in range(_MAX_ROUNDS):
            held, missing, slope = state
            try:
                step = np.linalg.solve(slope, missing)
            except np.linalg.LinAlgError:
                return None
            size = float(np.linalg.norm(step))
            if size <= _FOUND:
                symmetric = 0.5 * (slope + slope.T)
                return held if np.linalg.eigvalsh(symmetric)[0] > 0.0 else None
            share, accepted = min(1.0, _MAX_STEP_RAD / size), None
            for _ in range(_MAX_HALVINGS):
                trial = self._residual(contraction, load, held.bend + share * step, held, guided)
                if trial is not None:
                    following = np.linalg.solve(slope, trial[1])
                    if float(np.linalg.norm(following)) <= (1.0 - 0.25 * share) * size:
                        accepted = trial
                        break
                share *= 0.5
            if accepted is None:
                if size > 1e2 * _FOUND:
                    return None
                return held
            state = accepted
        return None

    def _straight(self, bend: Array) -> list[int]:
        """Return the indices of the sections that are straight at `bend` (dof,)."""
        return [
            k
            for k in range(len(self.sections))
            if math.hypot(*bend[2 * k : 2 * k + 2]) < STRAIGHT_RAD
        ]

    def _residual(
        self,
        contraction: Array,
        load: Loads,
        bend: Array,
        near: HeldSections | None,
        guided: list[int],
    ) -> tuple[HeldSections, Array, Array] | None:
        """
        Return the rest, the surplus (dof,) [N m] of the cables' moments, and minus its slope.

        The slope is d surplus / d bend (dof, dof). Sections in `guided` keep their bends. None if
        there is no rest, or if the cables have no equilibrium at it.
        """
        try:
            held = self.rod.rest_near(bend, load, near)
        except ModelError:
            return None
        missing, slope = -held.moments, held.stiffness.copy()
        for k, columns in enumerate(self._columns):
            two = slice(2 * k, 2 * k + 2)
            if k in guided:
                missing[two], slope[two] = 0.0, 0.0
                continue
            found = self._pulled.moments(k, held, contraction[columns])
            if found is None:
                return None
            missing[two] += found.moments
            slope[two] -= found.by_bend
        for k in guided:
            slope[:, 2 * k : 2 * k + 2] = 0.0
            slope[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = np.eye(2)
        return held, missing, slope
