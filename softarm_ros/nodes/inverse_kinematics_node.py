"""Node that converts configuration commands into actuator commands."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState

from softarm_ros.nodes import conversions
from softarm_ros.nodes.heartbeat import Heartbeat
from softarm_ros.nodes.node_parameters import (
    declare,
    declare_priority,
    declare_rig,
    declare_time_scale,
)
from softarm_ros.nodes.other_nodes import refuse_twin
from softarm_ros.nodes.permit import listen_to_permit
from softarm_ros.nodes.qos import (
    MEASUREMENT,
    SubscriptionEventCallbacks,
    command_deadline_s,
    command_qos,
    newest,
)
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.timing import DurationHistogram
from softarm_ros.nodes.wire import JointValues, joint_bytes, listen, read_joints
from softarm_ros.runtime.assembly import build_inverse_kinematics
from softarm_ros.runtime.part_failure import FAILURES, FailureWords


class InverseKinematicsNode(Node):
    """Converts each configuration command into the actuator command for it, or refuses it."""

    def __init__(self, **options: Any) -> None:
        super().__init__('inverse_kinematics', **options)
        refuse_twin(self)
        rig = declare_rig(self)
        declare_priority(self)
        model = declare(self, 'model', '', "model of the arm; empty: the rig's default")
        pretension = declare(
            self, 'pretension', True, "wind all cables further, by the rig's pretension_m"
        )
        self._stage = build_inverse_kinematics(rig, model or None, pretension=pretension)
        self._names = self._stage.model.configuration_names
        self._actuators = rig.actuator_names
        self._moving = False
        # Load compiled code now, not at the first command.
        self._stage.model.actuation_of(self._stage.model.rest_configuration)
        deadline = command_deadline_s(rig, declare_time_scale(self))
        self._answered = self._refused = self._late = 0
        self._failure = FailureWords()
        self._compute = DurationHistogram()
        self._publisher = self.create_publisher(
            JointState, 'actuators/command', command_qos(deadline)
        )
        self._heartbeat = Heartbeat(self, rig.name, fill=self._values)
        listen(
            self,
            read_joints,
            'configuration/command',
            self._on_command,
            newest(command_qos(deadline)),
            event_callbacks=SubscriptionEventCallbacks(deadline=self._on_deadline),
        )
        if self._stage.pretension.amount > 0.0:
            listen(self, read_joints, 'actuators/state', self._on_actuators, MEASUREMENT)
        listen_to_permit(self, self._on_permit)
        self._heartbeat.ok(f'solving with {self._stage.model.name}')

    def _on_permit(self, allowed: bool) -> None:
        self._moving = allowed

    def _on_actuators(self, state: JointValues) -> None:
        if not self._moving:
            with contextlib.suppress(ValueError):  # the supervisor reports invalid messages
                self._stage.stand(conversions.positions_of(state, self._actuators))

    def _on_command(self, command: JointValues) -> None:
        began = time.perf_counter()
        try:
            configuration = conversions.positions_of(command, self._names)
            actuation = self._stage.actuation_of(configuration, moving=self._moving)
        except FAILURES as error:
            self._refused += 1
            self._heartbeat.error(f'configuration refused: {self._failure.of(error)}')
            return
        self._publisher.publish(joint_bytes(self._actuators, command.stamp_ns, actuation))
        self._compute.add(1e3 * (time.perf_counter() - began))
        self._answered += 1
        self._heartbeat.ok(f'solving with {self._stage.model.name}')

    def _on_deadline(self, event: Any) -> None:
        self._late += int(event.total_count_change)
        self._heartbeat.warn('no configuration command within its deadline')

    def _values(self) -> dict[str, str]:
        return {
            'answered': str(self._answered),
            'refused': str(self._refused),
            'late': str(self._late),
            'compute_ms': self._compute.text(),
        }


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(InverseKinematicsNode, 'inverse_kinematics', args)


if __name__ == '__main__':
    sys.exit(main())
