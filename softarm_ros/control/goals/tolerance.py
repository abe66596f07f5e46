"""How far a measured configuration may be from the one that is commanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softarm_ros.control.goals.goal_errors import GoalError, JointNamesError
from softarm_ros.geometry.arrays import Array

_UNMEASURED = ('velocity', 'acceleration')


class JointTolerance(Protocol):
    """
    What is asked of one coordinate, as control_msgs/JointTolerance has it.

    0 leaves it at the arm's own, which is none, for nothing measured leads a configuration;
    negative asks for none.
    """

    name: str
    position: float
    velocity: float
    acceleration: float


@dataclass(frozen=True)
class Tolerance:
    """
    What the measured configuration has to keep.

    Attributes
    ----------
    path, goal : (dof,)
        Distance of each coordinate from the commanded one, on the way and at its end, in the
        units of the configuration; infinite: none.
    time_s : float, optional
        How long the arm may take to be within `goal` once the reference rests at the end;
        infinite: as long as it likes. None: as long as the arm has for every goal.

    """

    path: Array
    goal: Array
    time_s: float | None = None

    @property
    def asks(self) -> bool:
        """Whether anything is asked of the measured configuration."""
        return bool(np.any(np.isfinite(self.path)) or np.any(np.isfinite(self.goal)))


def tolerance_of(
    path: Sequence[JointTolerance],
    goal: Sequence[JointTolerance],
    time_s: float,
    expected: Sequence[str],
) -> Tolerance:
    """
    Return what is asked of the configuration with coordinates of the `expected` names.

    Raises
    ------
    GoalError
        For names (JointNamesError) or values that cannot be, or that nothing measures.

    """
    allowed = np.inf if time_s < 0.0 else time_s
    return Tolerance(
        _positions('path_tolerance', path, expected),
        _positions('goal_tolerance', goal, expected),
        None if time_s == 0.0 else allowed,
    )


def _positions(field: str, given: Sequence[JointTolerance], expected: Sequence[str]) -> Array:
    asked = np.full(len(expected), np.inf)
    seen: set[str] = set()
    for i, joint in enumerate(given):
        if joint.name not in expected or joint.name in seen:
            why = 'named before' if joint.name in seen else 'unknown'
            raise JointNamesError(
                f'{field}[{i}].name = {joint.name!r} is {why}; expected each of '
                f'[{", ".join(expected)}] at most once'
            )
        seen.add(joint.name)
        if not np.isfinite(joint.position):
            raise GoalError(
                f'{field}[{i}].position = {joint.position}; expected a finite number (0: the '
                "arm's own, -1: none)"
            )
        for name in _UNMEASURED:
            value = getattr(joint, name)
            if not value <= 0.0:
                raise GoalError(
                    f'{field}[{i}].{name} = {value:g}: only positions of the configuration are '
                    'measured; expected 0 or -1'
                )
        if joint.position > 0.0:
            asked[list(expected).index(joint.name)] = joint.position
    return asked
