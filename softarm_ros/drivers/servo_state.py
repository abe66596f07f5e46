"""State that a servo driver reports to its caller."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.drivers.cia402 import DriveState
from softarm_ros.drivers.problems import Problem
from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class ServoState:
    """
    State of the drives; arrays (n,) in the order of the axes, NaN before the first answer.

    Attributes
    ----------
    torque, speed, position :
        As measured by the drives [N m, rad/s, rad].
    stamp_s, age_s :
        Monotonic time of the latest answer of each axis; its age, infinite before the first.
    drive_states, fault_codes :
        State and fault code reported by each drive.
    connected, enabled :
        Whether the link is up; whether every axis follows torque commands.
    problems :
        Problems since the last reset; while there are any, no axis is enabled.

    """

    torque: Array
    speed: Array
    position: Array
    stamp_s: Array
    age_s: Array
    drive_states: tuple[DriveState, ...]
    fault_codes: tuple[int, ...]
    connected: bool
    enabled: bool
    problems: tuple[Problem, ...]
