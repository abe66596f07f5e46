"""The recorder as a process: no lost messages, a kill, a full or stuck disk."""

import resource
import signal
import subprocess
import sys
import threading
from functools import partial

import psutil
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('rosbags', reason='needs rosbags')
pytest.importorskip('mcap', reason='needs mcap')
from test_topic_run import environment, nodes_of, started, wait_until

__all__ = ['started']
pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(240)]


def test_recorder_loses_no_message_at_500_hz(tmp_path):
    """For two seconds; `python -m softarm_reproduction.recorder_soak` tests a minute."""
    from softarm_reproduction.recorder_soak import soak

    outcome = soak(tmp_path / 'bag', 2.0)
    assert set(outcome.published.values()) == {1000}
    assert outcome.recorded == outcome.published


def test_killed_recorder_loses_no_more_than_the_last_second(tmp_path):
    from softarm_reproduction.recorder_soak import soak

    outcome = soak(tmp_path / 'bag', 3.0, kill=True)
    assert outcome.missing_before_s < 1.0
    assert min(outcome.recorded.values()) > 900


def test_a_full_disk_is_reported_and_the_arm_goes_on(circle, tmp_path, started):
    from softarm_ros.nodes.bag_repair import about_of, repair

    bag = tmp_path / 'bag'
    run = started(circle(speed=0.06, laps=2), 'one', bag)
    run.wait_for_motion()
    recorder = next(
        process
        for process in map(psutil.Process, nodes_of(run.pid))
        if any('recorder_node' in word for word in process.cmdline())
    )
    file = bag / 'bag.mcap'
    assert wait_until(lambda: file.stat().st_size > 100_000, 60.0)  # chunks are written
    room = file.stat().st_size + 60_000
    recorder.rlimit(resource.RLIMIT_FSIZE, (room, room))
    said = run.end(120)
    assert 'COMPLETED True' in said
    assert 'bag cannot be written: File too large' in said
    assert 'softarm record --repair' in said
    assert 'Exception' not in said and 'recorder_node.py' not in said
    saved = repair(bag, tmp_path / 'again')
    assert saved.messages > 100
    about = about_of(tmp_path / 'again')
    assert about['rig'] == 'cable_arm'
    assert 'name: cable_arm' in about['rig_file']
    assert about['seed'] == '0'
    assert 'script.py' in about['command_line']


def test_run_reports_a_bag_that_cannot_be_completed(circle, tmp_path, started):
    run = started(circle(speed=0.06, laps=1), 'one', tmp_path / 'bag')
    run.wait_for_motion()
    (tmp_path / 'bag' / 'metadata.yaml.tmp').mkdir()  # the recorder needs this name for a file
    said = run.end(120)
    assert 'COMPLETED True' in said
    assert 'bag cannot be written: Is a directory' in said


def test_record_command_records_heartbeats_and_ends_after_its_duration(tmp_path):
    from rosbags.highlevel import AnyReader

    bag = tmp_path / 'bag'
    done = subprocess.run(
        [
            *(sys.executable, '-m', 'softarm_ros.cli', 'record', 'cable_arm'),
            *('--bag', str(bag), '--duration', '2'),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    with AnyReader([bag]) as reader:
        heartbeats = [c for c in reader.connections if c.topic == '/cable_arm/heartbeat']
        assert sum(c.msgcount for c in heartbeats) >= 5
        assert f': {reader.message_count} messages recorded\n' in done.stdout + done.stderr


def test_record_command_fails_if_the_bag_cannot_be_completed(tmp_path):
    bag = tmp_path / 'bag'
    with subprocess.Popen(
        [
            *(sys.executable, '-m', 'softarm_ros.cli', 'record', 'cable_arm'),
            *('--bag', str(bag), '--duration', '2'),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert wait_until((bag / 'bag.mcap').exists, 60.0)
        (bag / 'metadata.yaml.tmp').mkdir()  # the recorder needs this name for a file
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 1, said
    assert 'recorder: bag cannot be written: Is a directory; it ends here' in said
    assert 'Traceback' not in said


def test_second_recorder_and_a_run_with_a_bag_are_refused_while_one_records(context, tmp_path):
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from rich.console import Console

    from softarm_ros.cli.run_command import RunOptions
    from softarm_ros.cli.topic_run import run_topics
    from softarm_ros.nodes.node_errors import RefusedError
    from softarm_ros.nodes.recorder_node import RecorderNode
    from softarm_ros.rigs.loader import load_rig

    other = Node('recorder', namespace='/cable_arm', context=context)
    given = [Parameter('rig', value='cable_arm'), Parameter('bag', value=str(tmp_path / 'a'))]
    with pytest.raises(RefusedError, match='cable_arm is already being recorded in ROS domain'):
        RecorderNode(context=context, namespace='/cable_arm', parameter_overrides=given)
    options = RunOptions(bag=tmp_path / 'b')
    with pytest.raises(ValueError, match=r'being recorded .*without --bag, or end'):
        run_topics(load_rig('cable_arm'), options, Console(quiet=True), lambda: False)
    other.destroy_node()


class _Disk:
    """A file on a disk that accepts no data while `taken` is cleared."""

    def __init__(self, file):
        self._file, self.taken = file, threading.Event()
        self.taken.set()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        self.taken.wait()
        return self._file.write(data)


def test_recorder_reports_a_stuck_disk_and_later_that_messages_may_be_missing(
    context, tmp_path, monkeypatch
):
    from rclpy.parameter import Parameter
    from std_msgs.msg import String

    from softarm_ros.nodes import recorder_node
    from softarm_ros.nodes.qos import make_executor
    from softarm_ros.nodes.self_paced import Turns

    monkeypatch.setattr(recorder_node, 'STUCK_S', 0.3)
    monkeypatch.setattr(recorder_node, 'WATCH_S', 0.05)
    given = {'rig': 'cable_arm', 'bag': str(tmp_path / 'bag'), 'twin_check_s': 0.0}
    node = recorder_node.RecorderNode(
        context=context,
        namespace='/cable_arm',
        parameter_overrides=[Parameter(name, value=value) for name, value in given.items()],
    )
    disk = node._bag._storage.bio = _Disk(node._bag._storage.bio)
    said = node.create_publisher(String, 'said', 10)
    executor = make_executor(context)
    executor.add_node(node)
    done = threading.Event()

    def spin():
        turns = Turns(executor, [node])
        while not done.is_set():
            turns.take()

    spinning = threading.Thread(target=spin, daemon=True)
    spinning.start()

    def until(condition):
        assert wait_until(condition, 20.0), node._heartbeat.message

    until(lambda: '/cable_arm/said' in node._subscriptions_by_topic)
    disk.taken.clear()
    said.publish(String(data='word'))
    until(lambda: 'the disk has not accepted data for' in node._heartbeat.message)
    disk.taken.set()
    until(lambda: 'by the disk or a busy computer; messages' in node._heartbeat.message)
    done.set()
    spinning.join()
    executor.remove_node(node)
    executor.shutdown()
    node.close()
    node.destroy_node()


def test_a_bag_is_complete_if_a_signal_ends_the_recorder_while_it_starts(
    context, tmp_path, monkeypatch
):
    from rclpy.parameter import Parameter
    from rosbags.highlevel import AnyReader

    from softarm_ros.nodes.recorder_node import RecorderNode

    def interrupted(_):
        raise SystemExit(0)  # as the handler of signals does

    monkeypatch.setattr(RecorderNode, '_look', interrupted)
    wants = {'rig': 'cable_arm', 'bag': str(tmp_path / 'bag'), 'twin_check_s': 0.0}
    given = [Parameter(name, value=value) for name, value in wants.items()]
    with pytest.raises(SystemExit):
        RecorderNode(context=context, namespace='/brief_arm', parameter_overrides=given)
    with AnyReader([tmp_path / 'bag']) as reader:
        assert reader.message_count == 0


def test_record_command_interrupted_before_its_bag_begins_is_no_success(context, tmp_path):
    from rclpy.node import Node

    observer = Node('observer', context=context)
    command = [sys.executable, '-m', 'softarm_ros.cli', 'record', 'cable_arm']
    with subprocess.Popen(
        [*command, '--bag', str(tmp_path / 'bag')],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        # For two seconds, its node looks for a second recorder.
        assert wait_until(lambda: 'recorder' in observer.get_node_names(), 60.0)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    observer.destroy_node()
    assert (process.returncode, said) == (130, 'interrupted before the recording began\n')
    assert list(tmp_path.iterdir()) == []


def test_recorder_warns_once_if_no_message_of_the_arm_arrives(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, '-m', 'softarm_ros.cli', 'record', 'cable_arm'),
            *('--bag', str(tmp_path / 'bag'), '--duration', '2'),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert said.count('no message of /cable_arm/ for 2 s; does the arm run') == 1


def test_recorder_warns_if_the_arm_falls_silent(context, tmp_path, monkeypatch):
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from std_msgs.msg import Bool

    from softarm_ros.nodes import recorder_node

    monkeypatch.setattr(recorder_node, 'SILENT_S', 0.5)
    wants = {'rig': 'cable_arm', 'bag': str(tmp_path / 'bag'), 'twin_check_s': 0.0}
    given = [Parameter(name, value=value) for name, value in wants.items()]
    arm = Node('arm', context=context, namespace='/cable_arm')
    permits = arm.create_publisher(Bool, 'supervisor/permit', 10)
    recorder = recorder_node.RecorderNode(
        context=context, namespace='/cable_arm', parameter_overrides=given
    )
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(recorder)

    def spins_until(done, before=lambda: None):
        def turn():
            before()
            executor.spin_once(timeout_sec=0.02)
            return done()

        return wait_until(turn, 30.0)

    def said():
        return recorder._heartbeat.message

    try:
        publish = partial(permits.publish, Bool(data=True))
        assert spins_until(lambda: recorder._bag.messages, publish)
        assert spins_until(lambda: 'no message of /cable_arm/ for 0.5 s' in said())
        assert said().endswith('; has the arm ended?')
        assert spins_until(lambda: said().startswith('recording to'), publish)
    finally:
        executor.shutdown()
        recorder.close()
        recorder.destroy_node()
        arm.destroy_node()
