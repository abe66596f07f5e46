"""Cables that cut into sections under weight: their pull at rest, and their moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.cable_equilibrium_kernels import (
    OVERPULL_TOLERANCE_M,
    STRAIGHT_RAD,
    balance,
    equilibrium_jacobian_into,
)
from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm
from softarm_ros.models.cable_driven.cable_statics_kernels import OK
from softarm_ros.models.cable_driven.loaded_cable_kernels import loaded_contractions_into
from softarm_ros.models.cable_driven.slack_kernels import (
    JUST_TAUT_M,
    least_bend,
    taut_bend_jacobian_into,
)
from softarm_ros.models.cable_driven.weighted_sections import HeldSections, WeightedSections

_MAX_LEANING_RAD = 0.5
# From this bend on, cables can cut in by as much as the overpull tolerance.
_TIGHT_RAD = 2e-2


@dataclass(frozen=True)
class CablePull:
    """Contractions (m,) [m], tensions (m,) [N] and d contraction / d bend (m, dof) [m/rad]."""

    contraction: Array
    tension: Array
    by_bend: Array


@dataclass(frozen=True)
class CableMoments:
    """Moments (2,) [N m] of a section's cables; d / d bend (2, dof), d / d contraction (2, m)."""

    moments: Array
    by_bend: Array
    by_contraction: Array


class PulledSections:
    """
    Statics of the cables of an arm whose sections sag, section by section.

    Parameters
    ----------
    rod
        The sections under weight.
    weightless
        The same arm without weight; supplies stiffnesses and error messages.
    columns
        Per section, the indices of its cables among all cables.
    paths
        Per section, (m, 3): a_x, a_y [m] and angle [rad] of its cables.

    """

    def __init__(
        self,
        rod: WeightedSections,
        weightless: CableStaticsArm,
        columns: Sequence[NDArray[np.intp]],
        paths: Sequence[Array],
    ) -> None:
        self._rod, self._weightless = rod, weightless
        self._columns, self._paths = columns, paths
        self._count = len(weightless.cables)
        self._stiffnesses = [
            np.array(
                [s.length_m, s.endcap_length_m, s.bending_stiffness_N_m2,
                 s.cutting_in_stiffness_N_m2]
            )
            for s in weightless.sections
        ]  # fmt: skip

    def pull(self, held: HeldSections) -> CablePull:
        """Return the pull of the cables that hold a rest; all other cables are just taut."""
        m, dof = self._count, len(held.bend)
        longer, longer_by = self._rod.lengthening(held)
        pull = CablePull(np.empty(m), np.empty(m), np.zeros((m, dof)))
        for k, columns in enumerate(self._columns):
            two = slice(2 * k, 2 * k + 2)
            count = len(columns)
            contraction, tension = np.empty(count), np.empty(count)
            by_bend, by_held = np.empty((count, 2)), np.empty((count, 2))
            status = loaded_contractions_into(
                held.bend[two], held.moments[two], self._stiffnesses[k], self._paths[k],
                contraction, tension, by_bend, by_held,
            )  # fmt: skip
            if status != OK:
                section = self._weightless.section(k)
                bx, by = held.bend[two]
                raise section.error(status, float(bx), float(by), contraction)
            pull.contraction[columns], pull.tension[columns] = contraction - longer[k], tension
            rows = by_held @ held.stiffness[two] - longer_by[k]
            rows[:, two] += by_bend
            pull.by_bend[columns] = rows
        return pull

    def moments(self, k: int, held: HeldSections, contraction: Array) -> CableMoments | None:
        """
        Return the moments of the cables of section k at contractions (m,) [m].

        None if a cable would be shorter than its chord, or if taut cables hold the section
        straight.
        """
        two = slice(2 * k, 2 * k + 2)
        (bx, by), count = held.bend[two], len(contraction)
        longer, longer_by = self._rod.lengthening(held)
        wound = contraction + longer[k]
        section, path = self._stiffnesses[k], self._paths[k]
        slack = wound < path[:, :2] @ held.bend[two] - JUST_TAUT_M
        if math.hypot(bx, by) <= STRAIGHT_RAD and slack.all():  # not covered by the kernels
            return CableMoments(np.zeros(2), np.zeros((2, len(held.bend))), np.zeros((2, count)))
        possible, rx, ry, jxx, jxy, jyx, jyy = balance(
            bx, by, wound, section, path, np.empty(count), np.empty(count)
        )
        own = np.empty((2, count))
        if not possible or not equilibrium_jacobian_into(bx, by, wound, section, path, own):
            return None
        # The kernels return the moments divided by K_b / L, minus the section's own bend b.
        gain = section[2] / section[0]
        slope = np.array([[jxx, jxy], [jyx, jyy]])
        by_contraction = -gain * slope @ own
        by_bend = np.outer(by_contraction.sum(axis=1), longer_by[k])
        by_bend[:, two] += gain * (slope + np.eye(2))
        return CableMoments(gain * (np.array([rx, ry]) + held.bend[two]), by_bend, by_contraction)

    def has_play(self, contraction: Array) -> bool:
        """Return whether all cables of a straight section are slack at contractions (m,) [m]."""
        return bool(np.all(contraction < -OVERPULL_TOLERANCE_M))

    def is_tight(self, k: int, bend: Array, contraction: Array) -> bool:
        """Return whether cables of section k conflict at a bend too small for them to cut in."""
        overpull = least_bend(contraction, self._paths[k])[2]
        small = math.hypot(*bend[2 * k : 2 * k + 2]) < _TIGHT_RAD
        return bool(small and 0.0 < overpull <= OVERPULL_TOLERANCE_M)

    def leaning(self, k: int, held: HeldSections, contraction: Array) -> tuple[Array, bool]:
        """
        Return the lean (2,) [rad] of section k when released from straight.

        The lean is the bend due to weight and load, as far as the cables at contractions (m,) [m]
        allow it without cutting in. The second result tells whether the cables limit it.
        """
        length, _, bending, _ = self._stiffnesses[k]
        push = -length / bending * held.moments[2 * k : 2 * k + 2]
        push *= min(1.0, _MAX_LEANING_RAD / max(float(np.linalg.norm(push)), _MAX_LEANING_RAD))
        path = self._paths[k]
        bx, by, _ = least_bend(contraction - path[:, :2] @ push, path)
        return push + np.array([bx, by]), bool(bx != 0.0 or by != 0.0)

    def guided(self, k: int, held: HeldSections, contraction: Array) -> Array:
        """Return d bend / d contraction (2, m) [rad/m] of section k, straight on taut cables."""
        jacobian = np.empty((2, len(contraction)))
        bx, by = held.bend[2 * k : 2 * k + 2]
        taut_bend_jacobian_into(bx, by, contraction, self._paths[k], jacobian)
        return jacobian
