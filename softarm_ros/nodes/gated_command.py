"""From a message with an actuator command to the gate that may let it through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.control.command_gate import CommandGate
from softarm_ros.nodes import conversions

if TYPE_CHECKING:
    from softarm_ros.nodes.wire import JointValues


def offer_command(gate: CommandGate, command: JointValues, now_s: float) -> str | None:
    """Hand a command to the gate; return why it is refused, or None."""
    try:
        values = conversions.positions_of(command, gate.limits.names)
    except ValueError as error:
        # Not finite: the gate refuses it and holds, as it should for a command it cannot read.
        gate.on_command(now_s, np.full(len(gate.limits.names), np.nan))
        return f'command refused: {error}'
    return gate.on_command(now_s, values)
