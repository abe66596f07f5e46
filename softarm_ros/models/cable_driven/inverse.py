"""Inverse kinematics of bending sections: a compiled search for the bends of a tip pose."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import log_so3
from softarm_ros.models.cable_driven.pose_search_kernels import search_pose
from softarm_ros.models.inverse import End, Outcome, PoseTarget

if TYPE_CHECKING:
    from softarm_ros.models.cable_driven.bending_arm import BendingArm

# Bends [rad] of the starts: small, medium and large.
_START_BENDING_RAD = (0.35, 1.0, 1.8)


class BendProblem:
    """
    `PoseProblem` over the bending vectors (dof,) [rad], within their limits.

    A section bends only in directions its cables can hold. The search is compiled because path
    checks run it often, and steps in Python would be a hundred times slower.

    Parameters
    ----------
    arm
        The arm.
    lengths : (sections, 2)
        Length of arc and of one endcap [m].
    paths
        For each section (m, 3): a_x, a_y [m] and angle [rad] of its cables.

    """

    def __init__(self, arm: BendingArm, lengths: Array, paths: list[Array]) -> None:
        self._arm, self._lengths = arm, lengths
        self._limits = np.radians([s.max_bending_angle_deg for s in arm.sections])
        self._cables = np.concatenate(paths)
        self._first = np.cumsum([0, *(len(path) for path in paths)]).astype(np.int64)

    def descend(self, start: Array, target: PoseTarget, near: bool) -> End:
        """Return the end of the compiled search that starts at bends (dof,) [rad]."""
        bend = np.array(start, dtype=np.float64)
        residual = search_pose(
            bend,
            self._lengths,
            self._limits,
            self._cables,
            self._first,
            target.position,
            target.rotation,
            target.lever_m if target.with_orientation else 0.0,
            target.exact_m,
        )
        return End(bend, residual)

    def effort(self, end: End) -> float:
        """Return the sum of the squared bends."""
        return float(end.unknowns @ end.unknowns)

    def outcome(self, end: End) -> Outcome:
        """Return the contractions and the shape of the bends."""
        return Outcome(self._arm.actuation_of(end.unknowns), self._arm.shape_of(end.unknowns))

    def limits_met(self, end: End) -> list[str]:
        """Return the sections at their bending limits."""
        return [
            f'{section.name} at its {section.max_bending_angle_deg:g} deg bending limit'
            for k, section in enumerate(self._arm.sections)
            if math.degrees(math.hypot(*end.unknowns[2 * k : 2 * k + 2]))
            > section.max_bending_angle_deg - 1e-6
        ]

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return bends towards the target: sections alone, together and in opposite directions."""
        sections = len(self._limits)
        towards = math.atan2(target.position[1], target.position[0])
        patterns = [np.ones(sections)]
        if sections > 1:
            alternating = np.array([(-1.0) ** k for k in range(sections)])
            patterns += [np.eye(sections)[0], np.eye(sections)[-1], alternating, -alternating]
        starts = []
        for pattern in patterns:
            for bending in _START_BENDING_RAD:
                size = np.minimum(bending, 0.9 * self._limits) * pattern
                for azimuth in (towards, towards + 0.5 * math.pi) if sections > 1 else (towards,):
                    starts.append(
                        np.outer(size, [math.cos(azimuth), math.sin(azimuth)]).reshape(-1)
                    )
        if sections == 1:  # a target on the far side of the base needs the opposite bend
            starts += [-start for start in starts]
        if target.with_orientation:
            rotation_vector = log_so3(target.rotation)
            share = np.array([rotation_vector[1], -rotation_vector[0]]) / sections
            starts.append(np.tile(share, sections))
        return starts
