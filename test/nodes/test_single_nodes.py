"""Each node alone: what it refuses, and what it does without the others."""

import itertools
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from builtin_interfaces.msg import Time
from forked_python import NODES as IMPORTED
from forked_python import ForkedPython

from softarm_ros.nodes import conversions
from softarm_ros.rigs.graph import graph_plan
from softarm_ros.rigs.loader import load_rig

pytestmark = pytest.mark.ros
NODES = ('tracker', 'inverse_kinematics', 'plant', 'supervisor', 'markers', 'recorder')


def command_of(name, *parameters, namespace='/cable_arm'):
    arguments = [part for p in ('twin_check_s:=0.0', *parameters) for part in ('-p', p)]
    module = f'softarm_ros.nodes.{name}_node'
    return ['-m', module, '--ros-args', '-r', f'__ns:={namespace}', *arguments]


@pytest.fixture(scope='module')
def started():
    """Return a function that runs a node to its end; it returns exit status and output."""
    with ForkedPython(IMPORTED) as python:

        def run(name, *parameters):
            done = python.run(*command_of(name, *parameters), timeout=120.0)
            return done.returncode, done.stdout + done.stderr

        yield run


@pytest.mark.parametrize('name', NODES)
def test_unknown_rig_gives_one_clear_message_and_exit_status_2(started, name):
    code, output = started(name, 'rig:=cable_amr')
    assert code == 2
    assert 'cable_amr' in output
    assert 'cable_arm' in output  # did you mean
    assert 'Traceback' not in output


@pytest.mark.parametrize(
    ('name', 'parameters', 'expected'),
    [
        ('tracker', ['rig:=cable_arm', 'trajectory:=circel'], 'circel'),
        ('tracker', ['rig:=cable_arm', 'laps:=-1'], 'laps'),
        ('tracker', ['rig:=cable_arm', 'model:=hydraulic_statics'], 'hydraulic_statics'),
        ('plant', ['rig:=cable_arm', 'seed:=-5'], 'seed'),
        ('plant', ['rig:=cable_arm', 'time_scale:=0.0'], 'time_scale'),
        ('tracker', ['rig:=cable_arm', 'trajektory:=line'], 'trajektory is unknown (did you mean'),
        ('tracker', ['rig:=cable_arm', 'supervisor:="my supervisor"'], "supervisor = 'my super"),
        ('supervisor', ['rig:=cable_arm', 'tracker:="/"'], "tracker = '/': expected the name"),
        ('plant', ['rig:=cable_arm', 'time_scale:=2.0'], 'time_scale = 2: expected 1, or use_sim'),
        ('sensor', ['rig:=cable_arm', 'sensor:=natnte'], "sensor = 'natnte': rig 'cable_arm' has"),
        ('tracker', ['rig:=cable_arm', 'goals:=true', 'task:=t.yaml'], "task = 't.yaml'"),
        ('supervisor', [], 'rig is empty'),
        ('recorder', ['rig:=cable_arm', 'bag:=/dev/null/bag'], 'cannot be written'),
        ('recorder', ['rig:=cable_arm'], 'bag is empty'),
        ('tracker', ['rig:=cable_arm', 'task:='], "'-p task:='"),
        ('tracker', ['rig:=cable_arm', '--foo'], '--foo'),
    ],
)
def test_bad_parameters_are_refused(started, name, parameters, expected):
    code, output = started(name, *parameters)
    assert code == 2
    assert expected in output
    assert 'Traceback' not in output


def processes_of(name, **extra):
    """Return a context manager that runs one node of a plan in a process."""
    from softarm_ros.cli.node_processes import NodeProcesses
    from softarm_ros.rigs.graph import NodeSpec

    spec = next(s for s in graph_plan(load_rig('cable_arm')) if s.name == name)
    parameters = {**spec.parameters, 'twin_check_s': 0.0, **extra}
    return NodeProcesses(
        [NodeSpec(spec.executable, spec.module, name, spec.namespace, parameters)]
    )


@pytest.fixture(scope='module')
def markers():
    """Yield the process of the markers node, shared by its tests."""
    with processes_of('markers') as running:
        yield running


class Alone:
    """One node of a plan and a visitor that talks to it; ends the node unless it ran before."""

    def __init__(self, name, running=None, **extra):
        from rclpy.context import Context
        from rclpy.node import Node

        from softarm_ros.nodes.qos import make_executor

        self.name = name
        self.processes = running or processes_of(name, **extra)
        self.ours = running is None
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node('visitor', namespace='/cable_arm', context=self.context)
        self.executor = make_executor(self.context)
        self.executor.add_node(self.node)
        self.received = []
        self.health = None
        self.beats = 0

    def listen(self, kind, topic, qos):
        self.node.create_subscription(kind, topic, self.received.append, qos)

    def __enter__(self):
        from diagnostic_msgs.msg import DiagnosticStatus

        from softarm_ros.nodes.qos import HEARTBEAT, newest

        self.node.create_subscription(
            DiagnosticStatus, 'heartbeat', self._on_health, newest(HEARTBEAT)
        )
        if self.ours:
            self.processes.__enter__()
        self.until(lambda: self.health is not None)
        return self

    def __exit__(self, *reason):
        if self.ours:
            self.processes.__exit__()
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def _on_health(self, message):
        self.beats += 1
        self.health = conversions.health_of(message)

    def spin(self, duration):
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=left)

    def until(self, condition, timeout=60.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, (self.health, self.processes.log(self.name)[-2000:])
            self.spin(0.01)


def test_inverse_kinematics_answers_with_the_same_stamp_and_refuses_invalid_commands():
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Bool

    from softarm_ros.nodes.qos import PERMIT, command_qos

    rig = load_rig('cable_arm')
    model = rig.model()
    names = model.configuration_names
    with Alone('inverse_kinematics') as alone:
        alone.listen(JointState, 'actuators/command', command_qos(1.0))
        commands = alone.node.create_publisher(
            JointState, 'configuration/command', command_qos(0.1)
        )
        alone.until(lambda: commands.get_subscription_count() == 1)
        alone.until(lambda: alone.node.count_publishers('actuators/command') == 1)
        bending = np.array([0.4, -0.2, 0.1, 0.3])
        stamp = Time(sec=12, nanosec=345)

        def send(names, values):
            alone.received.clear()
            commands.publish(conversions.joint_message(names, values, stamp))

        def answered():
            send(names, bending)
            alone.spin(0.05)
            return alone.received

        alone.until(answered)  # discovery works both ways only after a moment
        (answer, *_) = alone.received
        assert answer.header.stamp == stamp
        assert tuple(answer.name) == rig.actuator_names
        np.testing.assert_allclose(answer.position, model.actuation_of(bending), atol=1e-12)

        # Once the arm may move, all cables get the same pretension.
        permit = alone.node.create_publisher(Bool, 'supervisor/permit', PERMIT)

        def pretension():
            permit.publish(Bool(data=True))
            send(names, bending)
            alone.spin(0.02)
            answers = [np.array(m.position) for m in alone.received]
            return [a - model.actuation_of(bending) for a in answers]

        alone.until(lambda: any(extra[0] > 1e-6 for extra in pretension()))
        for extra in pretension():
            assert np.ptp(extra) < 1e-12
            assert 1e-6 < extra[0] <= rig.tracker.pretension_m

        bad = [
            (names[::-1], bending, 'in this order'),
            (names, bending[:2], '2 positions for 4 names'),
            (names, [0.1, np.nan, 0.0, 0.0], f'{names[1]} = nan'),
            (names, [3.0, 0.0, 0.0, 0.0], 'bends by 171.887 deg; expected at most'),
        ]
        for bad_names, values, reason in bad:
            send(bad_names, values)
            alone.until(
                lambda reason=reason: alone.health.level == 2 and reason in alone.health.message
            )
            assert alone.received == []
            send(names, bending)
            alone.until(lambda: alone.received and alone.health.level == 0)
            assert len(alone.received) == 1


def test_plant_publishes_states_only_while_active():
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from sensor_msgs.msg import JointState

    from softarm_ros.nodes.qos import MEASUREMENT

    with Alone('plant', autostart=False) as alone:
        alone.listen(JointState, 'actuators/state', MEASUREMENT)

        def change(transition):
            client = alone.node.create_client(ChangeState, 'plant/change_state')
            alone.until(client.service_is_ready)
            request = ChangeState.Request()
            request.transition.id = transition
            future = client.call_async(request)
            alone.until(future.done)
            alone.node.destroy_client(client)
            return future.result().success

        alone.spin(0.2)
        assert alone.received == []
        assert change(Transition.TRANSITION_CONFIGURE)
        alone.spin(0.2)
        assert alone.received == []
        assert change(Transition.TRANSITION_ACTIVATE)
        alone.until(lambda: len(alone.received) > 5)
        alone.until(
            lambda: 'nothing received from the supervisor yet' in alone.health.values['held']
        )
        assert change(Transition.TRANSITION_DEACTIVATE)

        def silent():
            alone.received.clear()
            alone.spin(0.2)
            return not alone.received

        alone.until(silent, 5.0)  # once states on their way have arrived
        assert change(Transition.TRANSITION_CLEANUP)
        assert not change(Transition.TRANSITION_ACTIVATE)  # not configured any more


def test_tracker_is_not_ready_before_states_and_poses_reach_it():
    """They may be sent, but not received yet, since discovery works in each direction alone."""
    from geometry_msgs.msg import PoseStamped
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Bool

    from softarm_ros.nodes.qos import LATCHED, MEASUREMENT, PERMIT, command_qos

    rig = load_rig('cable_arm')
    rest = rig.model().forward(np.zeros(len(rig.actuators))).tip
    with Alone('tracker') as alone:
        states = alone.node.create_publisher(JointState, 'actuators/state', MEASUREMENT)
        poses = alone.node.create_publisher(PoseStamped, 'tip/pose', MEASUREMENT)
        alone.until(lambda: alone.health.values['not_ready'] == 'no actuator state yet')

        def now():
            return alone.node.get_clock().now().to_msg()

        def state():
            names, values = rig.actuator_names, np.zeros(len(rig.actuators))
            states.publish(conversions.joint_message(names, values, now(), effort=values))
            return alone.health.values['not_ready'] == 'no pose yet'

        def pose():
            poses.publish(conversions.pose_message(rest, now(), rig.base_frame))
            return alone.health.values['ready'] == 'true'

        alone.until(state)
        alone.until(pose)

        def unheard(text, send):
            def heard():
                send()
                said = alone.health.values['unheard']
                return text in said if text else not said

            alone.until(heard)

        # Each node receives inputs that have come back at its own time.
        permit = alone.node.create_publisher(Bool, 'supervisor/permit', PERMIT)

        def permit_and(*others):
            permit.publish(Bool(data=False))
            for send in others:
                send()

        unheard('nothing received from the supervisor yet', state)
        unheard('actuator state stale', lambda: permit_and(pose))
        unheard('pose stale', lambda: permit_and(state))
        unheard('', lambda: permit_and(state, pose))
        unheard('supervisor silent for', lambda: [state(), pose()])

        # Who stopped the arm may still be beside it when the supervisor is restarted.
        assert alone.health.values['touched'] == 'false'
        touched = alone.node.create_publisher(Bool, 'supervisor/touched', LATCHED)
        touched.publish(Bool(data=True))
        alone.until(lambda: alone.health.values['touched'] == 'true')

        # A moving arm: without poses the command is held, even if the supervisor permits motion.
        alone.listen(JointState, 'configuration/command', command_qos(1.0))

        def drive(*others):
            alone.received.clear()
            permit.publish(Bool(data=True))
            for send in (state, *others):
                send()
            alone.spin(0.02)
            return [list(command.position) for command in alone.received]

        def moves():
            commands = drive(pose)
            return bool(commands) and commands[0] != commands[-1]

        alone.until(moves)
        # The last heartbeat may be from before the motion, when poses were stale, too.
        alone.until(lambda: drive(pose) and not alone.health.values['unheard'])
        alone.until(lambda: drive() and 'pose stale' in alone.health.values['unheard'])
        stood = [command for _ in range(10) for command in drive()]
        assert len(stood) > 5
        assert stood == stood[:1] * len(stood)
        alone.until(moves)


def test_tracker_says_once_that_sections_without_the_stamps_of_tips_are_not_used():
    from geometry_msgs.msg import PoseArray, PoseStamped

    from softarm_ros.geometry.poses import rows_from_transforms
    from softarm_ros.nodes.qos import MEASUREMENT
    from softarm_ros.nodes.wire import pose_bytes, poses_bytes

    rig = load_rig('cable_arm')
    rows = rows_from_transforms(rig.model().forward(np.zeros(len(rig.actuators))).section_tips)
    with Alone('tracker') as alone:
        poses = alone.node.create_publisher(PoseStamped, 'tip/pose', MEASUREMENT)
        sections = alone.node.create_publisher(PoseArray, 'sections/poses', MEASUREMENT)

        def told():
            now_ns = alone.node.get_clock().now().nanoseconds
            sections.publish(poses_bytes(now_ns - 1_000_000, rig.base_frame, rows))
            poses.publish(pose_bytes(now_ns, rig.base_frame, rows[-1]))
            return [v for v in alone.health.values.values() if 'they are not used' in v]

        alone.until(told)
        assert 'none with the stamp of a tip pose' in told()[0]
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            alone.spin(0.02)
            assert len(told()) == 1


def test_emergency_stop_of_an_arm_in_a_fault_is_what_its_diagnostics_say():
    from sensor_msgs.msg import JointState
    from std_srvs.srv import Trigger

    from softarm_ros.nodes.qos import command_qos

    rig = load_rig('cable_arm')
    wants = {'required_nodes': ['supervisor'], 'feedback_required': False, 'autostart': True}
    with Alone('supervisor', **wants) as alone:
        commands = alone.node.create_publisher(JointState, 'actuators/command', command_qos(1.0))
        estop = alone.node.create_client(Trigger, 'supervisor/estop')

        def running():
            now, names = alone.node.get_clock().now().to_msg(), rig.actuator_names
            commands.publish(conversions.joint_message(names, np.zeros(len(names)), now))
            return alone.health is not None and alone.health.values['state'] == 'running'

        alone.until(running)
        alone.until(lambda: alone.health.values['state'] == 'fault')  # of missing commands
        assert 'emergency stop' not in alone.health.message
        alone.until(estop.service_is_ready)
        estop.call_async(Trigger.Request())  # its effect is judged: DDS may drop the answer
        alone.until(lambda: alone.health.values['reason'] == 'emergency stop')
        alone.until(lambda: alone.health.message == 'emergency stop')


def test_supervisor_does_not_autostart_after_an_emergency_stop_and_a_reset():
    from sensor_msgs.msg import JointState
    from std_srvs.srv import Trigger

    from softarm_ros.nodes.qos import command_qos

    rig = load_rig('cable_arm')
    wants = {'required_nodes': ['supervisor'], 'feedback_required': False, 'autostart': True}
    with Alone('supervisor', **wants) as alone:
        clients = {
            name: alone.node.create_client(Trigger, f'supervisor/{name}')
            for name in ('estop', 'reset')
        }
        commands = alone.node.create_publisher(JointState, 'actuators/command', command_qos(1.0))

        def ask(name):
            alone.until(clients[name].service_is_ready)
            # A node that has just started may not have found this client's reader of answers yet;
            # Fast DDS then drops the answer after 100 ms ("client will not receive response").
            asked = []

            def answered():
                if not asked or time.monotonic() - asked[-1][0] > 2.0:
                    asked.append((time.monotonic(), clients[name].call_async(Trigger.Request())))
                return any(future.done() for _, future in asked)

            alone.until(answered)
            return next(future for _, future in asked if future.done()).result().success

        def command():
            now, names = alone.node.get_clock().now().to_msg(), rig.actuator_names
            commands.publish(conversions.joint_message(names, np.zeros(len(names)), now))

        assert ask('estop')  # before it was ready
        # The message does not blame a slow computer, although this one is slow during a start.
        alone.until(lambda: alone.health.values['state'] == 'fault')
        assert alone.health.message == 'emergency stop'

        def reset():
            command()
            return ask('reset')

        alone.until(reset)
        seen, until = set(), alone.beats + 5
        while alone.beats < until:
            command()
            alone.spin(0.02)
            seen.add(alone.health.values['state'])
        assert 'ready' in seen
        assert 'running' not in seen


def test_restarted_supervisor_does_not_autostart_an_arm_that_a_driver_reports_touched(context):
    from diagnostic_msgs.msg import DiagnosticStatus
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Bool

    from softarm_ros.nodes.qos import HEARTBEAT, LATCHED, command_qos
    from softarm_ros.nodes.supervisor_node import SupervisorNode

    rig, there = load_rig('cable_arm'), {'context': context, 'namespace': '/touched_arm'}
    wants = {
        'rig': 'cable_arm',
        'twin_check_s': 0.0,
        'autostart': True,
        'feedback_required': False,
        'required_nodes': ['tracker', 'steppers'],
    }
    overrides = [Parameter(name, value=value) for name, value in wants.items()]
    supervisor = SupervisorNode(**there, parameter_overrides=overrides)
    peer, told = Node('peer', **there), []
    beats = peer.create_publisher(DiagnosticStatus, 'heartbeat', HEARTBEAT)
    commands = peer.create_publisher(JointState, 'actuators/command', command_qos(1.0))
    peer.create_subscription(Bool, 'supervisor/touched', told.append, LATCHED)
    # The tracker ended with the previous supervisor; a driver still runs.
    said = {'tracker': {'phase': 'idle', 'touched': 'false'}, 'steppers': {'touched': 'true'}}
    others = [conversions.Health(name, 0, '', values) for name, values in said.items()]
    executor = SingleThreadedExecutor(context=context)
    for node in (supervisor, peer):
        executor.add_node(node)
    state, end = '', time.monotonic() + 20.0
    while state != 'ready' or not told:
        assert state != 'running'
        assert time.monotonic() < end, state
        for other in others:
            beats.publish(conversions.status_message(other, rig.name))
        now, names = peer.get_clock().now().to_msg(), rig.actuator_names
        commands.publish(conversions.joint_message(names, np.zeros(len(names)), now))
        executor.spin_once(timeout_sec=0.01)
        supervisor.work()
        state = supervisor._status.state.value
    for node in (supervisor, peer):
        node.destroy_node()


@pytest.fixture
def supervisor_of(context):
    """Return a function that makes a supervisor of `cable_arm` that requires these nodes."""
    from rclpy.parameter import Parameter

    from softarm_ros.nodes.supervisor_node import SupervisorNode

    made = []

    def make(namespace, *required):
        wants = {'rig': 'cable_arm', 'twin_check_s': 0.0}
        if required:
            wants['required_nodes'] = list(required)
        overrides = [Parameter(name, value=value) for name, value in wants.items()]
        made.append(
            SupervisorNode(context=context, namespace=namespace, parameter_overrides=overrides)
        )
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


def test_an_emergency_stop_outlives_its_supervisor_until_a_reset(supervisor_of):
    """Whoever called it relied on the reset, but the new supervisor only asked for a start."""
    supervisor = supervisor_of('/restarted', 'steppers')
    judge, now = supervisor._supervisor, time.monotonic()
    halted = conversions.Health('steppers', 0, '', {'touched': 'true', 'halted': 'true'})

    def hear():
        supervisor._on_heartbeat(halted)
        judge.on_command(now, np.zeros(len(supervisor._actuators)))
        judge.on_feedback(now, [0.0, 0.0, 0.2])
        return judge.update(now).state.value

    assert hear() == 'fault'
    started, why = judge.request_start(now)
    assert not started
    assert why == (
        'fault: emergency stop, called before the supervisor was restarted; call reset first'
    )
    assert supervisor._reset(now, now) == (True, 'ready: call start to move')
    assert hear() == 'ready'  # the driver may not have heard of the reset yet


def test_a_supervisor_takes_heartbeats_without_the_values_of_our_tracker(supervisor_of):
    supervisor = supervisor_of('/foreign_tracker')
    odd = [{'phase': 'track'}, {'phase': 'track', 'error_mm': 'small'}, {'late_ms': 'never'}]
    for values in (*odd, {'cycles': 'nan', 'missed': '?'}):
        supervisor._on_heartbeat(conversions.Health('tracker', 0, '', values))
        assert supervisor._slowness() == '' or '0 of 0 cycles' in supervisor._slowness()


@pytest.mark.parametrize(
    ('health', 'blames'),
    [
        (('tracker', 0, 'tracking', {'ready': 'true'}), True),
        (('steppers', 2, 'watchdog: no message', {'ready': 'false', 'outside': 'false'}), True),
        (('steppers', 2, 'link: lost: no port', {'ready': 'false', 'outside': 'true'}), False),
        (('steppers', 1, 'held: jammed', {'ready': 'false', 'outside': 'true'}), False),
        (('steppers', 2, 'driver X returned None', {'ready': 'false'}), False),
        (('natnet', 2, 'no frames come', {}), True),
        (('tracker', 0, 'tracking', {'ready': 'false', 'not_ready': 'cannot go on: x'}), False),
        (('plant', 2, 'plant: part body.x failed', {}), False),
        (('steppers', 1, 'inactive', {'ready': 'false', 'not_ready': 'inactive'}), False),
        (('natnet', 1, 'inactive', {'ready': 'false', 'not_ready': 'inactive'}), False),
        (('emulator', 1, 'inactive', {'ready': 'false', 'not_ready': 'inactive'}), False),
        (('natnet', 1, 'measuring tip', {'ready': 'false', 'not_ready': 'no tip seen'}), True),
    ],
)
def test_a_late_computer_is_not_blamed_if_a_part_has_failed_or_is_off(
    supervisor_of, health, blames
):
    supervisor = supervisor_of('/late_arm', 'tracker', 'steppers', 'natnet')
    name, level, message, values = health
    supervisor._on_heartbeat(conversions.Health('tracker', 0, '', {'late_ms': '90'}))
    supervisor._on_heartbeat(conversions.Health(name, level, message, {**values, 'late_ms': '90'}))
    assert ('the computer is too slow: tracker was late' in supervisor._slowness()) == blames


def test_a_late_computer_is_not_blamed_for_values_that_are_not_finite(supervisor_of):
    from softarm_ros.nodes.wire import JointValues

    supervisor = supervisor_of('/not_finite', 'tracker')
    supervisor._on_heartbeat(conversions.Health('tracker', 0, '', {'late_ms': '90'}))
    names = load_rig('cable_arm').actuator_names
    for value, blames in ((0.0, True), (np.nan, False), (0.0, True)):
        supervisor._on_state(JointValues(0, names, np.full(6, value), np.empty(0), np.empty(0)))
        assert ('the computer is too slow: tracker was late' in supervisor._slowness()) == blames


def test_a_supervisor_reads_joints_by_name_as_the_nodes_that_use_them(supervisor_of):
    from softarm_ros.nodes.wire import JointValues

    supervisor, rig = supervisor_of('/joints_by_name', 'tracker'), load_rig('cable_arm')
    bad = supervisor._supervisor._bad

    def joints(names, positions):
        return JointValues(0, tuple(names), np.array(positions), np.empty(0), np.empty(0))

    for take, kind in ((supervisor._on_command, 'command'), (supervisor._on_state, 'actuator st')):
        for names, count in ((rig.actuator_names[::-1], 6), (rig.actuator_names, 5), ((), 0)):
            take(joints(names, np.zeros(count)))
            (found,) = [text for key, text in bad.items() if key.startswith(kind)]
            assert 'names' in found
        take(joints(rig.actuator_names, np.zeros(6)))
        assert not bad
    # Poses are not compared with configurations that inverse kinematics refuses.
    watch, names = supervisor._watch, rig.model().configuration_names
    supervisor._on_configuration(joints(names, np.full(4, 0.1)))
    for refused in (joints(names[::-1], np.zeros(4)), joints((), [])):
        supervisor._on_configuration(refused)
        assert watch._configuration.tolist() == [0.1] * 4


def test_a_fault_names_an_emulator_that_is_switched_off(supervisor_of):
    from softarm_ros.control.supervisor import SafetyState, SupervisorStatus

    supervisor = supervisor_of('/emulator_off', 'tracker', 'natnet')
    fault = SupervisorStatus(SafetyState.FAULT, 'no feedback for 0.2 s', False)
    for off, named in (('inactive', True), ('', False)):
        values = {'ready': str(not off).lower(), 'not_ready': off}
        health = conversions.Health('emulator', 1 if off else 0, off or 'running', values)
        supervisor._on_heartbeat(health)
        assert ('emulator: inactive' in supervisor._message(fault)) == named


def test_a_late_computer_is_not_blamed_for_poses_in_a_wrong_frame(supervisor_of):
    supervisor = supervisor_of('/foreign_poses', 'tracker')
    supervisor._on_heartbeat(conversions.Health('tracker', 0, '', {'late_ms': '90'}))
    for frame, blames in (('base', True), ('world', False), ('base', True)):
        now = 1e-9 * supervisor.get_clock().now().nanoseconds
        supervisor._watch.admit(now, now, frame, np.array([0.0, 0.0, 0.2 + 1e-4 * blames]))
        assert ('the computer is too slow: tracker was late' in supervisor._slowness()) == blames


def test_a_late_computer_is_not_blamed_if_several_programs_publish_a_topic(
    supervisor_of, monkeypatch
):
    """Poses of two programs in turn: the usable one hid the wrong frame of the other."""
    from softarm_ros.control.supervisor import SafetyState, SupervisorStatus

    supervisor = supervisor_of('/rival_poses', 'tracker')
    supervisor._on_heartbeat(conversions.Health('tracker', 0, '', {'late_ms': '90'}))
    fault = SupervisorStatus(SafetyState.FAULT, "pose in frame 'world'", False)
    for found, blames in ((['/a/natnet'], True), (['/a/natnet', '/a/script'], False)):
        monkeypatch.setattr(supervisor, '_named_publishers', lambda topic, found=found: found)
        said = supervisor._message(fault)
        assert ('the computer is too slow: tracker was late' in said) == blames
        rivals = (
            '2 publish tip/pose: /a/natnet, /a/script; end all but one (a killed one stays listed '
            'for up to 20 s)'
        )
        assert (rivals in said) != blames


@pytest.mark.parametrize('latched', [True, False])
def test_a_wait_for_a_latched_problem_names_the_reset(supervisor_of, latched):
    supervisor = supervisor_of('/latched_arm', 'steppers')
    lost = 'link: lost: no state for 250 ms'
    values = {'ready': 'false', 'not_ready': lost, 'latched': str(latched).lower()}
    supervisor._on_heartbeat(
        conversions.Health('steppers', 2, lost, {**values, 'problem 1': lost})
    )
    supervisor.work()
    said = supervisor._heartbeat.message
    assert said.startswith(f'waiting: steppers: {lost}; no command yet')
    advice = '; when the device is in order again, call steppers/reset'
    assert said.endswith(advice) == latched and ('reset' in said) == latched
    assert supervisor._values()['reason'] == said  # which softarm run shows


def test_a_fault_names_a_node_that_falls_silent_after_it(supervisor_of):
    """The poses of a killed sensor are missed long before its heartbeats."""
    from softarm_ros.control.supervisor import SafetyState, SupervisorStatus

    supervisor = supervisor_of('/killed_sensor', 'tracker', 'natnet')
    limit = load_rig('cable_arm').supervisor.heartbeat_timeout_s
    for name in ('tracker', 'natnet'):
        supervisor._on_heartbeat(conversions.Health(name, 0, '', {'ready': 'true'}))
    began = time.monotonic()
    fault = SupervisorStatus(SafetyState.FAULT, 'feedback stale: 124 ms old', False)
    supervisor._tell(fault, began)
    assert 'silent' not in supervisor._heartbeat.message
    supervisor._supervisor.on_heartbeat('tracker', began + limit)
    said = []
    for late_s in (0.1, 0.2):
        supervisor._tell(fault, began + limit + late_s)
        said.append(supervisor._heartbeat.message)
    assert said[0].startswith('feedback stale') and said[0] == said[1]
    assert 'node natnet silent for' in said[0] and 'tracker' not in said[0]
    assert said[0].endswith('start it again if it has ended')
    # A node that ends long after the fault did not cause it.
    supervisor._tell(fault, began + 3.0 * limit + 10.0)
    assert supervisor._heartbeat.message == said[0]


def test_fault_names_all_publishers_of_the_tip_and_a_later_sensor_error(context):
    from diagnostic_msgs.msg import DiagnosticStatus
    from geometry_msgs.msg import PoseStamped
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from sensor_msgs.msg import JointState

    from softarm_ros.nodes.qos import HEARTBEAT, MEASUREMENT, command_qos
    from softarm_ros.nodes.supervisor_node import SupervisorNode

    rig, there = load_rig('cable_arm'), {'context': context, 'namespace': '/watched_arm'}
    wants = {'rig': 'cable_arm', 'twin_check_s': 0.0, 'required_nodes': ['supervisor']}
    overrides = [Parameter(name, value=value) for name, value in wants.items()]
    supervisor = SupervisorNode(**there, parameter_overrides=overrides)
    # The sensor of the rig was killed and restarted: DDS still lists the old one.
    peers = [Node(name, **there) for name in ('cameras', 'old_script', 'natnet', 'natnet')]
    tips = [peer.create_publisher(PoseStamped, 'tip/pose', MEASUREMENT) for peer in peers]
    commands = peers[0].create_publisher(JointState, 'actuators/command', command_qos(1.0))
    peers[1].create_publisher(JointState, 'actuators/command', command_qos(1.0))
    executor = SingleThreadedExecutor(context=context)
    for node in (supervisor, *peers):
        executor.add_node(node)

    def publish(tip, z):
        now, names = peers[0].get_clock().now().to_msg(), rig.actuator_names
        commands.publish(conversions.joint_message(names, np.zeros(len(names)), now))
        pose = PoseStamped()
        pose.header.frame_id, pose.header.stamp, pose.pose.position.z = 'base', now, z
        tip.publish(pose)

    def until(state, tip, z):
        end = time.monotonic() + 20.0
        while supervisor._status.state.value != state:
            assert time.monotonic() < end, supervisor._status
            publish(tip, z)
            executor.spin_once(timeout_sec=0.01)
            supervisor.work()

    until('ready', tips[0], 0.24)
    assert supervisor._supervisor.request_start(time.monotonic(), time.monotonic())[0]
    until('running', tips[0], 0.24)
    until('fault', tips[1], 0.14)
    said = supervisor._heartbeat.message
    assert 'jumped by 100.0 mm' in said
    names = '/watched_arm/cameras, /watched_arm/natnet, /watched_arm/old_script'
    assert f'3 publish tip/pose: {names}; end' in said
    names = '/watched_arm/cameras, /watched_arm/old_script'
    assert f'2 publish actuators/command: {names}; end' in said
    beats = peers[2].create_publisher(DiagnosticStatus, 'heartbeat', HEARTBEAT)
    gone = DiagnosticStatus(level=b'\x02', name='natnet', message='server: it does not answer')
    end = time.monotonic() + 5.0
    while supervisor._heartbeat.message == said and time.monotonic() < end:
        supervisor._changed_at = time.monotonic()  # however long discovery takes
        beats.publish(gone)
        executor.spin_once(timeout_sec=0.01)
        supervisor.work()
    assert supervisor._heartbeat.message == f'{said}; natnet: server: it does not answer'
    for node in (supervisor, *peers):
        node.destroy_node()


def test_running_node_refuses_a_change_of_use_sim_time(context):
    from rclpy.clock import ROSClock
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    from softarm_ros.nodes.node_parameters import keep_clock

    node = Node('clocked', context=context)
    keep_clock(node)
    (same, other) = node.set_parameters(
        [Parameter('use_sim_time', value=value) for value in (False, True)]
    )
    clock = node.get_clock()
    assert isinstance(clock, ROSClock)
    assert not clock.ros_time_is_active
    assert same.successful
    assert other.reason.startswith('use_sim_time = True: expected False')
    node.destroy_node()


def test_plant_ignores_commands_without_a_permit_and_reports_missing_inputs():
    """The supervisor may receive from a restarted node before the plant does."""
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Bool

    from softarm_ros.nodes.qos import LATCHED, MEASUREMENT, PERMIT, command_qos

    rig = load_rig('cable_arm')
    at_rest = np.zeros(len(rig.actuators))
    target = at_rest.copy()
    target[0] = 0.01
    with Alone('plant') as alone:
        alone.listen(JointState, 'actuators/state', MEASUREMENT)
        commands = alone.node.create_publisher(JointState, 'actuators/command', command_qos(0.1))
        permits = alone.node.create_publisher(Bool, 'supervisor/permit', PERMIT)

        def command(values):
            commands.publish(conversions.joint_message(rig.actuator_names, values, Time(sec=1)))

        alone.until(lambda: len(alone.received) > 2)

        def commanded():
            command(target)
            return int(alone.health.values['commands']) > 30

        alone.until(commanded)
        np.testing.assert_allclose(alone.received[-1].position, 0.0, atol=1e-9)
        commands.publish(conversions.joint_message(['x'], [0.0], Time(sec=1)))
        alone.until(lambda: alone.health.level == 2 and 'names are [x]' in alone.health.message)

        def unheard(text, *, commanding, forbidding):
            def heard():
                if commanding:
                    command(at_rest)
                if forbidding:
                    permits.publish(Bool(data=False))
                said = alone.health.values['unheard']
                return text in said if text else not said

            alone.until(heard)

        unheard('nothing received from the supervisor', commanding=True, forbidding=False)
        unheard('', commanding=True, forbidding=True)
        touched = alone.node.create_publisher(Bool, 'supervisor/touched', LATCHED)
        touched.publish(Bool(data=True))
        unheard('command stale', commanding=False, forbidding=True)
        unheard('', commanding=True, forbidding=True)
        assert alone.health.values['touched'] == 'true'
        unheard('supervisor silent', commanding=True, forbidding=False)


def test_markers_node_latches_a_robot_description_of_its_joints(markers):
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String

    from softarm_ros.nodes.qos import LATCHED, VISUAL

    with Alone('markers', markers) as alone:
        alone.until(lambda: alone.beats > 2)
        alone.listen(String, 'robot_description', LATCHED)  # after it was published
        alone.until(lambda: len(alone.received) == 1)
        description = alone.received.pop().data
        assert description.startswith('<?xml') or description.startswith('<robot')
        alone.listen(JointState, 'joint_states', VISUAL)
        alone.until(lambda: len(alone.received) > 0)
        for name in alone.received[-1].name:
            assert f'"{name}"' in description


def test_transforms_of_links_place_the_tip_as_the_model_does(markers):
    TFMessage = pytest.importorskip('tf2_msgs.msg', reason='not in the ROS wheels').TFMessage
    from sensor_msgs.msg import JointState

    from softarm_ros.nodes.qos import LATCHED, MEASUREMENT, TRANSFORMS
    from softarm_ros.nodes.sensor_topics import transforms_of
    from softarm_ros.perception.tf.frame_tree import chain_to

    model = load_rig('cable_arm').model()
    bent = np.array([0.4, -0.3, 0.2, 0.5])
    names = list(model.configuration_names)
    with Alone('markers', markers) as alone:
        states = alone.node.create_publisher(JointState, 'configuration/state', MEASUREMENT)
        alone.listen(TFMessage, '/tf', TRANSFORMS)
        alone.listen(TFMessage, '/tf_static', LATCHED)

        def apart():
            """Return the distance of the tip from that of the model."""
            states.publish(JointState(name=names, position=bent.tolist()))
            seen = transforms_of(t for message in alone.received for t in message.transforms)
            links = {transform.child: transform.link() for transform in seen}
            chain = chain_to('cable_arm/base', 'cable_arm/tip', links)
            if chain.last != 'cable_arm/base':
                return np.inf
            return np.linalg.norm(chain.pose[:3, 3] - model.shape_of(bent).tip[:3, 3])

        alone.until(lambda: apart() < 1e-4)


def updates_without_joint_states(alone, meanwhile=lambda: None):
    """Return whether no joint state arrives during six updates."""
    alone.received.clear()
    number = int(alone.health.values['updates'])

    def updated():
        meanwhile()
        return int(alone.health.values['updates']) > number + 5

    alone.until(updated)
    return alone.received == []


def test_joint_states_have_the_stamp_of_the_configuration_and_end_with_it(markers):
    from sensor_msgs.msg import JointState

    from softarm_ros.nodes.qos import MEASUREMENT, VISUAL

    names = load_rig('cable_arm').model().configuration_names
    with Alone('markers', markers) as alone:
        states = alone.node.create_publisher(JointState, 'configuration/state', MEASUREMENT)
        alone.listen(JointState, 'joint_states', VISUAL)
        alone.until(lambda: states.get_subscription_count() > 0)
        sent = []

        def drawn():
            sent.append(alone.node.get_clock().now().to_msg())
            states.publish(conversions.joint_message(names, [0.1, 0.2, 0.3, 0.4], sent[-1]))
            return sum(message.header.stamp in sent for message in alone.received) > 3

        alone.until(drawn)
        alone.until(lambda: updates_without_joint_states(alone))


def test_joint_states_of_an_unmeasured_configuration_end_with_the_measured_tip():
    from geometry_msgs.msg import PoseStamped
    from sensor_msgs.msg import JointState

    from softarm_ros.nodes.qos import MEASUREMENT, VISUAL, command_qos

    model = load_rig('cable_arm').model()
    tip = model.shape_of(model.rest_configuration).tip[:3, 3]
    with Alone('markers') as alone:
        commands = alone.node.create_publisher(
            JointState, 'configuration/command', command_qos(0.1)
        )
        tips = alone.node.create_publisher(PoseStamped, 'tip/pose', MEASUREMENT)
        alone.listen(JointState, 'joint_states', VISUAL)
        alone.until(lambda: tips.get_subscription_count() > 0)

        def command():
            stamp = alone.node.get_clock().now().to_msg()
            commands.publish(
                conversions.joint_message(
                    model.configuration_names, model.rest_configuration, stamp
                )
            )
            return stamp

        sent = []

        def drawn():
            sent.append(command())
            tips.publish(conversions.position_message(tip, sent[-1], 'cable_arm/base'))
            return sum(message.header.stamp in sent for message in alone.received) > 3

        alone.until(drawn)
        alone.until(lambda: updates_without_joint_states(alone, command))
        assert alone.health.values['drawn'] == '0'  # nobody subscribes to the markers


def test_markers_node_publishes_the_path_of_the_tip(markers):
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path

    from softarm_ros.nodes.qos import MEASUREMENT, VISUAL

    with Alone('markers', markers) as alone:
        tips = alone.node.create_publisher(PoseStamped, 'tip/pose', MEASUREMENT)
        alone.listen(Path, 'tip/path', VISUAL)
        alone.until(lambda: tips.get_subscription_count() > 0)
        places = itertools.count(0.0, 5e-4)

        def travelled():
            x = next(places)
            tips.publish(
                conversions.position_message([x, 0.0, 0.2], Time(sec=1), 'cable_arm/base')
            )
            return alone.received and len(alone.received[-1].poses) >= 3

        alone.until(travelled)
        points = conversions.path_points(alone.received[-1])
        assert alone.received[-1].header.frame_id == 'cable_arm/base'
        assert np.all(np.diff(points[:, 0]) > 0.0)
        np.testing.assert_allclose(points[:, 1:], [[0.0, 0.2]] * len(points))


def test_markers_node_colours_strands_by_the_command_and_draws_the_error(markers):
    from geometry_msgs.msg import PoseStamped
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    from softarm_ros.nodes.qos import MEASUREMENT, VISUAL, command_qos

    rig = load_rig('cable_arm')
    limits = rig.actuator_limits()
    command = limits.position_min.copy()
    command[0] = limits.position_max[0]
    tip, wanted = [0.0, 0.0, 0.24], [0.0, 0.01, 0.24]
    with Alone('markers', markers) as alone:
        publish = alone.node.create_publisher
        commands = publish(JointState, 'actuators/command', command_qos(0.1))
        tips = publish(PoseStamped, 'tip/pose', MEASUREMENT)
        references = publish(PoseStamped, 'reference/pose', VISUAL)
        alone.listen(MarkerArray, 'markers', VISUAL)

        def drawn():
            stamp = alone.node.get_clock().now().to_msg()
            commands.publish(conversions.joint_message(rig.actuator_names, command, stamp))
            tips.publish(conversions.position_message(tip, stamp, rig.base_frame))
            references.publish(conversions.position_message(wanted, stamp, rig.base_frame))
            found = alone.received[-1].markers if alone.received else []
            lines = [marker for marker in found if marker.ns == 'strands']
            pulled = [marker.id for marker in lines if marker.color.r > marker.color.b]
            error = [marker.points for marker in found if marker.ns == 'error' and marker.points]
            return len(lines) == 6 and pulled == [0] and error

        alone.until(drawn)
        (line,) = drawn()
        assert [[p.x, p.y, p.z] for p in line] == [tip, wanted]


def test_markers_node_draws_nothing_while_nobody_subscribes(markers):
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    from softarm_ros.nodes.qos import MEASUREMENT, VISUAL

    def drawn():
        return int(alone.health.values['drawn'])

    def listened_to():
        return alone.node.count_subscribers('configuration/state') > 0

    with Alone('markers', markers) as alone:
        alone.node.create_publisher(JointState, 'configuration/state', MEASUREMENT)
        alone.until(lambda: alone.health.message == 'nobody looks')
        before, first = drawn(), alone.beats
        alone.until(lambda: alone.beats > first + 5)
        assert drawn() == before
        assert alone.health.message == 'nobody looks'
        assert not listened_to()
        looking = alone.node.create_subscription(
            MarkerArray, 'markers', alone.received.append, VISUAL
        )
        alone.until(lambda: alone.received and listened_to() and drawn() > before)
        alone.node.destroy_subscription(looking)
        alone.until(lambda: not listened_to())
        first = alone.beats
        alone.until(lambda: alone.beats > first + 2)  # with the count until it paused
        before, first = drawn(), alone.beats
        alone.until(lambda: alone.beats > first + 5)
        assert drawn() <= before + 3  # those in progress when it paused


def test_ctrl_c_twice_ends_a_node_cleanly():
    process = subprocess.Popen(
        [sys.executable, *command_of('supervisor', 'rig:=cable_arm')],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = next(line for line in process.stdout if 'waiting for' in line)  # so it spins
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, said + output
    assert 'Traceback' not in output


def test_second_node_of_the_same_name_refuses_to_start(started):
    with Alone('supervisor'):
        code, output = started('supervisor', 'rig:=cable_arm', 'twin_check_s:=20.0')
    assert code == 2
    assert 'rig cable_arm is already running in ROS domain' in output
