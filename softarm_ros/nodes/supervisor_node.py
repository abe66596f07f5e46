"""Node that watches the whole arm and decides whether it may move."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Bool, Empty
from std_srvs.srv import Trigger

from softarm_ros.control.slowness import describe_slowness
from softarm_ros.control.supervisor import SafetyState, SupervisorStatus, named
from softarm_ros.nodes import conversions
from softarm_ros.nodes.base_frame import BaseFrame
from softarm_ros.nodes.conversions import ERROR, OK, WARN, Health
from softarm_ros.nodes.event_log import EventLog
from softarm_ros.nodes.heartbeat import SWITCHED_OFF, Heartbeat
from softarm_ros.nodes.node_parameters import (
    declare,
    declare_node_name,
    declare_priority,
    declare_rig,
    declare_time_scale,
)
from softarm_ros.nodes.other_nodes import publishers_of, refuse_twin
from softarm_ros.nodes.pacing import EARLY, LATE
from softarm_ros.nodes.qos import EVENTS, HEARTBEAT, LATCHED, PERMIT, VISUAL, listening, newest
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.self_paced import SelfPaced
from softarm_ros.nodes.wire import (
    JointValues,
    StampedPoses,
    listen,
    read_joints,
    read_pose,
    read_status,
)
from softarm_ros.rigs.common_checks import PERMIT_RATE_HZ
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import (
    build_feedback_watch,
    build_pressure_watch,
    build_supervisor,
)
from softarm_ros.runtime.events import Event
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.machine_load import MachineLoad

UPDATE_S = 0.01
COMMANDS = ('configuration/command', 'actuators/command')
# Their errors are failures or refusals of a part, never lateness, which a device may report.
CALCULATING = ('inverse_kinematics', 'plant', 'emulator')
ESTOP_BEFORE = 'emergency stop, called before the supervisor was restarted'
LATE_WORDS_S = 1.0  # after a fault; longer than a sensor takes to notice a lost device
# DDS removes a killed publisher when its lease ends: 10 s with Cyclone, 20 s with Fast DDS.
_LISTED_ON = ' (a killed one stays listed for up to 20 s)'
LEVELS = {
    SafetyState.WAITING: WARN,
    SafetyState.READY: OK,
    SafetyState.RUNNING: OK,
    SafetyState.HELD: WARN,
    SafetyState.STOPPED: WARN,
    SafetyState.FAULT: ERROR,
}


class SupervisorNode(SelfPaced, Node):
    """
    Feeds a Supervisor from the topics of the arm and publishes its verdict.

    Drivers and tracker obey `~/permit`, which is sent at a steady rate and at once on a change.
    People and programs read state and reason from the heartbeat.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('supervisor', **options)
        refuse_twin(self)
        rig = declare_rig(self)
        time_scale = declare_time_scale(self)
        declare_priority(self)
        required = declare(
            self, 'required_nodes', ['tracker'], 'names of the nodes that must be alive'
        )
        feedback_required = declare(
            self, 'feedback_required', True, 'missing feedback stops the arm'
        )
        strict = declare(
            self, 'strict', True, 'lateness is a fault; false: a simulation is held and goes on'
        )
        model = declare(self, 'model', '', "model of the tracker; empty: the rig's default")
        self._tracker = declare_node_name(self, 'tracker', 'tracker')
        self._autostart = declare(self, 'autostart', False, 'start once everything is ready')
        self._simulated = bool(self.get_parameter('use_sim_time').value)
        self._clock_s = 0.0
        self._me = self.get_name()
        self._supervisor = build_supervisor(
            rig,
            [name for name in required if name != self._me],
            feedback_required=feedback_required,
            strict=strict,
            real_time=time_scale == 1.0,
        )
        # In open loop, poses are not used, so they are not watched.
        self._watch = (
            build_feedback_watch(rig, model or None, time_scale=time_scale)
            if feedback_required
            else None
        )
        self._pressures = build_pressure_watch(rig)
        self._actuators = rig.actuator_names
        self._coordinates = rig.model(model or None).configuration_names
        ahead_s = rig.supervisor.feedback_watch.max_ahead_s
        self._base = BaseFrame(
            self, rig.base_frames, self._watch.max_ahead_s if self._watch is not None else ahead_s
        )
        self._sensors = frozenset(rig.sensors.devices())
        self._pose_topic = rig.feedback.pose_topic
        self._status = SupervisorStatus(SafetyState.WAITING, 'starting', False)
        self._phase = Phase.IDLE  # of the tracker
        self._permitted: bool | None = None
        self._next_permit = self._judged = 0.0
        self._healths: dict[str, Health] = {}
        self._load = MachineLoad()
        self._events = EventLog()
        self._held_at = self._changed_at = 0.0
        self._told_sensors: frozenset[str] = frozenset()  # sensors quoted in the fault's message
        self._told_silent: frozenset[str] = frozenset()  # nodes that it names as silent
        self._silence_s = rig.supervisor.heartbeat_timeout_s
        self._period_s = 1.0 / rig.tracker.rate_hz
        self._heartbeat = Heartbeat(self, rig.name, fill=self._values)
        self._permit = self.create_publisher(Bool, '~/permit', PERMIT)
        # Tracker and drivers remember it for the next supervisor, should this one end.
        self._touched = self.create_publisher(Bool, '~/touched', LATCHED)
        self._halt = self.create_publisher(Bool, '~/halt', LATCHED)
        self._stop_homing = self.create_publisher(Empty, '~/stop_homing', EVENTS)
        self._told_touched = self._told_halt = False
        self._subscribe(rig)
        self._offer_services()

    def _subscribe(self, rig: Rig) -> None:
        # Queues, so that a good message does not overwrite a bad one before it is checked.
        queue = listening(depth=10)
        listen(self, read_status, 'heartbeat', self._on_heartbeat, newest(HEARTBEAT))
        listen(self, read_pose, self._pose_topic, self._on_pose, queue)
        if self._watch is not None:
            listen(self, read_joints, COMMANDS[0], self._on_configuration, queue)
        listen(self, read_joints, COMMANDS[1], self._on_command, queue)
        listen(self, read_joints, 'actuators/state', self._on_state, queue)
        if self._simulated:
            self.create_subscription(Clock, '/clock', self._on_clock, newest(VISUAL))

    def _offer_services(self) -> None:
        watch = self._supervisor
        self._offer('estop', self._estop)
        self._offer('reset', self._reset)
        self._offer('start', watch.request_start)
        self._offer('stop', self._stop)

    def _offer(self, name: str, request: Callable[[float, float], tuple[bool, str]]) -> None:
        def answer(asked: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
            wall = time.monotonic()
            reply.success, reply.message = request(self._now_s(wall), wall)
            self._tell(self._supervisor.status(self._now_s(wall), wall), wall)
            return reply

        self.create_service(Trigger, f'~/{name}', answer)

    def _tell_halt(self, halted: bool) -> None:
        self._told_halt = True
        self._halt.publish(Bool(data=halted))

    def _estop(self, now_s: float, wall_s: float) -> tuple[bool, str]:
        self._tell_halt(True)
        self._stop_homing.publish(Empty())
        return self._supervisor.request_estop(now_s)

    def _stop(self, now_s: float, wall_s: float) -> tuple[bool, str]:
        self._stop_homing.publish(Empty())
        return self._supervisor.request_stop(now_s)

    def _reset(self, now_s: float, wall_s: float) -> tuple[bool, str]:
        # Whatever the answer is: a device that is not homed may be the reason for a refusal.
        self._tell_halt(False)
        done, message = self._supervisor.request_reset(now_s, wall_s)
        if done or not (advice := self._unlatching()):
            return done, message
        return done, f'{message}; {advice}, then this'

    def _unlatching(self) -> str:
        """Return which resets clear the latched problems of devices, or ''."""
        calls = ' and '.join(
            f'{name}/reset'
            for name, health in self._healths.items()
            if health.values.get('latched') == 'true'
        )
        return f'when the device is in order again, call {calls}' if calls else ''

    # -- inputs

    def _now_s(self, wall_s: float) -> float:
        """Return the time [s] to which limits of the loop apply: simulated, or the wall clock."""
        return self._clock_s if self._simulated else wall_s

    def _on_clock(self, message: Clock) -> None:
        self._clock_s = conversions.seconds_of(message.clock)

    def _on_heartbeat(self, health: Health) -> None:
        if health.name == self._me:
            return
        touched = health.values.get('touched') == 'true'
        if health.name == self._tracker:
            self._on_tracker(health.values)
            touched = touched or self._phase is not Phase.IDLE
        not_ready = ''
        if health.values.get('ready') == 'false':
            not_ready = health.values.get('not_ready') or health.message
        unheard = health.values.get('unheard', '')
        now = time.monotonic()
        if health.values.get('halted') == 'true' and not self._told_halt:
            # Of a supervisor that has ended since: whoever called it relies on the reset.
            self._tell_halt(True)
            self._supervisor.request_estop(self._now_s(now), ESTOP_BEFORE)
        self._supervisor.on_heartbeat(health.name, now, not_ready, unheard, touched=touched)
        self._healths[health.name] = health

    def _on_pose(self, tip: StampedPoses) -> None:
        frame, position = self._base.tip_of(tip)
        if self._watch is not None:
            stamp_s = 1e-9 * tip.stamp_ns
            if self._watch.admit(self._ros_time_s(), stamp_s, frame, position) is not None:
                self._judge_feedback()
                return
        wall = time.monotonic()
        self._supervisor.on_feedback(self._now_s(wall), position)
        # The process wakes up for poses anyway; waking up again for verdicts would cost more.
        if wall - self._judged >= EARLY * UPDATE_S:
            self._judge(wall, LATE * UPDATE_S)

    def _on_configuration(self, message: JointValues) -> None:
        if self._watch is not None:
            with contextlib.suppress(ValueError):  # inverse kinematics refuses it
                self._watch.on_configuration(conversions.positions_of(message, self._coordinates))

    def _on_tracker(self, values: dict[str, str]) -> None:
        """Take phase, tracking error and section problem from the tracker's heartbeat values."""
        with contextlib.suppress(ValueError):  # a tracker of another package
            self._phase = Phase(values.get('phase', Phase.IDLE))
        if self._watch is None:
            return
        error_mm = conversions.number_of(values, 'error_mm')
        self._watch.on_tracking_error(1e-3 * error_mm if self._phase is Phase.TRACK else None)
        self._supervisor.on_problem('sections', values.get('sections') or None)

    def _judge_feedback(self) -> None:
        if self._watch is not None:
            # A tracker that stands may not have received its permit yet; it will then take over
            # the posture of the actuators.
            moving = self._status.state is SafetyState.RUNNING and not self._phase.stands
            problem = self._watch.problem(self._ros_time_s(), moving=moving)
            if problem is not None and self._base.unused:  # why TF did not transform the pose
                problem = f'{problem}; {self._base.unused}'
            self._supervisor.on_problem('feedback watch', problem)

    def _ros_time_s(self) -> float:
        """Return the time [s] of message stamps: simulated, or the system time."""
        return self._clock_s if self._simulated else 1e-9 * time.time_ns()

    def _on_command(self, message: JointValues) -> None:
        try:
            command = conversions.positions_of(message, self._actuators)
        except ValueError as error:
            self._supervisor.on_problem('command', f'command refused: {error}')
            return
        if self._pressures is not None:
            self._pressures.on_command(command)
        self._supervisor.on_command(self._now_s(time.monotonic()), command)

    def _on_state(self, message: JointValues) -> None:
        now = self._now_s(time.monotonic())
        try:
            conversions.positions_of(message, self._actuators)
        except ValueError as error:  # the tracker does not use it
            self._supervisor.on_problem('actuator state', f'actuator state: {error}')
            return
        self._supervisor.on_actuator_state(now, message.position, message.effort)
        if self._pressures is not None:
            moving = self._status.state is SafetyState.RUNNING
            problem = self._pressures.on_pressure(now, message.position, moving=moving)
            self._supervisor.on_problem('pressures', problem)

    # -- verdict

    def work(self) -> None:
        """Give a verdict if no pose has triggered one in time."""
        wall = time.monotonic()
        if self.due > 0.0:
            self._heartbeat.late(wall - self.due)
        self._judge(wall, UPDATE_S)

    def _judge(self, wall: float, wait_s: float) -> None:
        """Give and publish a verdict; the next one is due after `wait_s` [s] at the latest."""
        self._judged, self.due = wall, wall + wait_s
        self._judge_feedback()
        status = self._supervisor.update(self._now_s(wall), wall)
        ready = status.state is SafetyState.READY
        if self._autostart and self._supervisor.untouched and ready:
            self._supervisor.request_start(self._now_s(wall), wall)
            status = self._supervisor.status(self._now_s(wall), wall)
        self._tell(status, wall)

    def _tell(self, status: SupervisorStatus, wall_s: float) -> None:
        before, self._status = self._status, status
        if not (self._told_touched or self._supervisor.untouched):
            self._told_touched = True
            self._touched.publish(Bool(data=True))
        if status.motion_allowed is not self._permitted or wall_s >= self._next_permit:
            self._permitted = status.motion_allowed
            self._next_permit = wall_s + 1.0 / PERMIT_RATE_HZ - 0.5 * UPDATE_S
            self._permit.publish(Bool(data=status.motion_allowed))
        # An emergency stop of an arm that is in a fault replaces the reason.
        if (status.state, status.on_request) == (before.state, before.on_request):
            if status.state is SafetyState.WAITING:
                self._heartbeat.waiting(self._message(status))
            elif status.state is SafetyState.FAULT and not status.on_request:
                self._add_late_words(wall_s)
                self._add_silent_nodes(wall_s)
            return
        self._changed_at, self._told_sensors = wall_s, frozenset()
        self._told_silent = frozenset(self._supervisor.silent_nodes(wall_s))
        message = self._message(status)
        self._note_hold(before.state, status.state, message, wall_s)
        self._heartbeat.set(LEVELS[status.state], message, now=True)

    def _note_hold(
        self, before: SafetyState, after: SafetyState, message: str, wall_s: float
    ) -> None:
        now = 1e-9 * self.get_clock().now().nanoseconds
        if after is SafetyState.HELD:
            self._held_at = wall_s
            self._events.add(Event(now, 'warning', 'supervisor', f'held: {message}'))
        elif before is SafetyState.HELD and after is SafetyState.RUNNING:
            held = f'goes on after a hold of {1e3 * (wall_s - self._held_at):.0f} ms'
            self._events.add(Event(now, 'info', 'supervisor', held))

    def _reason(self, status: SupervisorStatus) -> str:
        advice = self._unlatching() if status.state is SafetyState.WAITING else ''
        return '; '.join(filter(None, [status.reason, advice]))

    def _message(self, status: SupervisorStatus) -> str:
        message = self._reason(status) or status.state.value
        if status.state not in (SafetyState.FAULT, SafetyState.HELD) or status.on_request:
            return message
        # A problem that a node reports about itself is often the cause of this fault or hold.
        # A sensor that still measures warns of unused measurements, a flipped body for example.
        failing = self._failing()
        self._told_sensors = self._sensors & set(failing)
        reported = [named(name, text) for name, text in failing.items() if text not in message]
        # If an arm does not follow, or a device gets no commands, the computer may be the cause.
        rivals = self._rivals()
        slowness = '' if rivals else self._slowness()
        return '; '.join(filter(None, [message, rivals, *reported, slowness]))

    def _failing(self) -> dict[str, str]:
        return {
            name: health.message
            for name, health in self._healths.items()
            if health.level == ERROR
            or (health.level == WARN and name in self._sensors)
            or health.values.get('not_ready') in SWITCHED_OFF
        }

    def _add_late_words(self, wall_s: float) -> None:
        """Add late sensor reports to a fault: lost feedback is noticed before a lost device."""
        if wall_s - self._changed_at > LATE_WORDS_S:
            return
        failing = self._failing()
        late = sorted((self._sensors & set(failing)) - self._told_sensors)
        if late:
            self._told_sensors |= set(late)
            words = [self._heartbeat.message, *(named(name, failing[name]) for name in late)]
            self._heartbeat.set(LEVELS[SafetyState.FAULT], '; '.join(words), now=True)

    def _add_silent_nodes(self, wall_s: float) -> None:
        """Add nodes that have ended to a fault: their last messages are missed before them."""
        if wall_s - self._changed_at > self._silence_s + LATE_WORDS_S:
            return
        silent = self._supervisor.silent_nodes(wall_s)
        late = sorted(silent.keys() - self._told_silent)
        if late:
            self._told_silent |= set(late)
            told = (f'{silent[name]}; start it again if it has ended' for name in late)
            words = '; '.join([self._heartbeat.message, *told])
            self._heartbeat.set(LEVELS[SafetyState.FAULT], words, now=True)

    def _rivals(self) -> str:
        """Return the publishers of each topic of the loop that has several as text, or ''."""
        poses = [self._pose_topic] if self._watch is not None else []
        names = {topic: self._named_publishers(topic) for topic in (*poses, *COMMANDS)}
        return '; '.join(
            f'{len(found)} publish {topic}: {", ".join(found)}; end all but one{_LISTED_ON}'
            for topic, found in names.items()
            if len(found) > 1
        )

    def _named_publishers(self, topic: str) -> list[str]:
        found = [f'{space}/{name}' for space, name in publishers_of(self, topic)]
        # Own nodes count once each: a killed one stays listed beside its successor for a while.
        ours = self._sensors.union(self._supervisor.required_nodes)
        own = {f'{self.get_namespace().rstrip("/")}/{name}' for name in ours}
        return sorted([name for name in found if name not in own] + list(own & set(found)))

    def _not_late(self) -> bool:
        """Return whether values are unusable, or a node refuses, has failed or is switched off."""
        if self._supervisor.has_bad_values:
            return True
        if self._watch is not None and self._watch.unusable:
            return True
        tracker = self._healths.get(self._tracker)
        if tracker is not None and tracker.values.get('ready') == 'false':
            return True
        required = {*CALCULATING, *self._supervisor.required_nodes}
        off = {
            name
            for name, health in self._healths.items()
            if health.values.get('not_ready') in SWITCHED_OFF
        }
        # Problems that a driver reports of its device may come of messages that were late, unless
        # the device is gone or reports a fault of its own.
        failed = {
            name
            for name, health in self._healths.items()
            if health.values.get('outside', str(health.level == ERROR).lower()) == 'true'
        }
        return bool(off & required or failed & (required - self._sensors))

    def _slowness(self) -> str:
        if self._not_late():  # handling a failure takes time, which makes a node late
            return ''
        late_s = {
            name: 1e-3 * conversions.number_of(health.values, 'late_ms', 0.0)
            for name, health in self._healths.items()
            if name in self._supervisor.required_nodes
        }
        late_s[self._me] = self._heartbeat.late_s
        loop = self._healths['tracker'].values if 'tracker' in self._healths else {}
        return describe_slowness(
            late_s,
            int(conversions.number_of(loop, 'cycles', 0.0)),
            int(conversions.number_of(loop, 'missed', 0.0)),
            self._load.percent(),
            computed_s=1e-3 * conversions.computed_ms(loop),
            period_s=self._period_s,
        )

    def _values(self) -> dict[str, str]:
        status, load, wall = self._status, self._load.percent(), time.monotonic()
        return {
            'state': status.state.value,
            'motion_allowed': str(status.motion_allowed).lower(),
            'reason': self._reason(status),
            'untouched': str(self._supervisor.untouched).lower(),
            **({} if load is None else {'processors_percent': f'{load:.0f}'}),
            **self._supervisor.details(self._now_s(wall), wall),
            **self._events.values(),
        }


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(SupervisorNode, 'supervisor', args)


if __name__ == '__main__':
    sys.exit(main())
