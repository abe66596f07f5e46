"""Goals over topics, on a running arm: reached, replaced, cancelled, refused; streams."""

import contextlib
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from forked_python import NODES, ForkedPython
from node_bench import HALF_RATES, client_until, waiting

from softarm_ros.cli import goto_command
from softarm_ros.cli.goto_command import require_arm

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(300)]
SOMEWHERE = (0.03, 0.01, 0.235)


def unheard(_):
    """Ignore a message; a function, since rclpy inspects the signature of a callback."""


@pytest.fixture(scope='module')
def rig():
    from softarm_ros.rigs.loader import load_rig

    return load_rig('cable_arm', HALF_RATES)


@pytest.fixture(scope='module')
def bench(rig):
    with waiting(rig) as running:
        yield running


@pytest.fixture(scope='module')
def softarm():
    """Return a function that runs a command in its own process, forked from a prepared one."""
    with ForkedPython([*NODES, 'softarm_ros.cli.main', 'softarm_ros.nodes.goal_client']) as python:
        yield lambda *words: python.run('-m', 'softarm_ros.cli', *words, timeout=120.0)


@pytest.fixture(scope='module')
def joined(bench, rig):
    from softarm_ros.nodes.goal_client import GoalClient

    with GoalClient(rig) as running:
        yield running


@pytest.fixture
def client(bench, joined):
    """Return the client of all tests, without reports of earlier goals."""
    if bench.state != 'running':
        bench.call('supervisor/reset')
        bench.call('supervisor/start')
        bench.until(lambda: bench.state == 'running', 20.0, 'running')
    assert joined.wait_until_heard(20.0) is None
    joined.reports.clear()
    return joined


def states(client, stamp):
    return [report.values['state'] for report in client.of_stamp(stamp)]


def test_new_target_in_motion_preempts_the_first_and_is_reached(bench, client):
    first = client.send.pose((0.06, 0.0, 0.225))
    client_until(client, lambda: 'active' in states(client, first), 60.0, 'active')
    client.spin(1.0)
    second = client.send.pose(SOMEWHERE)
    client_until(client, lambda: 'reached' in states(client, second), 60.0, 'reached')
    assert states(client, first) == ['planning', 'active', 'preempted']
    assert states(client, second) == ['planning', 'active', 'reached']
    assert np.linalg.norm(client.reference - SOMEWHERE) < 1e-4
    bench.until(lambda: bench.values('tracker').get('missed', '').isdigit(), what='its count')


def test_invalid_goals_are_refused_with_field_and_value(client):
    from builtin_interfaces.msg import Duration
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from std_msgs.msg import Header
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from softarm_ros.nodes.qos import GOALS

    path = client.node.create_publisher(Path, 'goal/path', GOALS)
    trajectory = client.node.create_publisher(JointTrajectory, 'configuration/trajectory', GOALS)
    client_until(client, lambda: path.get_subscription_count() > 0, 10.0, 'a listener')
    client_until(client, lambda: trajectory.get_subscription_count() > 0, 10.0, 'a listener')
    client.reports.clear()
    frame, client.send._frame = client.send._frame, 'world'
    client.send.pose(SOMEWHERE)
    client.send._frame = frame
    client.send.pose((float('nan'), 0.0, 0.2))
    path.publish(Path())
    path.publish(Path(poses=[PoseStamped()] * 20_000))
    foreign = [PoseStamped(header=Header(frame_id=name)) for name in ('cable_arm/base', 'lab')]
    foreign[1].pose.position.z = 0.2
    path.publish(Path(header=foreign[0].header, poses=foreign))
    trajectory.publish(
        JointTrajectory(
            joint_names=['elbow'],
            points=[JointTrajectoryPoint(positions=[0.0], time_from_start=Duration(sec=1))],
        )
    )
    client_until(client, lambda: len(client.reports) == 6, 10.0, 'six refusals')
    said = [(report.values['state'], report.message) for report in client.reports]
    assert {state for state, _ in said} == {'refused'}
    for words in (
        "header.frame_id = 'world'",
        'pose.position.x = nan',
        'poses has 0',
        'poses has 20000',
        "poses[1].header.frame_id = 'lab'",
        'elbow',
    ):
        assert any(words in message for _, message in said), said


def test_action_is_served_or_the_log_names_the_missing_control_msgs(bench):
    said = 'no action for configurations: control_msgs is not installed: apt install ros-'
    assert (said in bench.processes.log('tracker')) == (find_spec('control_msgs') is None)
    named = [name for name, _ in bench.node.get_service_names_and_types()]
    served = any('follow_joint_trajectory' in name for name in named)
    assert served == (find_spec('control_msgs') is not None)


def test_goal_out_of_reach_is_reported_and_can_be_cancelled(client):
    stamp = client.send.pose((0.5, 0.0, 0.2))
    client_until(client, lambda: 'active' in states(client, stamp), 60.0, 'active')
    report = client.of_stamp(stamp)[-1]
    assert 'out of reach' in report.message
    assert float(report.values['miss_mm']) > 200.0
    assert client.call('goal/cancel', 5.0)[0]
    client_until(client, lambda: 'cancelled' in states(client, stamp), 60.0, 'cancelled')
    assert client.call('goal/cancel', 5.0) == (False, 'no goal is under way')


def test_reference_is_held_when_a_stream_stops(client):
    client.reports.clear()
    at = client.reference.copy()
    for k in range(45):
        client.send.stream(at + 2e-4 * k * np.array([0.0, 1.0, 0.0]))
        client.spin(1.0 / 30.0)
    client_until(client, lambda: client.reports[-1].values['state'] == 'cancelled', 10.0, 'held')
    # By the loop's clock, independent of when this process reads the report.
    silent = re.search(r'stream silent for (\d+) ms; held', client.reports[-1].message)
    assert int(silent[1]) <= 200
    client.spin(1.5)
    stood = client.reference.copy()
    client.spin(0.5)
    np.testing.assert_allclose(client.reference, stood, atol=1e-7)


def test_emergency_stop_cancels_the_goal_and_refuses_new_ones(bench, client):
    stamp = client.send.pose((-0.06, 0.0, 0.225))
    client_until(client, lambda: 'active' in states(client, stamp), 60.0, 'active')
    client.spin(0.5)
    bench.spin(0.1)
    began = bench.now_s()
    bench.call('supervisor/estop')
    bench.until(lambda: bench.state == 'fault', 5.0, 'fault')
    client_until(client, lambda: 'cancelled' in states(client, stamp), 60.0, 'cancelled')
    assert bench.hold_time(began) < 0.5
    late = client.send.pose(SOMEWHERE)
    client_until(client, lambda: 'refused' in states(client, late), 60.0, 'refused')
    bench.call('supervisor/reset')
    bench.call('supervisor/start')
    bench.until(lambda: bench.state == 'running', 20.0, 'running')
    stood = bench.now_s()
    bench.spin(1.0)
    assert bench.moved_at < stood + 0.3  # a start alone does not move the arm


def test_goto_command_waits_until_the_goal_is_reached(bench, client, rig, softarm):
    done = softarm('goto', rig.name, '-0.02', '0.02', '0.24')
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'reached' in done.stdout


def test_teleop_moves_the_tip_by_keys_and_joystick_and_drops_outdated_keys(bench, client, rig):
    from sensor_msgs.msg import Joy

    from softarm_ros.nodes.qos import MEASUREMENT

    joy = client.node.create_publisher(Joy, '/pad', MEASUREMENT)
    with subprocess.Popen(
        [sys.executable, '-m', 'softarm_ros.cli', 'teleop', rig.name, '--joy', '/pad'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as keys:
        try:
            client_until(client, lambda: joy.get_subscription_count() > 0, 60.0, 'teleop')
            start = client.reference.copy()

            def held(key, axis, sign):
                keys.stdin.write(key)
                keys.stdin.flush()
                client.spin(0.05)
                return sign * (client.reference - start)[axis] > 0.004

            client_until(client, lambda: held('f', 2, -1.0), 30.0, 'down by the key')

            joy.publish(Joy(axes=[0.0] * 5))  # released: the stick counts from now on
            client.spin(0.05)

            def pushed():
                joy.publish(Joy(axes=[1.0, 0.0, 0.0, 0.0, 0.0]))
                client.spin(0.05)
                return (client.reference - start)[1] > 0.004

            client_until(client, pushed, 30.0, 'to the left by the stick')
            client.spin(1.0)
            keys.send_signal(signal.SIGSTOP)
            for _ in range(10):  # repeated by the terminal, but outdated once read
                keys.stdin.write('s')
                keys.stdin.flush()
                client.spin(0.1)
            stood = client.reference.copy()  # the stream was held, and came to rest, before
            told = len(client.reports)
            keys.send_signal(signal.SIGCONT)
            client_until(client, lambda: len(client.reports) >= told + 2, 30.0, 'a stream again')
            client.spin(0.5)
            np.testing.assert_allclose(client.reference, stood, atol=2e-4)
            keys.stdin.write('q')
            keys.stdin.flush()
            assert keys.wait(60.0) == 0
        finally:
            keys.kill()
    client_until(client, lambda: client.reports[-1].values['state'] == 'cancelled', 5.0, 'held')
    assert bench.state in ('running', '')


@contextlib.contextmanager
def paused_until_it_moves_again(bench):
    """Pause the loop; it then finds that it is late, and holds the arm for a moment."""
    before = bench.values('supervisor')['holds']
    with bench.paused('tracker'):
        yield

    def goes_on():
        return bench.values('supervisor')['holds'] != before and bench.state == 'running'

    bench.until(goes_on, 20.0, 'the arm may move again')


def test_teleop_pauses_while_the_arm_is_stopped_and_ends_when_the_graph_is_gone(
    bench, client, rig
):
    with subprocess.Popen(
        [sys.executable, '-m', 'softarm_ros.cli', 'teleop', rig.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as keys:
        try:

            def following():
                return client.reports and client.reports[-1].values['state'] == 'active'

            client_until(client, following, 60.0, 'a stream')
            first = client.reports[-1].values['number']
            assert client.call('goal/cancel', 5.0)[0]
            client_until(client, following, 10.0, 'a stream that begins anew')
            assert client.reports[-1].values['number'] != first
            bench.call('supervisor/stop')
            client_until(
                client, lambda: client.reports[-1].values['state'] == 'cancelled', 5.0, 'held'
            )
            assert any('stopped on request' in line for line in keys.stdout)
            client.spin(0.3)
            assert not any(report.values['state'] == 'refused' for report in client.reports[-5:])
            bench.call('supervisor/start')
            client_until(client, following, 10.0, 'a stream again')
            with paused_until_it_moves_again(bench):
                assert keys.wait(60.0) == 1
            assert 'the graph is gone' in keys.stdout.read()
        finally:
            keys.kill()


def test_goto_interrupted_before_sending_its_goal_sends_none(bench, client, rig, monkeypatch):
    def found_and_interrupted(*found):
        require_arm(*found)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(goto_command, 'require_arm', found_and_interrupted)
    told = len(client.reports)
    assert goto_command.goto(rig, (0.06, 0.0, 0.225), 20.0, print) == 130
    client.spin(1.0)
    assert not client.reports[told:]


def test_goto_whose_reader_ends_cancels_its_goal(bench, client, rig, heard_hangup):
    far = -0.08 if client.reference[0] > 0.0 else 0.08
    command = [sys.executable, '-m', 'softarm_ros.cli', 'goto', rig.name, str(far), '0.0', '0.21']
    client.reports.clear()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            process.stdout.close()
            process.wait(60.0)
            complaints = process.stderr.read()
        finally:
            process.kill()
    assert (process.returncode, complaints) == (130, b'')
    client_until(
        client,
        lambda: client.reports and client.reports[-1].values['final'] == 'true',
        30.0,
        'an outcome',
    )
    assert client.reports[-1].values['state'] == 'cancelled'


def test_goto_command_fails_when_the_graph_is_gone(bench, client, rig, softarm):
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(softarm, 'goto', rig.name, '0.06', '0.0', '0.225')
        client_until(
            client,
            lambda: client.reports and client.reports[-1].values['state'] == 'active',
            60.0,
            'active',
        )
        with paused_until_it_moves_again(bench):
            ended = done.result(60.0)
    assert ended.returncode == 1
    assert 'the graph is gone' in ended.stdout


def test_goto_fails_if_the_tracker_has_dropped_the_goal(bench, client, rig, monkeypatch):
    from softarm_ros.nodes.goal_client import GoalClient

    of_stamp, said = GoalClient.of_stamp, []

    def without_the_last(listener, stamp_ns):
        return [r for r in of_stamp(listener, stamp_ns) if r.values['final'] == 'false']

    monkeypatch.setattr(GoalClient, 'of_stamp', without_the_last)
    monkeypatch.setattr(goto_command, '_FORGOTTEN_S', 0.2)
    assert goto_command.goto(rig, client.reference, 60.0, said.append) == 1
    assert said[-1].startswith('the tracker has dropped the goal')


def test_live_excitation_identifies_a_wrong_length_and_ends_when_the_arm_is_stopped(
    bench, client, tmp_path, softarm
):
    """`softarm excite --live`, for any backend, runs under the supervisor and can be stopped."""
    from softarm_ros.cli.identification.common import all_parameters
    from softarm_ros.cli.identification.fit import chosen, fit
    from softarm_ros.cli.identification.recordings import read_recordings
    from softarm_ros.rigs.field_values import values_of
    from softarm_ros.rigs.loader import load_rig

    path, length = tmp_path / 'live.csv', 'arm.sections[0].length_m'
    command = ['excite', 'cable_arm', '--live', '--kind', 'random', '--count', '2']
    command += ['--dwell-s', '0.5', '--amplitude', '0.12', '--csv']
    done = softarm(*command, path)
    assert done.returncode == 0, done.stderr
    assert '2 places, 2 poses at rest' in done.stdout
    wrong = load_rig('cable_arm', [f'{length}=0.08'])
    recorded = read_recordings(wrong, [path], 'nothing')
    assert np.ptp(recorded[0].whole.commands, axis=0).min() > 1e-3
    found = fit(wrong, recorded, chosen(all_parameters(wrong), ['lengths']), 60)
    truth = values_of(load_rig('cable_arm'), [length])[length]
    assert abs(found.values[length] - truth) < 0.35 * abs(0.08 - truth)

    # Once this goal is refused, all reports of earlier goals have arrived.
    marked = client.send.pose((1e3, 0.0, 0.0))
    client_until(client, lambda: 'refused' in states(client, marked), 60.0, 'refused')
    told = len(client.reports)

    def led_again():
        return any(report.values['state'] == 'active' for report in client.reports[told:])

    with ThreadPoolExecutor(1) as beside:
        ending = beside.submit(softarm, *command, tmp_path / 'cut.csv')
        client_until(client, led_again, 60.0, 'a goal')
        bench.call('supervisor/stop')
        cut = ending.result(60.0)
    assert cut.returncode == 1
    assert 'stopped' in cut.stderr


def test_live_excitation_ends_with_the_reason_if_another_client_sends_a_goal(
    client, tmp_path, rig, softarm
):
    words = ['--kind', 'random', '--count', '2', '--dwell-s', '3', '--amplitude', '0.03']
    words += ['--csv', f'{tmp_path}/some.csv']
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(softarm, 'excite', rig.name, '--live', *words)

        def standing():
            values = client.reports[-1].values if client.reports else {}
            return (values.get('kind'), values.get('state')) == ('configuration', 'reached')

        client_until(client, standing, 90.0, 'the first place')
        ours = client.send.pose(SOMEWHERE)
        ended = done.result(60.0)
    client_until(client, lambda: 'reached' in states(client, ours), 60.0, 'the goal, undisturbed')
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert 'nothing was read: somebody else leads the arm: goal pose' in ended.stderr


class PlayedArm:
    """A tracker and a supervisor that answer each configuration goal with a function."""

    def __init__(self, context, rig):
        from diagnostic_msgs.msg import DiagnosticStatus
        from geometry_msgs.msg import PoseStamped
        from nav_msgs.msg import Path
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node
        from trajectory_msgs.msg import JointTrajectory

        from softarm_ros.nodes.goal_intake import STATUS
        from softarm_ros.nodes.qos import GOALS, HEARTBEAT, REPORTS, newest

        self.rig = rig.model_copy(update={'name': 'played_arm'})
        self.asked, self.state, self.answer = [], 'running', unheard
        self.node = Node('tracker', namespace='/played_arm', context=context)
        self._status = self.node.create_publisher(DiagnosticStatus, STATUS, REPORTS)
        self._beats = self.node.create_publisher(DiagnosticStatus, 'heartbeat', HEARTBEAT)
        for kind, topic, callback in (
            (JointTrajectory, 'configuration/trajectory', self._asked),
            (PoseStamped, 'goal/pose', unheard),
            (PoseStamped, 'goal/stream', unheard),
            (Path, 'goal/path', unheard),
        ):
            self.node.create_subscription(kind, topic, callback, newest(GOALS))
        self.node.create_timer(0.1, self.beat)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)

    def beat(self, state=''):
        from softarm_ros.nodes.conversions import OK, Health, status_message

        self.state = state or self.state
        health = Health('supervisor', OK, '', {'state': self.state, 'reason': ''})
        self._beats.publish(status_message(health, self.rig.name))

    def report(self, kind, state, stamp, message='', **values):
        from softarm_ros.nodes.conversions import OK, Health, status_message

        values |= {'kind': kind, 'state': state, 'number': '5', 'stamp_ns': str(stamp)}
        health = Health('goal', OK, message or state, values)
        self._status.publish(status_message(health, self.rig.name))

    def _asked(self, message):
        from softarm_ros.nodes.conversions import nanoseconds_of

        self.asked.append(nanoseconds_of(message.header.stamp))
        self.answer(self.asked[-1])

    def excite(self):
        """Return why the excitation ended early, or ''."""
        from softarm_ros.nodes.excitation_client import ExcitationClient
        from softarm_ros.runtime.excite import plan_excitation

        executor = self.executor

        class Beside(ExcitationClient):
            def spin(self, duration_s):
                executor.spin_once(timeout_sec=0.0)
                super().spin(duration_s)

        plan = plan_excitation(self.rig, 'random', count=2, amplitude=0.5, dwell_s=0.5, seed=0)
        with Beside(self.rig) as client:
            client_until(
                client,
                lambda: client.send.heard and 'supervisor' in client.health,
                20.0,
                'a listener',
            )
            return client.run(plan, lambda: False, lambda share: None)


@pytest.fixture
def played(context, rig):
    arm = PlayedArm(context, rig)
    yield arm
    arm.node.destroy_node()


def test_excitation_notices_a_foreign_goal_that_arrives_with_its_own_report(played):
    def answer(stamp):
        played.report('configuration', 'reached', stamp, final='true')
        played.report('pose', 'planning', 7, final='false')

    played.answer = answer
    assert played.excite() == 'somebody else leads the arm: goal pose 5'
    assert len(played.asked) == 1


@pytest.mark.parametrize(
    ('after', 'why', 'asked'),
    [
        ('running', 'somebody else leads the arm: goal pose 5', 2),
        ('stopped', 'stopped: ', 1),
    ],
)
def test_excitation_goes_on_after_a_hold_but_not_after_a_stop(played, after, why, asked):
    def answer(stamp):
        if len(played.asked) == 1:
            played.beat('held')
            played.report('configuration', 'cancelled', stamp, 'the arm is held', final='true')
            played.node.create_timer(1.0, lambda: played.beat(after))
        else:
            played.report('configuration', 'reached', stamp, final='true')
            played.report('pose', 'planning', 7, final='false')

    played.answer = answer
    assert played.excite() == why
    assert len(played.asked) == asked


def test_excitation_gives_a_place_up_if_the_arm_is_held_again_and_again(played):
    played.answer = lambda stamp: played.report(
        'configuration', 'cancelled', stamp, 'the arm is held', final='true'
    )
    assert played.excite() == 'goal cancelled: the arm is held, 5 times on the way to one place'
    assert len(played.asked) == 5


@pytest.mark.parametrize(
    ('state', 'message'), [('preempted', 'by goal 2'), ('cancelled', 'on request')]
)
def test_excitation_says_what_became_of_a_goal_that_another_client_ended(played, state, message):
    played.answer = lambda stamp: played.report(
        'configuration', state, stamp, message, final='true'
    )
    assert played.excite() == f'goal {state}: {message}'


def test_excitation_leaves_out_incomplete_poses_and_names_the_fault(context, rig):
    from softarm_ros.control.excited_rows import ExcitationError
    from softarm_ros.nodes.excitation_client import ExcitationClient
    from softarm_ros.nodes.wire import JointValues, StampedPoses

    names = rig.actuator_names
    pose, none = [0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0], [np.nan, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0]
    point = [0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0]  # as from a sensor of points only
    with ExcitationClient(rig.model_copy(update={'name': 'seen_arm'})) as client:
        frame = 'base'
        client._on_command(JointValues(0, names, *np.zeros((3, len(names)))), 0)
        client._on_tip(StampedPoses(1, frame, np.array([point])), 0)
        with pytest.raises(ExcitationError, match=r'at place 3 that could .*has length zero'):
            client._keep_still('place 3')
        client._on_sections(StampedPoses(2, frame, np.array([none, pose])), 0)
        client._on_tip(StampedPoses(2, frame, np.array([pose])), 0)
        client._keep_still('place 4')
        assert client.rows.section_tips.shape == (1, 1, 4, 4)


def test_goal_client_does_not_mistake_a_recorder_for_the_tracker(context, rig):
    """A recorder subscribes to all topics, and may be discovered before the tracker."""
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from rclpy.node import Node
    from trajectory_msgs.msg import JointTrajectory

    from softarm_ros.nodes.goal_client import GoalClient
    from softarm_ros.nodes.qos import GOALS, newest

    kinds = {
        'configuration/trajectory': JointTrajectory,
        'goal/pose': PoseStamped,
        'goal/stream': PoseStamped,
        'goal/path': Path,
    }

    def listener(name):
        node = Node(name, namespace='/recorded_arm', context=context)
        for topic, kind in kinds.items():
            node.create_subscription(kind, topic, unheard, newest(GOALS))
        return node

    recorder = listener('recorder')
    with GoalClient(rig.model_copy(update={'name': 'recorded_arm'})) as client:

        def found():
            return all(client.node.count_subscribers(topic) for topic in kinds)

        client_until(client, found, 20.0, 'the recorder')
        client.spin(0.1)
        assert not client.send.heard
        tracker = listener('tracker')
        client_until(client, lambda: client.send.heard, 20.0, 'the tracker')
    for node in (recorder, tracker):
        node.destroy_node()


def test_goal_intake_keeps_one_stamp_per_stream_and_drops_it_at_the_end(context):
    from rclpy.node import Node

    from softarm_ros.control.goals.goal import GoalKind, point_goal
    from softarm_ros.nodes.goal_intake import GoalIntake
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.assembly import build_goal_loop

    loop = build_goal_loop(load_rig('cable_arm'))
    loop.start(0.0)
    node = Node('intake', context=context)
    intake = GoalIntake(node, 'cable_arm', loop)
    for k in range(50):
        intake.take(GoalKind.STREAM, k, lambda number: point_goal(number, SOMEWHERE, stream=True))
        loop.cycle(0.01 * k, None)
    assert len(intake._stamps) == 1
    loop.hold(0.5)
    intake.publish()
    assert not intake._stamps
    node.destroy_node()


def test_tracker_reports_its_goals_as_cancelled_when_it_ends(context):
    from diagnostic_msgs.msg import DiagnosticStatus
    from rclpy.node import Node

    from softarm_ros.control.goals.goal import GoalKind, point_goal
    from softarm_ros.nodes.goal_intake import STATUS, GoalIntake
    from softarm_ros.nodes.qos import REPORTS, make_executor, newest
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.assembly import build_goal_loop

    loop = build_goal_loop(load_rig('cable_arm'))
    loop.start(0.0)
    tracker, listener = Node('ends', context=context), Node('listens', context=context)
    said = []
    listener.create_subscription(DiagnosticStatus, STATUS, said.append, newest(REPORTS))
    executor = make_executor(context)
    executor.add_node(listener)
    intake = GoalIntake(tracker, 'cable_arm', loop)
    while not intake._status.get_subscription_count():
        executor.spin_once(timeout_sec=0.05)
    intake.take(GoalKind.POSE, 5, lambda number: point_goal(number, SOMEWHERE))
    intake.end()
    tracker.destroy_node()
    while len(said) < 2:
        executor.spin_once(timeout_sec=0.05)
    values = [{pair.key: pair.value for pair in report.values} for report in said]
    assert [value['state'] for value in values] == ['planning', 'cancelled']
    assert said[-1].message == 'the tracker has ended' and intake.under_way == ''
    executor.shutdown()
    listener.destroy_node()
