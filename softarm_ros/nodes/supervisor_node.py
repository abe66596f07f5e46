"""Watches the whole arm and decides whether it may move."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from softarm_ros.control.supervisor import SafetyState, SupervisorStatus
from softarm_ros.nodes import conversions
from softarm_ros.nodes.base_frame import BaseFrame
from softarm_ros.nodes.conversions import ERROR, OK, WARN
from softarm_ros.nodes.node_base import (
    Heartbeat,
    declare,
    declare_priority,
    declare_rig,
    declare_time_scale,
    refuse_twin,
    run_node,
    steady_clock,
    timeout_factor,
)
from softarm_ros.nodes.qos import HEARTBEAT, listening
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_feedback_watch, build_supervisor

UPDATE_S = 0.01
HEARTBEAT_HZ = 50.0
LEVELS = {
    SafetyState.WAITING: WARN,
    SafetyState.READY: OK,
    SafetyState.RUNNING: OK,
    SafetyState.STOPPED: WARN,
    SafetyState.FAULT: ERROR,
}


class SupervisorNode(Node):
    """Feeds a Supervisor with what happens on the topics and tells everybody its verdict."""

    def __init__(self, **options: Any) -> None:
        super().__init__('supervisor', **options)
        refuse_twin(self)
        rig = declare_rig(self)
        time_scale = declare_time_scale(self)
        factor = timeout_factor(time_scale)
        declare_priority(self)
        required = declare(
            self, 'required_nodes', ['tracker'], 'names of the nodes that must be alive'
        )
        feedback_required = declare(
            self, 'feedback_required', True, 'missing feedback stops the arm'
        )
        model = declare(self, 'model', '', "model of the tracker; empty: the rig's default")
        self._tracker = declare(self, 'tracker', 'tracker', 'name of the tracker node')
        self._autostart = declare(self, 'autostart', False, 'start once everything is ready')
        self._me = self.get_name()
        self._supervisor = build_supervisor(
            rig,
            [name for name in required if name != self._me],
            feedback_required=feedback_required,
            time_scale=factor,
        )
        # In open loop poses are looked at by nobody.
        self._watch = (
            build_feedback_watch(rig, model or None, time_scale=time_scale)
            if feedback_required
            else None
        )
        self._base = BaseFrame(self, rig.base_frames)
        self._status = SupervisorStatus(SafetyState.WAITING, 'starting', False)
        self._troubles: dict[str, str] = {}
        self._heartbeat = Heartbeat(self, rig.name, rate_hz=HEARTBEAT_HZ, fill=self._values)
        self._subscribe(rig)
        self._offer_services()
        self.create_timer(UPDATE_S, self._update, clock=steady_clock())

    def _subscribe(self, rig: Rig) -> None:
        # Queues, so that a single bad message is not overwritten by the next good one.
        commands, measurements = listening(depth=10, reliable=True), listening(depth=10)
        pose_topic = rig.feedback.pose_topic
        self.create_subscription(DiagnosticStatus, 'heartbeat', self._on_heartbeat, HEARTBEAT)
        self.create_subscription(PoseStamped, pose_topic, self._on_pose, measurements)
        if self._watch is not None:
            self.create_subscription(
                JointState, 'configuration/command', self._on_configuration, commands
            )
        self.create_subscription(JointState, 'actuators/command', self._on_command, commands)
        self.create_subscription(JointState, 'actuators/state', self._on_state, measurements)

    def _offer_services(self) -> None:
        watch = self._supervisor
        self._offer('estop', lambda now: watch.request_estop(now))
        self._offer('reset', watch.request_reset)
        self._offer('start', watch.request_start)
        self._offer('stop', watch.request_stop)

    def _offer(self, name: str, request: Callable[[float], tuple[bool, str]]) -> None:
        def answer(asked: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
            reply.success, reply.message = request(time.monotonic())
            self._update()
            return reply

        self.create_service(Trigger, f'~/{name}', answer)

    # -- inputs

    def _on_heartbeat(self, message: DiagnosticStatus) -> None:
        if message.name == self._me:
            return
        health = conversions.health_of(message)
        if message.name == self._tracker:
            self._on_tracker(health.values)
        not_ready = ''
        if health.values.get('ready') == 'false':
            not_ready = health.values.get('not_ready') or health.message
        self._supervisor.on_heartbeat(message.name, time.monotonic(), not_ready)
        if health.level == ERROR:
            self._troubles[health.name] = health.message
        else:
            self._troubles.pop(health.name, None)

    def _on_pose(self, message: PoseStamped) -> None:
        frame, position = self._base.tip_of(message)
        if self._watch is not None:
            stamp = conversions.seconds_of(message.header.stamp)
            if self._watch.admit(self._ros_time_s(), stamp, frame, position) is not None:
                self._judge_feedback()
                return
        self._supervisor.on_feedback(time.monotonic(), position)

    def _on_configuration(self, message: JointState) -> None:
        if self._watch is not None:
            self._watch.on_configuration(message.position)

    def _on_tracker(self, values: dict[str, str]) -> None:
        """Take what the tracker says of its error and of the section poses."""
        if self._watch is None:
            return
        error_mm = float(values['error_mm']) if values.get('phase') == 'track' else float('nan')
        self._watch.on_tracking_error(1e-3 * error_mm)
        self._supervisor.on_problem('sections', values.get('sections') or None)

    def _judge_feedback(self) -> None:
        if self._watch is not None:
            moving = self._status.state is SafetyState.RUNNING
            problem = self._watch.problem(self._ros_time_s(), moving=moving)
            self._supervisor.on_problem('feedback watch', problem)

    def _ros_time_s(self) -> float:
        return 1e-9 * float(self.get_clock().now().nanoseconds)

    def _on_command(self, message: JointState) -> None:
        self._supervisor.on_command(time.monotonic(), message.position)

    def _on_state(self, message: JointState) -> None:
        self._supervisor.on_actuator_state(time.monotonic(), message.position, message.effort)

    # -- verdict

    def _update(self) -> None:
        now = time.monotonic()
        before = self._status
        self._judge_feedback()
        self._status = status = self._supervisor.update(now)
        if self._autostart and status.state is SafetyState.READY:
            self._autostart = False
            self._supervisor.request_start(now)
            self._status = status = self._supervisor.update(now)
        if status.state is before.state:
            if status.state is SafetyState.WAITING:
                self._heartbeat.warn(status.reason)
            return
        message = status.reason or status.state.value
        if status.state is SafetyState.FAULT:
            # What a node says about itself is often the cause of what was noticed here.
            message += ''.join(f'; {name}: {text}' for name, text in self._troubles.items())
        self._heartbeat.set(LEVELS[status.state], message, tell=True)

    def _values(self) -> dict[str, str]:
        status = self._status
        return {
            'state': status.state.value,
            'motion_allowed': str(status.motion_allowed).lower(),
            'reason': status.reason,
            **status.details,
        }


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(SupervisorNode, 'supervisor', args)


if __name__ == '__main__':
    sys.exit(main())
