"""Stepper motors behind a microcontroller, as a node."""

from __future__ import annotations

import sys
from typing import Any

from softarm_ros.nodes.actuator_node import ActuatorNode
from softarm_ros.nodes.node_base import run_node


class SteppersNode(ActuatorNode):
    """Winds the cables of an arm."""

    def __init__(self, **options: Any) -> None:
        super().__init__('steppers', **options)


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(SteppersNode, 'steppers', args)


if __name__ == '__main__':
    sys.exit(main())
