"""Search for the least chamber extensions that bring a pneumatic arm's tip to a pose."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose
from softarm_ros.models.bounded_least_squares import Rows
from softarm_ros.models.inverse import End, Outcome, PoseTarget, values_at_limits
from softarm_ros.models.pneumatic.common_softening import CommonSoftening
from softarm_ros.models.stepped_search import Place, SteppedProblem

if TYPE_CHECKING:
    from softarm_ros.models.pneumatic.chamber_arm import ChamberArm

_MAX_STEP = 0.25  # of the coordinates' scales


class ExtensionProblem(SteppedProblem):
    """Search for the least extensions (dof,) [m] within their ranges for a pose under a load."""

    def __init__(self, arm: ChamberArm, tip_force: Array, with_orientation: bool) -> None:
        self._arm = arm
        self._tip_force = tip_force
        self._with_orientation = with_orientation
        self._position_only = not (with_orientation or tip_force.any())
        self.scale = arm.configuration_scale
        self.max_step = _MAX_STEP * self.scale
        self.ranges = ((np.zeros(len(self.scale)), arm.max_extension_m),)
        # Where chambers soften their section together, the range of one extension depends on the
        # others; for all other chambers `ranges` are the ranges of their pressures.
        self._together = [
            (slice(3 * k, 3 * k + 3), curve)
            for k, curve in enumerate(arm.arm.curves)
            if isinstance(curve, CommonSoftening)
        ]

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return starts with sections bent towards the target, in equal or twisted directions."""
        azimuth = math.atan2(target.position[1], target.position[0])
        shares = np.linspace(0.0, 1.0, len(self._arm.arm.sections))
        for twist, bend in itertools.product((0.0, 1.5, -1.5), (0.4, 0.8)):
            angles = azimuth + twist * (shares - 0.3)
            bends = bend * np.stack([np.cos(angles), np.sin(angles)], axis=1).ravel()
            yield self._arm.of_bends(bends)

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the place at extensions (dof,) [m]; a posture has a position without load."""
        arm, force, rows = self._arm, self._tip_force, self._rows(unknowns)
        if not self._position_only:
            bends = arm.bends_and_lengths(unknowns)
            return Place(
                unknowns,
                arm.arm.section_tips_under(bends, force)[-1],
                lambda: arm.by_extensions(arm.arm.tip_twists(bends, force)),
                # Six conditions leave no room for a preference.
                None if self._with_orientation else arm.preferred_configuration(unknowns),
                rows,
            )
        posture = self._arm.posture_of(unknowns, None if near is None else near.state)
        tip = pose(np.eye(3), posture.tip)
        return Place(unknowns, tip, lambda: posture.tip_jacobian, posture.preferred, rows, posture)

    def effort(self, end: End) -> float:
        """Return the norm of the extensions in units of their scales."""
        return float(np.linalg.norm(end.unknowns / self.scale))

    def outcome(self, end: End) -> Outcome:
        """Return the pressures, within their range, and the shape for the extensions of an end."""
        pressures = np.zeros(len(end.unknowns))
        for k, curve in enumerate(self._arm.arm.curves):
            three = slice(3 * k, 3 * k + 3)
            if isinstance(curve, CommonSoftening):
                pressures[three], _ = curve.needed(end.unknowns[three])
            else:
                pressures[three] = curve.pressures(end.unknowns[three])
        pressures = np.minimum(pressures, self._arm.max_pressure_Pa)
        if self._tip_force.any() or self._together:
            return Outcome(pressures, self._arm.forward(pressures, self._tip_force))
        return Outcome(pressures, self._arm.shape_of(end.unknowns))

    def limits_met(self, end: End) -> list[str]:
        """Return texts of the chambers at rest or at the end of their range."""
        names, (low, high) = self._arm.configuration_names, self.ranges[0]
        met = values_at_limits(names, end.unknowns, (low, high), 'mm', 1e3)
        for three, curve in self._together:
            pressures, most = (
                curve.needed(end.unknowns[three])[0],
                self._arm.max_pressure_Pa[three],
            )
            chambers = self._arm.actuator_names[three]
            met += values_at_limits(chambers, pressures, (-most, most), 'kPa', 1e-3)
        return met

    def _rows(self, unknowns: Array) -> Rows | None:
        """Return the rows that keep pressures within their range, in shares of it."""
        if not self._together:
            return None
        count = 3 * len(self._together)
        sides, room = np.zeros((count, len(unknowns))), np.empty(count)
        for i, (three, curve) in enumerate(self._together):
            most, own = self._arm.max_pressure_Pa[three], slice(3 * i, 3 * i + 3)
            pressures, slope = curve.needed(unknowns[three])
            sides[own, three] = slope / most[:, None]
            room[own] = 1.0 - pressures / most
        return Rows(sides, np.full(count, -np.inf), room)
