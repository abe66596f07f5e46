"""Tolerance of the measured configuration about the commanded one."""

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
    Tolerance of one coordinate, as in control_msgs/JointTolerance.

    0 stands for the arm's default, which is no tolerance, since feedback does not control the
    configuration; a negative value asks for no tolerance.
    """

    name: str
    position: float
    velocity: float
    acceleration: float


@dataclass(frozen=True)
class Tolerance:
    """
    Largest deviation of the measured configuration from the commanded one.

    Attributes
    ----------
    path, goal : (dof,)
        For each coordinate, during the motion and at its end, in the units of the configuration;
        infinite: no tolerance.
    time_s : float, optional
        Time within which the arm must be within `goal` once the reference rests at the end;
        infinite: no time-out. None: the default time-out of all goals.

    """

    path: Array
    goal: Array
    time_s: float | None = None

    @property
    def asks(self) -> bool:
        """Whether any tolerance is finite."""
        return bool(np.any(np.isfinite(self.path)) or np.any(np.isfinite(self.goal)))


def tolerance_of(
    path: Sequence[JointTolerance],
    goal: Sequence[JointTolerance],
    time_s: float,
    expected: Sequence[str],
) -> Tolerance:
    """
    Return the tolerance of a configuration whose coordinates have the `expected` names.

    Raises
    ------
    GoalError
        If names (JointNamesError) or values are invalid, or a quantity is not measured.

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
