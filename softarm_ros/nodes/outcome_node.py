"""Node that ends with the run: exit status 0 if the trajectory is done, 1 after a fault."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from softarm_ros.nodes import conversions
from softarm_ros.nodes.node_errors import NodeFailedError
from softarm_ros.nodes.node_parameters import declare_rig, declare_time_scale
from softarm_ros.nodes.other_nodes import refuse_twin
from softarm_ros.nodes.qos import HEARTBEAT, newest
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.self_paced import SelfPaced

COMPLETE = 'complete'
LOOK_S = 0.05
LAST_WORDS_S = 0.4  # a sensor reports the loss of its device a little after the fault


class OutcomeNode(SelfPaced, Node):
    """Watches the heartbeats of tracker and supervisor, for `exit_on_done:=true` at launch."""

    def __init__(self, **options: Any) -> None:
        super().__init__('outcome', **options)
        refuse_twin(self)
        declare_rig(self)
        declare_time_scale(self)
        self._ended = ''  # how the run ended; '' while it goes on
        self._held_s = np.inf  # when the fault came
        self.create_subscription(
            DiagnosticStatus, 'heartbeat', self._on_heartbeat, newest(HEARTBEAT)
        )

    def _on_heartbeat(self, message: DiagnosticStatus) -> None:
        health = conversions.health_of(message)
        if message.name == 'tracker' and health.values.get('phase') == 'done':
            self._ended = COMPLETE
        if message.name == 'supervisor' and health.values.get('state') == 'fault':
            self._ended = f'the arm was held: {health.message}'
            self._held_s = min(self._held_s, time.monotonic())

    def work(self) -> None:
        """End the process once the run has ended."""
        self.due = time.monotonic() + LOOK_S
        if self._ended == COMPLETE:
            self.get_logger().info('run complete')
            raise SystemExit(0)
        if self._ended and time.monotonic() - self._held_s > LAST_WORDS_S:
            raise NodeFailedError(f'run not completed: {self._ended}')


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(OutcomeNode, 'outcome', args)


if __name__ == '__main__':
    sys.exit(main())
