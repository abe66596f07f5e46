"""Constant-curvature sections driven by antagonistic pairs of cables, one motor per pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array, real_array
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ZERO3, InverseSolution, ModelError, Shape, Vector3
from softarm_ros.models.cable_driven.bending_arm import BendingArm
from softarm_ros.models.cable_driven.least_contractions import LeastContractions
from softarm_ros.models.cable_driven.load_give import (
    bends_under_load,
    give_of_load,
    section_tips,
)
from softarm_ros.models.config import BendConfig, CableConfig, SectionConfig
from softarm_ros.models.inverse import find_pose, pose_target

# Singular values below this share of the largest count as zero: a bend that no pair can make.
_RANK_TOLERANCE = 1e-6
_STEP_RAD = 1e-5  # step of finite differences


class PairedCablesArm(BendingArm):
    """
    Sections bend in circular arcs; their bends are a linear map of the contractions of the pairs.

    A pair pulls to both sides, so no cable is ever slack. With B (dof, m) [rad/m]

        b = b_rest + B c,    c = A (b - b_rest),    A the pseudo-inverse of B.

    By geometry, a cable in direction e, at distance r in its own section and at distance r_p in
    each earlier section p, is shortened by c = r e . b + sum_p r_p e . b_p. This gives A row by
    row (Qi et al. 2024, eq. 39, for the own section). If the pairs have `bends`, B consists of
    these identified values.

    Parameters
    ----------
    sections
        From base to tip. Sections that have a give also bend under a load at the tip.
    cables
        One for each pair; all with `bends` or none.
    tip_weight_N : (3,)
        Permanent load at the tip, base frame.
    within
        As for `BendingArm`.

    Raises
    ------
    ValueError
        If a cable is no pair, if only some have `bends`, if `bends` names an unknown section or
        one section twice, or if the pairs cannot bend every section to every side.

    """

    name = 'constant_curvature'

    def __init__(
        self,
        sections: Sequence[SectionConfig],
        cables: Sequence[CableConfig],
        tip_weight_N: Vector3 = ZERO3,
        within: ActuationRange | None = None,
    ) -> None:
        super().__init__(sections, cables, within)
        self._gives = np.array([s.bend_per_moment_rad_N_m for s in self.sections])
        self._tip_weight = finite_array(tip_weight_N, (3,), 'tip_weight_N')
        self._sags = bool(np.any(self._gives) and np.any(self._tip_weight))
        for cable in self.cables:
            if not cable.pair:
                raise ValueError(f'cable {cable.name} is no pair; expected pairs only')
        self._rest = np.radians([s.rest_bend_deg for s in self.sections]).reshape(-1)
        identified = [cable.name for cable in self.cables if cable.bends]
        if identified and len(identified) < len(self.cables):
            raise ValueError(f'only {", ".join(identified)} have bends; expected all or none')
        if identified:
            self._bends = identified_bends(self.sections, self.cables)
            self._contractions = _inverse_of(self._bends, self.cables, self._rest.size)
        else:
            self._contractions = nominal_contractions(self.sections, self.cables)
            self._bends = _inverse_of(self._contractions, self.cables, self._rest.size)
        self._contraction_problem = LeastContractions(self, self._bend_problem)

    @property
    def bends_per_contraction(self) -> Array:
        """B (dof, m) [rad/m]."""
        return self._bends.copy()

    @property
    def rest_configuration(self) -> Array:
        """The bending vectors (dof,) [rad] with all contractions zero."""
        return self._loaded(self._rest, ZERO3, ZERO3)

    def preferred_configuration(self, configuration: Array) -> Array:
        """
        Return a configuration (dof,) [rad] in which the pairs share the work better.

        Take one gradient step on the sum of squared contractions, short enough to reduce it.
        """
        away = self._checked_configuration(configuration) - self._rest
        largest = float(np.linalg.norm(self._contractions, 2))
        gradient = self._contractions.T @ (self._contractions @ away)
        return np.asarray(self._rest + away - gradient / largest**2)

    def actuation_of(self, configuration: Array) -> Array:
        """Return the contractions (m,) [m] that hold a configuration (dof,) [rad]."""
        bend = self._checked_configuration(configuration)
        self._require_possible(bend)
        return np.asarray(self._contractions @ (bend - self._sag(bend) - self._rest))

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d contraction / d bend (m, dof) [m/rad]: A, if the tip carries no weight."""
        bend = self._checked_configuration(configuration)
        return np.asarray(self._contractions @ (np.eye(bend.size) - self._sag_slope(bend)))

    def configuration_of(self, actuation: Array) -> Array:
        """
        Return the configuration (dof,) [rad] under contractions (m,) [m].

        Raises
        ------
        ModelError
            If a section's arc would close or its inner cable would vanish.

        """
        return self._bend_under(actuation, ZERO3, ZERO3)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under contractions (m,) [m] and a load at the tip [N, N m].

        Raises
        ------
        ModelError
            As for `configuration_of`; if a contraction is out of range; for a load, if no section
            has a give; if no balance is found.

        """
        if not np.any(self._gives):
            self._refuse_load('tip_force', tip_force)
            self._refuse_load('tip_moment', tip_moment)
        return self.shape_of(self._bend_under(self._commanded(actuation), tip_force, tip_moment))

    def section_tips_of(self, actuations: Array) -> Array:
        """
        Return the section tips (n, sections, 4, 4) of many actuations (n, m) at once.

        Rows are NaN where an arc would close or an inner cable would vanish.
        """
        bends = self._rest + real_array(actuations, 'actuations') @ self._bends.T
        if self._sags:
            count = (len(bends), 1)
            bends = bends_under_load(
                bends, self._lengths, self._gives, np.tile(self._tip_weight, count),
                np.zeros((len(bends), 3)),
            )  # fmt: skip
        angles = np.linalg.norm(bends.reshape(len(bends), -1, 2), axis=2)
        tips = section_tips(bends, self._lengths)
        tips[np.any(angles >= [self._closing(s) for s in self.sections], axis=1)] = np.nan
        return tips

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per contraction (6, m), base frame, linear first [m/m, rad/m]."""
        bend = self.configuration_of(self._commanded(actuation))
        return np.asarray(self.twist_jacobian(bend) @ self.bend_slope(bend))

    def bend_slope(self, bend: Array) -> Array:
        """Return d bend / d contraction (dof, m) [rad/m] at bends (dof,), with the tip weight."""
        if not self._sags:
            return self._bends
        held = np.eye(bend.size) - self._sag_slope(bend)
        return np.asarray(np.linalg.solve(held, self._bends))

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the actuation that brings the tip to a position, and to an orientation if given.

        Works as `BendingArm.inverse`, but returns the least contractions (root of the sum of
        squares) that reach the pose, not the least bends: pairs cross sections, so small bends of
        the single sections may need a large contraction of one pair.
        """
        self._refuse_load('tip_force', tip_force)  # only the permanent tip weight is supported
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else self._checked_actuation(guess, 'guess')
        return find_pose(self._contraction_problem, target, start, self.within)

    def _cable_paths(self, k: int) -> Array:
        own = super()._cable_paths(k)
        opposite = own * [-1.0, -1.0, 1.0] + [0.0, 0.0, math.pi]
        return np.concatenate([own, opposite])

    def _bend_under(self, actuation: Array, force: Vector3, moment: Vector3) -> Array:
        unloaded = self._rest + self._bends @ self._checked_actuation(actuation)
        bend = self._loaded(unloaded, force, moment)
        self._require_possible(bend)
        return bend

    def _loaded(self, unloaded: Array, force: Vector3, moment: Vector3) -> Array:
        """Return the bends (dof,) under the permanent tip weight and an additional load."""
        whole = self._tip_weight + finite_array(force, (3,), 'tip_force')
        turning = finite_array(moment, (3,), 'tip_moment')
        if not (np.any(self._gives) and (np.any(whole) or np.any(turning))):
            return np.array(unloaded)
        return bends_under_load(
            unloaded[None], self._lengths, self._gives, whole[None], turning[None]
        )[0]

    def _sag(self, bend: Array) -> Array:
        """Return the part (dof,) of the bends that the permanent tip weight causes."""
        if not self._sags:
            return np.zeros(bend.size)
        return give_of_load(
            bend[None], self._lengths, self._gives, self._tip_weight[None], np.zeros((1, 3))
        )[0]

    def _sag_slope(self, bend: Array) -> Array:
        """Return the derivative (dof, dof) of `_sag`, by finite differences."""
        if not self._sags:
            return np.zeros((bend.size, bend.size))
        steps = _STEP_RAD * np.eye(bend.size)
        near = np.concatenate([bend + steps, bend - steps])
        weights = np.tile(self._tip_weight, (len(near), 1))
        sag = give_of_load(near, self._lengths, self._gives, weights, np.zeros_like(weights))
        ahead, behind = np.split(sag, 2)
        return np.asarray((ahead - behind).T / (2.0 * _STEP_RAD))

    @staticmethod
    def _closing(section: SectionConfig) -> float:
        """Return the angle [rad] at which an arc closes or its inner cable vanishes."""
        return min(2.0 * math.pi, section.length_m / section.cable_radius_m)

    def _require_possible(self, bend: Array) -> None:
        for section, (bx, by) in zip(self.sections, bend.reshape(-1, 2)):
            limit = self._closing(section)
            if math.hypot(bx, by) >= limit:
                raise ModelError(
                    f'section {section.name}: bending by {math.degrees(math.hypot(bx, by)):.1f} '
                    f'deg is beyond {math.degrees(limit):.1f} deg, where its arc closes or its '
                    'inner cable vanishes'
                )


def nominal_contractions(
    sections: Sequence[SectionConfig], cables: Sequence[CableConfig]
) -> Array:
    """Return A (m, dof) [m/rad] by geometry: contraction of each pair per bend of each section."""
    index = {section.name: k for k, section in enumerate(sections)}
    matrix = np.zeros((len(cables), 2 * len(sections)))
    for row, cable in zip(matrix, cables):
        angle = math.radians(cable.angle_deg)
        direction = np.array([math.cos(angle), math.sin(angle)])
        own = index[cable.section]
        for k, section in enumerate(sections[:own]):
            row[2 * k : 2 * k + 2] = section.passing_radius_m * direction
        row[2 * own : 2 * own + 2] = sections[own].cable_radius_m * direction
    return matrix


def identified_bends(sections: Sequence[SectionConfig], cables: Sequence[CableConfig]) -> Array:
    """Return B (dof, m) [rad/m] from the `bends` of the cables; sections not named get zeros."""
    index = {section.name: k for k, section in enumerate(sections)}
    matrix = np.zeros((2 * len(sections), len(cables)))
    for j, cable in enumerate(cables):
        named: set[str] = set()
        for bend in cable.bends:
            if bend.section not in index or bend.section in named:
                wrong = 'is named twice' if bend.section in named else 'does not exist'
                raise ValueError(f'bends of {cable.name}: section {bend.section!r} {wrong}')
            named.add(bend.section)
            angle = math.radians(bend.angle_deg)
            k = index[bend.section]
            matrix[2 * k, j] = bend.gain_rad_m * math.cos(angle)
            matrix[2 * k + 1, j] = bend.gain_rad_m * math.sin(angle)
    return matrix


def bends_of_matrix(
    matrix: Array, sections: Sequence[SectionConfig], column: int
) -> tuple[BendConfig, ...]:
    """Return column `column` of B (dof, m) [rad/m] as `bends` entries of a rig file."""
    entries = []
    for section, (x, y) in zip(sections, matrix[:, column].reshape(-1, 2)):
        gain, angle = math.hypot(x, y), math.degrees(math.atan2(y, x))
        entries.append(BendConfig(section=section.name, gain_rad_m=gain, angle_deg=angle))
    return tuple(entries)


def _inverse_of(matrix: Array, cables: Sequence[CableConfig], dof: int) -> Array:
    """Return the pseudo-inverse; raise ValueError if the pairs cannot make all bends."""
    rank = int(np.linalg.matrix_rank(matrix, tol=_RANK_TOLERANCE * np.linalg.norm(matrix, 2)))
    if rank < dof:
        names = ', '.join(cable.name for cable in cables)
        raise ValueError(f'the pairs {names} make only {rank} of {dof} bends independently')
    return np.asarray(np.linalg.pinv(matrix), dtype=np.float64)
