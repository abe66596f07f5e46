"""Cosserat-rod model of arms of cable-driven sections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array, real_array
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import (
    ZERO3,
    InverseSolution,
    ModelError,
    Vector3,
)
from softarm_ros.models.cable_driven.held_bending_arm import HeldBendingArm, HeldPosture
from softarm_ros.models.cable_driven.rod_contractions import RodContractions
from softarm_ros.models.cable_driven.rod_rest import RodRest
from softarm_ros.models.cable_driven.rod_statics import RodStatics
from softarm_ros.models.cable_driven.slack_kernels import least_bend
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.models.cosserat.shots import DeadLoad
from softarm_ros.models.inverse import PoseTarget, find_pose

_NEAR_M = 1e-3  # a row whose contractions differ by less starts from the previous row


class RodPosture(HeldPosture):
    """`Posture` of the rod."""

    @cached_property
    def actuation(self) -> Array:
        """See `Posture`."""
        return self._arm.rod.contractions(self.held)

    @cached_property
    def actuation_jacobian(self) -> Array:
        """See `Posture`."""
        return self._arm.rod.contractions_by_bend(self.held)

    @cached_property
    def preferred(self) -> Array:
        """See `Posture`."""
        return self._arm.preferred_from(self.held)


class CableRodArm(HeldBendingArm):
    """
    Sections as one Cosserat rod with rigid endcaps, bent by cables of given length.

    The model covers weight, a load at the tip, a backbone that shortens, cables that stretch or go
    slack, and cables of later sections that pass through earlier ones. Cables cut in as on arcs
    (`rod_statics`).

    Configuration: the bending vector from one section tip to the next [rad]. Measured section tips
    determine it exactly, whatever the shape between them.

    Parameters
    ----------
    sections, cables
        As for `BendingArm`; either all cables are pairs or none. `bends` of pairs are ignored: the
        effect of a pair follows from geometry and elasticity.
    gravity_m_s2 : (3,)
        Base frame.
    tip_weight_N : (3,)
        Permanent load at the tip, base frame.
    pretension_m : float
        Length by which all cables are wound beyond the actuation. With single cables, the
        controller applies it, so that every cable keeps at least its tension at rest. With pairs,
        it is the pretension at rest.
    steps : int
        Number of integration steps in each section.
    within
        As for `BendingArm`.

    Raises
    ------
    ValueError
        As for `BendingArm`; if only some cables are pairs; if there are not two pairs per section.
    ModelError
        If the arm has no stable rest, or if there is pretension but neither the backbone nor the
        cables give way.

    """

    name = 'cosserat'
    POSTURE = RodPosture

    def __init__(
        self,
        sections: Sequence[SectionConfig],
        cables: Sequence[CableConfig],
        gravity_m_s2: Vector3 = ZERO3,
        tip_weight_N: Vector3 = ZERO3,
        *,
        pretension_m: float = 0.0,
        steps: int = 3,
        within: ActuationRange | None = None,
    ) -> None:
        super().__init__(sections, cables, within)
        if any(cable.pair != self.cables[0].pair for cable in self.cables):
            raise ValueError('some cables are pairs, others are not; expected all or none')
        gravity = finite_array(gravity_m_s2, (3,), 'gravity_m_s2')
        self._tip_weight = finite_array(tip_weight_N, (3,), 'tip_weight_N')
        self.rod = RodStatics(self.sections, self.cables, gravity, pretension_m, steps)
        self._own_load = self.rod.load(self._tip_weight, np.zeros(3))
        gives = any(s.axial_stiffness_N for s in self.sections) or all(
            c.stretch_m_N > 0.0 for c in self.cables
        )
        if pretension_m > 0.0 and not gives:
            raise ModelError(
                f'pretension_m = {pretension_m:g}: neither sections nor cables give way; expected '
                '0, or axial_stiffness_N of a section, or stretch_m_N of all cables'
            )
        still = np.zeros(len(self.cables))
        rest = self._rest(still)
        self._rest_bend = rest.bend
        if not self.rod.paired:
            self.rod.floor_N[:] = rest.tension

    def _rest(self, still: Array) -> RodRest:
        """Return the rod at zero contractions (m,); a ModelError suggests what to configure."""
        try:
            return self.rod.under(self.rod.wound(still), self._own_load, self._start_bend(still))
        except ModelError as error:
            raise ModelError(
                f'the arm does not stand at rest: {error}; pretension may hold it: '
                'model: {kind: cosserat, pretension_m: 0.002} (needs axial_stiffness_N '
                'of a section or stretch_m_N of all cables)'
            ) from error

    def _cable_paths(self, k: int) -> Array:
        own = super()._cable_paths(k)
        if not any(cable.pair for cable in self.cables):
            return own
        return np.concatenate([own, own * [-1.0, -1.0, 1.0] + [0.0, 0.0, math.pi]])

    @property
    def rest_configuration(self) -> Array:
        """The bends (dof,) [rad] with all contractions zero."""
        return self._rest_bend.copy()

    def preferred_configuration(self, configuration: Array) -> Array:
        """
        Return bends (dof,) [rad] that are equal, or for pairs, that need less contraction.

        For pairs, take one gradient step on the sum of squared contractions.
        """
        if not self.rod.paired:
            return super().preferred_configuration(configuration)
        return self.preferred_from(self._settled(configuration))

    def preferred_from(self, rest: RodRest) -> Array:
        """Return `preferred_configuration` of a rest that is already solved."""
        if not self.rod.paired:
            return super().preferred_configuration(rest.bend)
        slope = self.rod.contractions_by_bend(rest)
        step = slope.T @ self.rod.contractions(rest) / float(np.linalg.norm(slope, 2)) ** 2
        return np.asarray(rest.bend - step)

    # Actuation <-> configuration.

    def contraction_of(self, held: RodRest) -> Array:
        """Return the contractions (m,) [m] that hold the rod at a rest."""
        return self.rod.contractions(held)

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d actuation / d configuration (m, dof) [m/rad]."""
        return self.rod.contractions_by_bend(self._settled(configuration))

    def tensions_of(self, configuration: Array) -> Array:
        """Return the tensions (n,) [N] of all cables that hold a configuration, pair by pair."""
        return self._settled(configuration).tension.copy()

    def section_tips_of(self, actuations: Array) -> Array:
        """
        Return the section tips (n, sections, 4, 4) of many actuations (n, m), row by row.

        A row close to the previous one starts from its solution, which is fast for recordings.
        Rows are NaN where the model finds no stable rest.
        """
        rows = real_array(actuations, 'actuations')
        tips = np.full((len(rows), len(self.sections), 4, 4), math.nan)
        rest: RodRest | None = None
        for i, row in enumerate(rows):
            contraction = self._checked_actuation(row)
            near = rest is not None and np.abs(row - rows[i - 1]).max() < _NEAR_M
            start = rest if near and rest is not None else self._start_bend(contraction)
            try:
                rest = self.rod.under(self.rod.wound(contraction), self._own_load, start)
            except ModelError:
                rest = None
                continue
            tips[i] = self.rod.section_tips(rest)
        return tips

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per contraction (6, m), base frame; slack cables: zero columns."""
        contraction = self._commanded(actuation)
        wound = self.rod.wound(contraction)
        rest = self.rod.under(wound, self._own_load, self._start_bend(contraction))
        return self.rod.twist_by_contraction(rest, wound)

    def _rest_under(self, actuation: Array, tip_force: Vector3, tip_moment: Vector3) -> RodRest:
        contraction = self._checked_actuation(actuation)
        force = self._tip_weight + finite_array(tip_force, (3,), 'tip_force')
        load: DeadLoad = self.rod.load(force, finite_array(tip_moment, (3,), 'tip_moment'))
        return self.rod.under(self.rod.wound(contraction), load, self._start_bend(contraction))

    def _start_bend(self, contraction: Array) -> Array:
        """Return the bends (dof,) [rad] of arcs under contractions (m,) [m]."""
        if self.rod.paired:
            return self.rod.arcs(contraction)
        bend = np.empty(2 * len(self.sections))
        for k, columns in enumerate(self._columns):
            bx, by, _ = least_bend(contraction[columns], self._paths[k])
            bend[2 * k], bend[2 * k + 1] = bx, by
        return bend

    def _found(
        self, target: PoseTarget, load: DeadLoad, guess: Array | None, tip_force: Vector3
    ) -> InverseSolution:
        """Return the solution of least bends, or for pairs of least contractions, for a pose."""
        if not self.rod.paired:
            return super()._found(target, load, guess, tip_force)
        limits = np.radians([s.max_bending_angle_deg for s in self.sections])
        problem = RodContractions(self.rod, self._bend_problem, limits, load, self.within)
        return find_pose(problem, target, guess, self.within)
