"""Whether an actuator would jump with the first command."""

from __future__ import annotations

import numpy as np

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.geometry.arrays import Array

JUMP = 0.05  # share of an actuator's range


def start_jump(limits: ActuatorLimits, position: Array, command: Array, slack: float = 0.0) -> str:
    """
    Return which actuator would jump from its measured position (m,) to a command (m,), or ''.

    Lengths that no posture of the arm has, or beyond the limits, come of a wrong zero or of
    somebody who has moved the arm. Pressures and tensions rise from those of an arm at rest, and
    differ by the offset of their sensors: they do not jump. `slack` is allowed besides `JUMP` [m].
    """
    if limits.unit != 'm':
        return ''
    most = JUMP * (limits.position_max - limits.position_min) + slack
    over = np.abs(position - command) - most
    k = int(np.argmax(over))
    if over[k] <= 0.0:
        return ''
    return (
        f'{limits.names[k]} stands at {1e3 * position[k]:.1f} mm, and would jump to the start '
        f'at {1e3 * command[k]:.1f} mm (limit {1e3 * most[k]:.1f} mm apart): its zero is wrong or '
        'the arm was moved'
    )
