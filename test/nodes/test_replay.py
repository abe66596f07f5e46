"""A recorded run over topics, and its replay from the bag with the same commands."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('rosbags', reason='needs rosbags')
pytest.importorskip('mcap', reason='needs mcap')
from test_topic_run import environment, nodes_of, run, wait_until
from typer.testing import CliRunner

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.main import app
from softarm_ros.cli.replay_direct import describe, replay_direct
from softarm_ros.nodes.bag_messages import messages_of, stamp_ns

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(300)]


@pytest.fixture(scope='module')
def whole_run(tmp_path_factory):
    """Return the record of a run over topics against the wall clock, and its bag."""
    from node_bench import SHORT_CIRCLE

    from softarm_ros.cli.run_command import RunOptions

    folder = tmp_path_factory.mktemp('recorded')
    path = folder / 'circle.yaml'
    path.write_text(SHORT_CIRCLE.format(speed=0.06, laps=1))
    record = run(RunOptions(trajectory=str(path), bag=folder / 'bag'))
    path.unlink()  # what a replay needs is in the bag
    return record, folder / 'bag'


@pytest.fixture
def recorded(whole_run):
    record, bag = whole_run
    assert record.completed, record.events
    return bag


def test_run_over_topics_completes_with_record_timing_and_bag(whole_run):
    from rosbags.highlevel import AnyReader

    record, bag = whole_run
    assert record.completed, record.events
    assert nodes_of(os.getpid()) == []
    samples = record.samples
    assert set(samples.phase.tolist()) >= {'approach', 'track'}
    tracking = samples.tracking
    assert np.sum(tracking) > 0.9 * 100 * (2 * np.pi * 0.02 / 0.06)
    assert record.error().mean < 0.02
    assert np.all(np.isfinite(samples.command[tracking]))
    assert np.all(np.isfinite(samples.effort[tracking]))
    np.testing.assert_allclose(samples.position[tracking], samples.command[tracking], atol=5e-3)
    assert np.all(np.diff(samples.time_s) >= 0.0)
    # Delay of the mocap (10 ms) and the way through three nodes.
    assert 10.0 <= record.timing.latency_p50_ms < 30.0
    assert record.timing.cycles > 200
    # Node processes and this one.
    assert 10.0 < record.timing.cpu_percent <= 100.0 * os.cpu_count()
    assert 200.0 < record.timing.memory_mb < 3000.0
    assert record.timing.first_motion_s > 1.0
    counts = {}
    with AnyReader([bag]) as reader:
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
            counts[connection.topic] = counts.get(connection.topic, 0) + 1
    arm = '/cable_arm'
    for topic in ('reference/path', 'robot_description'):
        assert counts[f'{arm}/{topic}'] == 1
    for topic in ('tip/pose', 'configuration/command', 'actuators/command', 'actuators/state'):
        assert counts[f'{arm}/{topic}'] >= 0.95 * len(record.samples.time_s)
    assert counts['/diagnostics'] > 0


def test_direct_replay_reproduces_the_commands_of_the_tracker(recorded):
    replayed = replay_direct(recorded)
    assert replayed.moving > 200
    assert replayed.compared >= 0.99 * replayed.cycles
    assert replayed.largest < 1e-9, replayed
    assert len(list(describe(replayed))) == 2


def test_direct_replay_of_an_estimating_tracker_uses_its_estimates(tmp_path):
    from node_bench import SHORT_CIRCLE
    from rich.console import Console

    from softarm_ros.cli.run_command import RunOptions
    from softarm_ros.cli.topic_run import run_topics
    from softarm_ros.rigs.loader import load_rig

    path = tmp_path / 'circle.yaml'
    path.write_text(SHORT_CIRCLE.format(speed=0.06, laps=1))
    rig = load_rig('cable_arm', ['estimator.kind=filter', 'sensors.pose_topic.delay_s=0.05'])
    options = RunOptions(trajectory=str(path), bag=tmp_path / 'bag', rate=2.0)
    with Path(os.devnull).open('w') as nowhere:
        record = run_topics(rig, options, Console(file=nowhere), lambda: False)
    assert record.completed, record.events
    kinds = {
        '/cable_arm/state/tip': 'geometry_msgs/msg/PoseWithCovarianceStamped',
        '/cable_arm/configuration/state': 'sensor_msgs/msg/JointState',
    }
    ages_s = {topic: [] for topic in kinds}
    tips, velocities, bends = {}, {}, {}
    for message in messages_of(tmp_path / 'bag'):
        if message.topic == '/cable_arm/state/twist':
            found = message.decoded('geometry_msgs/msg/TwistStamped')
            assert found.header.frame_id == rig.base_frame
            v = found.twist.linear
            velocities[stamp_ns(found)] = (v.x, v.y, v.z)
        elif message.topic == '/cable_arm/state/tip':
            found = message.decoded(kinds[message.topic])
            p = found.pose.pose.position
            tips[stamp_ns(found)] = (p.x, p.y, p.z)
        if message.topic in kinds:
            found = message.decoded(kinds[message.topic])
            stamp = stamp_ns(found)
            if message.topic.endswith('/configuration/state'):
                bends[stamp] = (found.position, found.velocity)
            ages_s[message.topic].append(1e-9 * (message.received_ns - stamp))
    of_tip, of_configuration = map(np.median, ages_s.values())
    both = sorted(set(tips) & set(velocities))
    assert len(both) > 0.95 * len(tips) > 200
    p, v = np.array([tips[t] for t in both]), np.array([velocities[t] for t in both])
    moved = np.diff(1e-9 * np.array(both))[:, None] * 0.5 * (v[1:] + v[:-1])
    travelled = np.linalg.norm(moved, axis=1).sum()
    assert travelled > 0.05
    drift = np.cumsum(moved, axis=0) - (p[1:] - p[0])  # of the velocity's integral
    assert np.abs(drift).max() < 0.1 * travelled
    times = np.array(sorted(bends))
    at, rate = (np.array([bends[t][k] for t in times]) for k in (0, 1))
    turned = np.diff(1e-9 * times)[:, None] * 0.5 * (rate[1:] + rate[:-1])
    drift = np.cumsum(turned, axis=0) - (at[1:] - at[0])
    assert np.abs(drift).max() < 0.1 * np.abs(turned).sum(axis=0).max()
    assert abs(of_configuration - of_tip) < 0.01  # one estimate, of one time; poses are older
    replayed = replay_direct(tmp_path / 'bag')
    assert replayed.moving > 200
    assert replayed.unseen <= 0.01 * replayed.cycles
    assert replayed.largest < 1e-9 or replayed.unseen, replayed


def test_a_replayed_cycle_moves_at_the_pace_that_its_estimator_allowed():
    from softarm_ros.cli.replay_direct import Cycle, RecordedDay, compare
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.assembly import build_loop
    from softarm_ros.runtime.cycle_source import cycle_source
    from softarm_ros.runtime.permitted_loop import PermittedLoop

    rig = load_rig('cable_arm')
    loop = build_loop(rig, 'circle', open_loop=True)
    motion = PermittedLoop(loop)
    motion.follow(True, 0.0)
    cycles, commands = [], {}
    for i in range(200):
        now_ns = 10_000_000 * i
        loop.pace = (1.0, 1.0 / 3.0, 0.0)[i // 20 % 3]
        output = motion.cycle(1e-9 * now_ns, None)
        commands[now_ns] = [output.configuration]
        words = frozenset(cycle_source(True, None, loop.pace).split())
        cycles.append(Cycle(1e-9 * now_ns, now_ns, now_ns, words))
    day = RecordedDay(tuple(cycles), {}, {}, (), commands)
    replayed = compare(build_loop(rig, 'circle', open_loop=True), day)
    assert replayed.moving == replayed.compared == 200
    assert replayed.largest == 0.0, replayed


def test_cycles_with_one_stamp_are_compared_with_their_own_commands():
    from softarm_ros.cli.replay_direct import Cycle, RecordedDay, compare
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.assembly import build_loop
    from softarm_ros.runtime.loop import PoseSample
    from softarm_ros.runtime.permitted_loop import PermittedLoop

    rig = load_rig('cable_arm')
    loop = build_loop(rig, 'circle')
    motion, tip = PermittedLoop(loop), loop.tracker.tip()
    motion.follow(True, 0.0)
    cycles, tips, commands = [], {}, {}
    for i in range(200):
        now_ns = 10_000_000 * i
        # Every second cycle has a pose, exposed at the time of the cycle before.
        stamp_ns = now_ns - 10_000_000 * (i % 2)
        pose = PoseSample(1e-9 * stamp_ns, tip) if i % 2 else None
        output = motion.cycle(1e-9 * now_ns, pose)
        commands.setdefault(stamp_ns, []).append(output.configuration)
        words = {'allowed'} if pose is None else {'allowed', 'pose'}
        cycles.append(Cycle(1e-9 * now_ns, stamp_ns, now_ns, frozenset(words)))
        tips[stamp_ns] = tip
    replayed = compare(
        build_loop(rig, 'circle'), RecordedDay(tuple(cycles), tips, {}, (), commands)
    )
    assert replayed.compared == replayed.cycles == 200
    assert replayed.moving > 100
    assert (replayed.lost, replayed.largest) == (0, 0.0), replayed


def test_an_open_loop_misses_no_poses():
    from softarm_ros.cli.replay_direct import Cycle, RecordedDay, compare
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.assembly import build_loop

    loop = build_loop(load_rig('cable_arm'), 'circle', open_loop=True)
    # A cycle of an open loop is stamped with its own time, not with that of its pose.
    cycles = tuple(
        Cycle(0.01 * i, 10_000_000 * i, 10_000_000 * i, frozenset({'held', 'pose'}))
        for i in range(3)
    )
    rest = loop.tracker.configuration
    commands = {cycle.stamp_ns: [rest] for cycle in cycles}
    replayed = compare(loop, RecordedDay(cycles, {5_000_000: np.zeros(3)}, {}, (), commands))
    assert (replayed.compared, replayed.unseen) == (3, 0)
    assert len(list(describe(replayed))) == 2 and 'not in the bag' not in ' '.join(
        describe(replayed)
    )


def recorded_messages(bag):
    """Return the messages of a bag: topic, type, time of receipt [ns], data."""
    from softarm_ros.nodes.bag_messages import messages_of

    return [(m.topic, m.type_name, m.received_ns, m.data) for m in messages_of(bag)]


def write_again(bag, folder, messages):
    """Write a bag of the same run with these messages."""
    from softarm_ros.nodes.bag_repair import about_of
    from softarm_ros.nodes.bag_writer import BagWriter

    writer = BagWriter(folder, about_of(bag))
    for topic, kind in sorted({message[:2] for message in messages}):
        writer.add_topic(topic, kind)
    for topic, _, received_ns, data in messages:
        writer.write(topic, received_ns, data)
    writer.close()


def test_section_poses_with_nan_do_not_change_the_number_of_replayed_cycles(recorded, tmp_path):
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    messages = []
    for topic, kind, received_ns, data in recorded_messages(recorded):
        if topic == '/cable_arm/sections/poses':
            found = store.deserialize_cdr(data, kind)
            found.poses[0].position.x = float('nan')
            data = bytes(store.serialize_cdr(found, kind))
        messages.append((topic, kind, received_ns, data))
    write_again(recorded, tmp_path / 'bag', messages)
    assert replay_direct(tmp_path / 'bag').cycles == replay_direct(recorded).cycles


def test_missing_half_second_of_a_bag_is_reported(recorded, tmp_path):
    day = recorded_messages(recorded)
    middle_ns = (day[0][2] + day[-1][2]) // 2
    kept = [message for message in day if not 0 <= message[2] - middle_ns < 500_000_000]
    write_again(recorded, tmp_path / 'bag', kept)
    replayed = replay_direct(tmp_path / 'bag')
    # On a busy computer the run may have paused by itself.
    ((_, length_s),) = set(replayed.gaps) - set(replay_direct(recorded).gaps)
    assert length_s > 0.4
    assert re.search(r'no cycle for \d+\.\d+ s from \d+\.\d+ s on', ' '.join(describe(replayed)))


@pytest.mark.parametrize('topic', ['tracker/cycle', 'configuration/command'])
def test_topic_that_a_direct_replay_misses_is_named(recorded, tmp_path, topic):
    day = recorded_messages(recorded)
    kept = [message for message in day if message[0] != f'/cable_arm/{topic}']
    write_again(recorded, tmp_path / 'bag', kept)
    with pytest.raises(UsageError, match=f'nothing on /cable_arm/{topic}; the recording may have'):
        replay_direct(tmp_path / 'bag')


def test_every_message_is_decoded_by_other_readers(recorded):
    decoder = pytest.importorskip('mcap_ros2.decoder', reason='needs mcap-ros2-support')
    from mcap.reader import make_reader
    from rosbags.highlevel import AnyReader

    with (recorded / 'bag.mcap').open('rb') as file:
        reader = make_reader(file, decoder_factories=[decoder.DecoderFactory()])
        decoded = sum(1 for _ in reader.iter_decoded_messages())
    with AnyReader([recorded]) as reader:
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
        assert decoded == reader.message_count


def test_a_bag_is_played_with_its_clock_beside_a_live_tracker(recorded):
    import rclpy
    from geometry_msgs.msg import PoseStamped
    from rclpy.context import Context
    from rclpy.node import Node
    from rosgraph_msgs.msg import Clock
    from sensor_msgs.msg import JointState

    from softarm_ros.nodes.bag_messages import messages_of
    from softarm_ros.nodes.qos import listening, make_executor

    poses = {m.data for m in messages_of(recorded) if m.topic == '/cable_arm/tip/pose'}
    context = Context()
    rclpy.init(context=context)
    node = Node('test_replay', context=context)
    executor = make_executor(context)
    executor.add_node(node)
    heard, clock, commands = [], [], []
    best = listening(depth=1000)
    node.create_subscription(PoseStamped, '/cable_arm/tip/pose', heard.append, best, raw=True)
    node.create_subscription(Clock, '/clock', clock.append, best)
    node.create_subscription(JointState, '/cable_arm/configuration/command', commands.append, best)
    replay = subprocess.Popen(
        [
            *(sys.executable, '-m', 'softarm_ros.cli', 'replay', str(recorded)),
            *('--rate', '2', '--nodes', 'estimator,tracker'),
        ],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said_by: dict[str, set[str]] = {}
    try:
        end = time.monotonic() + 200.0
        look = 0.0
        while replay.poll() is None and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
            if time.monotonic() < look:
                continue  # looking takes longer than many messages
            # Again and again: on a busy computer one node may be discovered long after another.
            look = time.monotonic() + 0.2
            for topic, _ in node.get_topic_names_and_types():
                if topic.startswith('/cable_arm/'):
                    found = node.get_publishers_info_by_topic(topic)
                    names = {publisher.node_name for publisher in found}
                    said_by.setdefault(topic, set()).update(names)
        assert replay.returncode == 0, replay.stderr.read()
        before = -1
        while before < len(heard) + len(clock) + len(commands):  # those that have arrived
            before = len(heard) + len(clock) + len(commands)
            executor.spin_once(timeout_sec=0.1)
    finally:
        replay.kill()
        replay.wait()
        replay.stderr.close()
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    both = {topic for topic, names in said_by.items() if {'player', 'tracker'} <= names}
    assert both == {'/cable_arm/heartbeat'}  # those of other nodes are played
    assert len(heard) > 0.9 * len(poses)
    assert {bytes(data) for data in heard} <= poses
    times = [c.clock.sec * 10**9 + c.clock.nanosec for c in clock]
    assert times == sorted(times)
    assert times[-1] - times[0] > 3 * 10**9
    moved = np.ptp([command.position for command in commands], axis=0)
    assert moved.max() > 0.02, 'the live tracker did not move'


def test_an_interrupted_replay_ends_with_status_130(recorded):
    command = [sys.executable, '-m', 'softarm_ros.cli', 'replay', str(recorded), '--rate', '0.01']
    replay = subprocess.Popen(
        [*command, '--nodes', 'markers'], env=environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        assert wait_until(lambda: nodes_of(replay.pid), 60.0)
        replay.send_signal(signal.SIGINT)
        _, said = replay.communicate(timeout=60)
    finally:
        replay.kill()
        replay.wait()
    assert replay.returncode == 130, said
    assert 'Traceback' not in said


def test_a_replay_ends_with_its_live_node(recorded):
    command = [sys.executable, '-m', 'softarm_ros.cli', 'replay', str(recorded)]
    replay = subprocess.Popen(
        [*command, '--nodes', 'tracker'], env=environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        assert wait_until(lambda: nodes_of(replay.pid), 60.0)
        for node in nodes_of(replay.pid):
            os.kill(node, signal.SIGKILL)
        _, said = replay.communicate(timeout=60)
    finally:
        replay.kill()
        replay.wait()
    assert replay.returncode == 1, said
    assert 'player: node tracker was killed by SIGKILL' in said
    assert 'Traceback' not in said


def write_bag(folder, topic, kind, message):
    """Write a bag of cable_arm with the same message twice, 999 s apart."""
    from softarm_ros.nodes.bag_writer import BagWriter

    bag = BagWriter(folder)
    bag.add_topic(f'/cable_arm/{topic}', kind)
    for at_s in (1, 1000):
        bag.write(f'/cable_arm/{topic}', at_s * 10**9, bytes([0, 1, 0, 0]) + message)
    bag.close()


def test_player_is_refused_or_ends_beside_nodes_that_would_follow_the_bag(context, tmp_path):
    from diagnostic_msgs.msg import DiagnosticStatus
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
    from softarm_ros.nodes.player_node import PlayerNode

    write_bag(tmp_path / 'bag', 'supervisor/permit', 'std_msgs/msg/Bool', b'\x01')
    given = {'rig': 'cable_arm', 'bag': str(tmp_path / 'bag'), 'twin_check_s': 0.0}
    overrides = [Parameter(name, value=value) for name, value in given.items()]

    def node(name):
        made = Node(name, namespace='/cable_arm', context=context)
        made.create_publisher(DiagnosticStatus, 'heartbeat', 10)
        return made

    def player():
        return PlayerNode(context=context, namespace='/cable_arm', parameter_overrides=overrides)

    recorder, steppers = node('recorder'), node('steppers')
    with pytest.raises(RefusedError, match=r'\(nodes steppers\) and would follow'):
        player()
    steppers.destroy_node()
    playing = player()  # a recorder does not follow the bag
    playing.work()
    steppers = node('steppers')
    end = time.monotonic() + 10.0
    with pytest.raises(NodeFailedError, match=r'\(nodes steppers\)'):
        while time.monotonic() < end:
            playing.work()
    for left in (recorder, steppers, playing):
        left.destroy_node()


@pytest.mark.parametrize('running', ['trunk', ''])
def test_a_bag_says_nothing_about_another_arm_that_runs_beside_it(context, tmp_path, running):
    """A recorded state of that arm would look like its present one."""
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from rclpy.serialization import serialize_message

    from softarm_ros.nodes.bag_writer import BagWriter
    from softarm_ros.nodes.player_node import PlayerNode

    bag = BagWriter(tmp_path / 'bag')
    bag.add_topic('/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray')
    names = ('trunk/tracker', 'camera', 'cable_arm/tracker')
    for at_s, name in zip((1, 1, 1, 1000), (*names, 'last')):
        status = DiagnosticArray(status=[DiagnosticStatus(name=name)])
        bag.write('/diagnostics', at_s * 10**9, serialize_message(status))
    bag.close()
    given = {'rig': 'cable_arm', 'bag': str(tmp_path / 'bag'), 'twin_check_s': 0.0}
    other, heard = Node('other', context=context), []
    if running:
        other.create_publisher(DiagnosticStatus, f'/{running}/heartbeat', 10)
    other.create_subscription(
        DiagnosticArray, '/diagnostics', lambda sent: heard.append(sent.status[0].name), 10
    )
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(other)
    playing = PlayerNode(
        context=context,
        namespace='/cable_arm',
        parameter_overrides=[Parameter(name, value=value) for name, value in given.items()],
    )
    seen = [publisher.get_subscription_count for publisher in playing._outputs.values()]

    def known():
        topic = f'/{running}/heartbeat'
        return all(count() for count in seen) and (not running or playing.count_publishers(topic))

    assert wait_until(known, 20.0)

    def complete():
        playing.work()
        executor.spin_once(0.01)
        return 'cable_arm/tracker' in heard

    assert wait_until(complete, 20.0), heard
    assert heard == [name for name in names if not running or not name.startswith(running)]
    executor.shutdown()
    for left in (other, playing):
        left.destroy_node()


def test_simulated_time_has_one_source(context, tmp_path):
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from rosgraph_msgs.msg import Clock

    from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
    from softarm_ros.nodes.plant_node import PlantNode
    from softarm_ros.nodes.player_node import PlayerNode

    write_bag(tmp_path / 'bag', 'supervisor/permit', 'std_msgs/msg/Bool', b'\x01')
    of_kind = {
        PlayerNode: {'bag': str(tmp_path / 'bag')},
        PlantNode: {'time_scale': 2.0, 'use_sim_time': True},
    }

    def make(kind):
        given = {'rig': 'cable_arm', 'twin_check_s': 0.0, **of_kind[kind]}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        return kind(context=context, namespace='/cable_arm', parameter_overrides=overrides)

    simulator = Node('simulator', context=context)
    for kind in of_kind:
        publisher = simulator.create_publisher(Clock, '/clock', 1)
        with pytest.raises(RefusedError, match='/simulator also publishes /clock in ROS domain'):
            make(kind)
        simulator.destroy_publisher(publisher)
        running = make(kind)
        running.work()
        publisher = simulator.create_publisher(Clock, '/clock', 1)
        end = time.monotonic() + 10.0
        with pytest.raises(NodeFailedError, match='/simulator also publishes /clock'):
            while time.monotonic() < end:
                running.work()
        simulator.destroy_publisher(publisher)
        running.destroy_node()
    simulator.destroy_node()


def test_a_replay_begins_once_the_live_tracker_itself_listens(context, tmp_path):
    from diagnostic_msgs.msg import DiagnosticStatus
    from geometry_msgs.msg import PoseStamped
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    from softarm_ros.nodes.node_errors import NodeInterruptedError
    from softarm_ros.nodes.player_node import PlayerNode

    write_bag(tmp_path / 'bag', 'tip/pose', 'geometry_msgs/msg/PoseStamped', bytes(72))
    given = {'rig': 'cable_arm', 'bag': str(tmp_path / 'bag'), 'twin_check_s': 0.0}
    overrides = [Parameter(n, value=v) for n, v in {**given, 'live': ['tracker']}.items()]
    tracker, viewer = (
        Node(name, namespace='/cable_arm', context=context) for name in ('tracker', 'viewer')
    )
    playing = PlayerNode(context=context, namespace='/cable_arm', parameter_overrides=overrides)

    def wait_for(found):
        end = time.monotonic() + 10.0
        while not found() and time.monotonic() < end:
            playing.work()

    viewer.create_subscription(PoseStamped, 'tip/pose', print, 10)
    wait_for(lambda: playing.count_subscribers('/cable_arm/tip/pose'))
    wait_for(lambda: 'tracker' in playing.get_node_names())
    for _ in range(3):  # it would begin with one of these, and play with the next
        playing.work()
    assert playing.played == 0
    tracker.create_publisher(DiagnosticStatus, 'heartbeat', 10)
    tracker.create_subscription(PoseStamped, 'tip/pose', print, 10)
    wait_for(lambda: playing.played)
    assert playing.played == 1
    with pytest.raises(NodeInterruptedError, match='interrupted before the end of the bag'):
        playing.close()  # the second message follows 999 s later
    for node in (tracker, viewer, playing):
        node.destroy_node()


ABOUT = {
    'of a run that waited for goals': {
        'trajectory': 'circle',
        'goals': 'true',
        'model': 'cable_statics',
        'laps': '1',
    },
    'of softarm record': {},
}


@pytest.mark.parametrize('about', ABOUT.values(), ids=ABOUT)
def test_bag_without_repeatable_cycles_is_played_but_not_replayed_directly(about, tmp_path):
    from softarm_ros.nodes.bag_about import about_run
    from softarm_ros.nodes.bag_messages import messages_of
    from softarm_ros.nodes.bag_writer import BagWriter
    from softarm_ros.rigs.loader import load_rig

    bag = tmp_path / 'bag'
    writer = BagWriter(bag, about_run(load_rig('cable_arm'), about))
    writer.add_topic('/cable_arm/tip/pose', 'geometry_msgs/msg/PoseStamped')
    writer.write('/cable_arm/tip/pose', 1, bytes(100))
    writer.close()
    assert len(list(messages_of(bag))) == 1
    command = [sys.executable, '-m', 'softarm_ros.cli', 'replay', str(bag)]
    played = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert (played.returncode, played.stdout) == (0, ''), played.stderr
    assert '1 messages played' in played.stderr
    again = subprocess.run(
        [*command, '--direct'], env=environment(), capture_output=True, text=True, timeout=100
    )
    assert again.returncode == 2
    assert ('goals' if about else 'softarm record') in again.stderr
    assert 'Traceback' not in again.stderr


def test_a_residual_that_is_gone_is_told_with_the_file_it_lay_beside(tmp_path):
    from softarm_ros.cli.replay_command import replay
    from softarm_ros.nodes.bag_about import about_run
    from softarm_ros.nodes.bag_writer import BagWriter
    from softarm_ros.rigs.loader import load_rig

    rig = tmp_path / 'learned.yaml'
    text = load_rig('cable_arm').text
    rig.write_text(f'{text}\nresidual: {{file: learned.json}}\n', encoding='utf-8')
    facts = {'trajectory': 'circle', 'model': 'cable_statics', 'laps': '1'}
    BagWriter(tmp_path / 'bag', about_run(load_rig(rig), facts)).close()
    rig.write_text(text, encoding='utf-8')
    for again in (replay_direct, lambda bag: replay(bag, 1.0, ['tracker'])):
        with pytest.raises(UsageError, match=f'A bag does not have the residual.*beside {rig}'):
            again(tmp_path / 'bag')


@pytest.mark.parametrize(
    ('more', 'said'),
    [([], "--nodes '': expected some of tracker, "), (['--direct'], '--direct plays nothing')],
)
def test_an_empty_list_of_live_nodes_is_refused(more, said, tmp_path):
    answer = CliRunner().invoke(app, ['replay', str(tmp_path), '--nodes', '', *more])
    assert (answer.exit_code, said in answer.output) == (2, True), answer.output
