"""Passes actuator commands from messages to the command gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.control.command_gate import CommandGate
from softarm_ros.nodes import conversions

if TYPE_CHECKING:
    from softarm_ros.nodes.wire import JointValues


def offer_command(gate: CommandGate, command: JointValues, now_s: float) -> str | None:
    """Offer a command to the gate; return why it is refused, or None."""
    try:
        values = conversions.positions_of(command, gate.limits.names)
    except ValueError as error:
        # The gate refuses NaN and holds, which is right for an unreadable command.
        gate.on_command(now_s, np.full(len(gate.limits.names), np.nan))
        return f'command refused: {error}'
    return gate.on_command(now_s, values)
