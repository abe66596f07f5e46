"""Inverse kinematics of bending sections: deterministic starts around a compiled search."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.rotations import log_so3
from softarm_ros.models.arm_model import Array
from softarm_ros.models.cable_driven.pose_search_kernels import search_pose

# Bending [rad] of the starts: little, medium and strong.
_START_BENDING_RAD = (0.35, 1.0, 1.8)
_ANY_ROTATION = np.eye(3)


class PoseSearch:
    """
    Finds bending vectors that bring the tip to a position, optionally with an orientation.

    Parameters
    ----------
    lengths : (sections, 2)
        Length of arc and of one endcap [m].
    limits : (sections,)
        Largest bending angle [rad].
    paths
        For each section (m, 3): a_x, a_y [m] and angle [rad] of its cables. A section bends only
        in directions its cables can hold.

    """

    tolerance_m = 1e-6

    def __init__(self, lengths: Array, limits: Array, paths: Sequence[Array]) -> None:
        self._lengths = lengths
        self._limits = limits
        self._cables = np.concatenate(paths)
        self._first = np.cumsum([0, *(len(path) for path in paths)]).astype(np.int64)
        self.lever_m = 0.5 * float(np.mean(lengths[:, 0] + 2.0 * lengths[:, 1]))

    def best(
        self, position: Array, orientation: Array | None, guess: Array | None
    ) -> tuple[Array, float]:
        """
        Return bending vectors (dof,) [rad] and the error left [m].

        A guess that leads to the target decides; otherwise the least bent of the solutions found
        from the starts is returned, or the best approach if there is none.
        """
        if guess is not None:
            bend, error = self._improve(guess, position, orientation)
            if error <= self.tolerance_m:
                return bend, error
        found = [
            self._improve(start, position, orientation)
            for start in self._starts(position, orientation)
        ]
        if guess is not None:
            found.append((bend, error))
        reached = [(bend, error) for bend, error in found if error <= self.tolerance_m]
        if reached:
            return min(reached, key=_bending_effort)
        return min(found, key=_error)

    def _improve(
        self, start: Array, position: Array, orientation: Array | None
    ) -> tuple[Array, float]:
        """Return where the search from one start ends, and the error left [m]."""
        bend = start.copy()
        error = search_pose(
            bend,
            self._lengths,
            self._limits,
            self._cables,
            self._first,
            position,
            _ANY_ROTATION if orientation is None else orientation,
            0.0 if orientation is None else self.lever_m,
        )
        return bend, error

    def _starts(self, position: Array, orientation: Array | None) -> list[Array]:
        """Return the starts: bends towards the target, alone, together and against each other."""
        sections = len(self._limits)
        towards = math.atan2(position[1], position[0])
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
        if orientation is not None:
            rotation_vector = log_so3(orientation)
            share = np.array([rotation_vector[1], -rotation_vector[0]]) / sections
            starts.append(np.tile(share, sections))
        return starts


def _bending_effort(solution: tuple[Array, float]) -> float:
    return round(float(solution[0] @ solution[0]), 9)  # equal up to rounding: the first start wins


def _error(solution: tuple[Array, float]) -> float:
    return round(solution[1], 10)
