"""Search for bends that bring a pneumatic arm to a pose with at most two chambers per section."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import Vector3
from softarm_ros.models.bounded_least_squares import Rows
from softarm_ros.models.inverse import End, Outcome, PoseTarget, values_at_limits
from softarm_ros.models.pneumatic.chambers import CHAMBER_DIRECTIONS, bend_of_chambers
from softarm_ros.models.stepped_search import Place, SteppedProblem

if TYPE_CHECKING:
    from softarm_ros.models.pneumatic.angle_correction import PneumaticArm

TWO_CHAMBERS = 'with at most two chambers of a section under pressure'
_LEAST_WIDTH, _MOST_WIDTH = 1e-6, 1e-3  # of finite differences [rad]
_MAX_STEP_RAD = 0.5


class TwoChamberProblem(SteppedProblem):
    """
    Search for bends (2 sections,) [rad] by the paper's rule: the innermost chamber is at rest.

    The tip has a kink where another chamber becomes the passive one. Finite differences as wide as
    the last step cover both sides of a kink, so the steps do not oscillate across it.
    """

    def __init__(self, arm: PneumaticArm, tip_force: Vector3) -> None:
        self._arm, self._tip_force = arm, tip_force
        limits = np.repeat(np.radians([s.max_bending_angle_deg for s in arm.sections]), 2)
        self.scale = np.ones(len(limits))
        self.max_step = np.full(len(limits), _MAX_STEP_RAD)
        self.ranges = ((-limits, limits),)

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return starts with sections bent towards the target, alike or opposite."""
        x, y = target.position[:2]
        aside = math.hypot(x, y)
        toward = np.array([1.0, 0.0]) if aside < 1e-9 else np.array([x, y]) / aside
        for combo in itertools.product((0.9, 0.2, -0.6), repeat=len(self._arm.sections)):
            yield np.concatenate(
                [share * toward + 0.02 * toward[::-1] * (1, -1) for share in combo]
            )

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the place at bends (2 sections,) [rad]."""
        width = _LEAST_WIDTH
        if near is not None:
            moved = float(np.abs(unknowns - near.unknowns).max())
            width = max(_LEAST_WIDTH, min(_MOST_WIDTH, moved))

        def derivative() -> Array:
            columns = [
                displacement(self._tip(unknowns - width * e), self._tip(unknowns + width * e))
                for e in np.eye(unknowns.size)
            ]
            return np.column_stack(columns) / (2.0 * width)

        return Place(unknowns, self._tip(unknowns), derivative, rows=self._rows(unknowns))

    def effort(self, end: End) -> float:
        """Return the norm of the bends [rad]."""
        return float(np.linalg.norm(end.unknowns))

    def outcome(self, end: End) -> Outcome:
        """Return pressures and shape for the bends, with extensions clipped to the curves."""
        arm = self._arm
        configuration = arm.two_chamber_configuration(end.unknowns)
        for k, (section, curve) in enumerate(zip(arm.sections, arm.curves)):
            wanted = arm.extensions(k, configuration)
            within = np.clip(wanted, 0.0, curve.max_extension_m)
            if not np.array_equal(within, wanted):
                lengths = section.bending_length_m + within
                bent = bend_of_chambers(lengths, section.chamber_radius_m)
                configuration[3 * k : 3 * k + 3] = [*bent.bend, bent.length_m]
        shape = arm.shape_under(configuration, self._tip_force)
        return Outcome(arm.actuation_of(configuration), shape)

    def limits_met(self, end: End) -> list[str]:
        """Return texts of the bends at their limit and the chambers at the end of their curves."""
        arm = self._arm
        names = [f'{section.name}_bend_{axis}' for section in arm.sections for axis in 'xy']
        met = values_at_limits(names, end.unknowns, self.ranges[0], 'deg', math.degrees(1.0))
        configuration = arm.two_chamber_configuration(end.unknowns)
        for k, curve in enumerate(arm.curves):
            most = curve.max_extension_m
            full = arm.extensions(k, configuration) >= (1.0 - 1e-6) * most
            met += [
                f'{arm.actuator_names[3 * k + j]} extended by {1e3 * most[j]:.2f} mm'
                for j in np.flatnonzero(full)
            ]
        return met

    def _tip(self, bends: Array) -> Array:
        configuration = self._arm.two_chamber_configuration(bends)
        return self._arm.section_tips_under(configuration, self._tip_force)[-1]

    def _rows(self, bends: Array) -> Rows:
        """Return bounds on the extensions, radius (max_i u_i - u_j) . b, by the curves."""
        arm = self._arm
        count = 3 * len(arm.sections)
        matrix, room = np.zeros((count, bends.size)), np.empty(count)
        for k, (section, curve) in enumerate(zip(arm.sections, arm.curves)):
            three, two = slice(3 * k, 3 * k + 3), slice(2 * k, 2 * k + 2)
            inward = CHAMBER_DIRECTIONS @ bends[two]
            passive = int(np.argmax(inward))
            most = curve.max_extension_m
            radius = section.chamber_radius_m
            matrix[three, two] = radius * (CHAMBER_DIRECTIONS[passive] - CHAMBER_DIRECTIONS)
            matrix[three, two] /= most[:, None]
            room[three] = 1.0 - radius * (inward[passive] - inward) / most
        return Rows(matrix, np.full(count, -np.inf), room)
