"""`run_topics`: runs faster than real time, refusals, and no process left behind."""

import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from rich.console import Console

import softarm_ros
from softarm_ros.cli import node_processes
from softarm_ros.cli.beginning import beginning
from softarm_ros.cli.instance_lock import AlreadyRunningError, instance_lock
from softarm_ros.rigs.loader import load_rig

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(180)]

STARTING_S = 150.0

SCRIPT = """
import sys
from pathlib import Path
from rich.console import Console
from softarm_ros.rigs.loader import load_rig
from softarm_ros.cli.run_command import RunOptions
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.cli.topic_run import run_topics

trajectory, processes, *bag = sys.argv[1:]
options = RunOptions(
    trajectory=trajectory, processes=processes, bag=Path(bag[0]) if bag else None
)
with stop_on_signals() as stopped:
    # At half the rates of the file: nothing asked depends on them.
    rig = load_rig('cable_arm', ['controller.rate_hz=50', 'sensors.pose_topic.rate_hz=50'])
    record = run_topics(rig, options, Console(), stopped)
for event in record.events:
    print('EVENT', event.level, event.message)
print('COMPLETED', record.completed)
"""


def run(options, stopped=lambda: False):
    from softarm_ros.cli.topic_run import run_topics

    with Path(os.devnull).open('w') as nowhere:
        return run_topics(load_rig('cable_arm'), options, Console(file=nowhere), stopped)


def nodes_of(parent):
    """Return the process ids of nodes started by a process (Linux)."""
    found = []
    for entry in Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / 'environ').read_bytes()
                command = (entry / 'cmdline').read_bytes()
            except OSError:
                continue
            if f'SOFTARM_PARENT_PID={parent}\0'.encode() in environment and (
                b'softarm_ros.nodes.' in command
            ):
                found.append(int(entry.name))
    return found


def environment():
    """Return an environment in which a script anywhere imports this softarm_ros."""
    paths = [str(Path(softarm_ros.__file__).parents[1]), os.environ.get('PYTHONPATH', '')]
    return {**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, paths))}


def wait_until(condition, timeout):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def started(tmp_path):
    """Return a function that starts the script in its own process; kill all at the end."""
    script = tmp_path / 'script.py'
    script.write_text(textwrap.dedent(SCRIPT))
    processes = []

    def start(*arguments):
        started = Started([sys.executable, str(script), *map(str, arguments)], tmp_path / 'said')
        processes.append(started)
        return started

    yield start
    for started in processes:
        started.process.kill()
        started.process.wait()


class Started:
    """A run in its own process, and its output so far."""

    def __init__(self, command, log):
        self.command, self.log = command, log
        with log.open('w') as said:
            self.process = subprocess.Popen(
                command, stdout=said, stderr=subprocess.STDOUT, env=environment()
            )
        self.pid = self.process.pid

    def said(self):
        return self.log.read_text()

    def wait_for_motion(self):
        """Wait until the arm moves; how long that takes depends on the machine."""
        moving = wait_until(lambda: ' lap 1' in self.said(), STARTING_S)
        assert moving, self.said()

    def end(self, timeout=60):
        """Wait for the end; return the whole output."""
        self.process.wait(timeout)
        return self.said()


def test_loop_faster_than_its_cameras_misses_no_cycle_at_twice_real_time(tmp_path):
    from softarm_ros.cli.run_command import RunOptions
    from softarm_ros.cli.topic_run import run_topics

    rig = load_rig('pneumatic_arm')
    assert rig.feedback.rate_hz < rig.tracker.rate_hz
    with Path(os.devnull).open('w') as nowhere:
        path = beginning(rig, 0.01, tmp_path)
        options = RunOptions(trajectory=path, laps=1, rate=2.0)
        record = run_topics(rig, options, Console(file=nowhere), lambda: False)
    assert_same_periods(record, rig)


@pytest.mark.long
def test_loop_with_a_pose_per_cycle_misses_no_cycle_at_four_times_real_time(circle):
    from softarm_ros.cli.run_command import RunOptions

    record = run(RunOptions(trajectory=circle(speed=0.06, laps=1), rate=4.0))
    assert_same_periods(record, load_rig('cable_arm'))


def assert_same_periods(record, rig):
    """Check that a faster run missed nothing and had the same periods as in real time."""
    assert record.completed, record.events
    assert (record.timing.missed, record.timing.holds) == (0, 0), record.events
    assert record.timing.latency_p50_ms is None
    tracking = record.samples.time_s[record.samples.tracking]
    period_s = 1.0 / rig.feedback.rate_hz  # rows have the stamps of the poses they answer
    assert np.percentile(np.diff(tracking), 90) == pytest.approx(period_s, abs=1e-6)
    assert record.error().mean < 0.02


def test_reference_is_that_of_its_stamp_with_an_estimator_that_predicts(circle):
    """Poses come after 50 ms; the present reference would lead their true tips by 3 mm."""
    from softarm_ros.cli.run_command import RunOptions
    from softarm_ros.cli.topic_run import run_topics

    rig = load_rig('cable_arm', ['estimator.kind=filter', 'sensors.pose_topic.delay_s=0.05'])
    options = RunOptions(trajectory=circle(speed=0.06, laps=1), rate=4.0)
    with Path(os.devnull).open('w') as nowhere:
        record = run_topics(rig, options, Console(file=nowhere), lambda: False)
    assert record.completed
    samples = record.samples
    tracked = samples.phase == 'track'
    reference, tip = samples.reference[tracked], samples.true_tip[tracked]
    ahead = np.gradient(tip, samples.time_s[tracked], axis=0)
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    lead_m = np.sum((reference - tip) * ahead, axis=1)
    assert abs(np.nanmedian(lead_m)) < 1.5e-3


def test_a_record_leaves_out_messages_of_a_wrong_size():
    from softarm_ros.nodes.run_monitor import RunMonitor
    from softarm_ros.nodes.wire import JointValues, StampedPoses

    names = ('a', 'b')
    with RunMonitor(
        '/some_arm', names, names, pose_topic='tip/pose', simulated_time=True
    ) as monitor:
        take = (monitor._on_state, monitor._on_command, monitor._on_configuration)
        for stamp, size in ((1, 2), (2, 0), (3, 1), (4, 5)):
            values = JointValues(stamp, (), np.ones(size), np.empty(0), np.empty(0))
            for each in take:
                each(values, stamp)
        monitor._on_reference(StampedPoses(5, 'base', np.zeros((1, 7))), 5)
        samples = monitor.samples()
    for values in (samples.position, samples.command, samples.configuration):
        np.testing.assert_array_equal(values, [[1.0, 1.0]])


def test_record_keeps_the_cycles_of_the_last_seconds_only():
    from softarm_ros.nodes.run_monitor import RunMonitor
    from softarm_ros.nodes.wire import JointValues, StampedPoses

    names, nothing, step_ns = ('a', 'b'), np.empty(0), 10_000_000
    with RunMonitor(
        '/some_arm', names, names, pose_topic='tip/pose', simulated_time=True, kept_s=2.0
    ) as monitor:
        ahead = StampedPoses(10**18, 'base', np.zeros((1, 7)))
        monitor._on_tip(ahead, 0)  # a wrong clock must not keep all that follows
        for k in range(1, 1001):
            pose = StampedPoses(k * step_ns, 'base', np.full((1, 7), float(k)))
            values = JointValues(k * step_ns, (), np.full(2, float(k)), nothing, nothing)
            for take in (monitor._on_reference, monitor._on_tip, monitor._on_true_tip):
                take(pose, k)
            for take in (monitor._on_state, monitor._on_command, monitor._on_configuration):
                take(values, k)
            monitor._take_at_s = 0.0
            monitor.take_in()
        kept = [monitor._tips, monitor._commands, monitor._configurations, monitor._states]
        assert [len(one) for one in kept] == [301] * 4
        assert len(monitor._truth._rows) == 301
        samples = monitor.samples()
    assert monitor.forgets
    assert len(samples.time_s) == 201
    cycles = np.arange(800.0, 1001.0)
    for values in (samples.tip, samples.true_tip, samples.position, samples.command):
        np.testing.assert_allclose(values[:, 0], cycles)


def test_instance_lock_is_freed_at_the_end_of_its_block():
    with instance_lock('some_rig'):
        pass
    with instance_lock('some_rig'), instance_lock('other_rig'):
        pass


def test_second_run_is_refused_and_ctrl_c_ends_the_first_with_a_complete_bag(
    circle, started, tmp_path
):
    pytest.importorskip('rosbags', reason='needs rosbags')
    from rosbags.highlevel import AnyReader

    from softarm_ros.cli.run_command import RunOptions

    bag = tmp_path / 'bag'
    first = started(circle(laps=100), 'one', bag)
    first.wait_for_motion()
    # By the lock, and by the graph, as from another machine that does not see the lock.
    script = Path(first.command[1]).name
    says = (
        rf'already running .*\(process {first.pid}: {script} .*\); end that first.* ROS_DOMAIN_ID'
    )
    with pytest.raises(AlreadyRunningError, match=says):
        run(RunOptions(trajectory=circle(laps=100)))
    second = subprocess.run(
        [*first.command[:2], circle(laps=100), 'one'],
        env={**environment(), 'TMPDIR': str(Path(first.command[1]).parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode != 0
    assert 'cable_arm is already running in ROS domain' in second.stderr
    assert 'nodes' in second.stderr
    assert first.process.poll() is None, first.said()  # undisturbed

    first.process.send_signal(signal.SIGINT)
    output = first.end()
    assert 'COMPLETED False' in output
    assert 'interrupted' in output
    assert nodes_of(first.pid) == []
    with AnyReader([bag]) as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
    assert counts['/cable_arm/actuators/command'] > 100


@pytest.mark.parametrize('goals', [False, True])
def test_ctrl_c_while_other_nodes_are_looked_for_starts_no_node(circle, tmp_path, goals):
    from softarm_ros.cli.run_command import RunOptions

    bag, path = tmp_path / 'bag', None if goals else circle()
    record = run(RunOptions(trajectory=path, goals=goals, bag=bag), stopped=lambda: True)
    assert not record.completed
    assert [event.message for event in record.events] == [
        'interrupted; supervisor: not started yet'
    ]
    assert not bag.exists()


def test_ctrl_c_while_python_starts_in_the_nodes_is_no_failure_of_the_recorder(
    circle, tmp_path, monkeypatch
):
    """SIGINT in this phase ends Python with status 1, as a failure does."""
    from softarm_ros.cli.run_command import RunOptions

    waits = "import os, time\nif 'SOFTARM_HELD' in os.environ: time.sleep(60)\n"
    (tmp_path / 'sitecustomize.py').write_text(waits)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    options = RunOptions(trajectory=circle(), bag=tmp_path / 'bag')
    record = run(options, stopped=lambda: True)
    assert [event.message for event in record.events] == [
        'interrupted; supervisor: not started yet'
    ]


def test_killed_run_command_leaves_no_node_process(circle, started):
    run_of = started(circle(laps=100), 'one')
    run_of.wait_for_motion()
    run_of.process.kill()
    run_of.process.wait()
    assert wait_until(lambda: nodes_of(run_of.pid) == [], 20.0)


@pytest.mark.parametrize('processes', ['one', 'each'])
def test_a_killed_node_ends_the_run_with_its_name_and_the_reason(circle, started, processes):
    run_of = started(circle(laps=100), processes)
    run_of.wait_for_motion()
    victim = next(
        pid
        for pid in nodes_of(run_of.pid)
        if b'inverse_kinematics' in Path(f'/proc/{pid}/cmdline').read_bytes()
    )
    os.kill(victim, signal.SIGKILL)
    output = run_of.end()
    assert 'COMPLETED False' in output
    if processes == 'one':
        nodes = 'plant, inverse_kinematics, tracker, supervisor'
        assert f'process control ({nodes}) was killed by SIGKILL' in output
    else:
        assert 'node inverse_kinematics was killed by SIGKILL' in output
        assert 'held: command stale' in output
    assert nodes_of(run_of.pid) == []


def test_a_fault_after_the_end_of_a_process_does_not_blame_the_computer():
    from softarm_ros.cli.topic_run import tell_fault
    from softarm_ros.nodes.conversions import Health

    told = []
    reason = 'actuator state stale: 261 ms old (limit 250 ms)'
    message = f'{reason}; the computer may be too slow: plant was late by 5 ms'
    said = {'state': 'fault', 'reason': reason}
    tell_fault(
        {'supervisor': Health('supervisor', 2, message, said)}, lambda *what: told.append(what)
    )
    assert told == [('error', 'supervisor', f'the arm was held: {reason}')]


def test_the_end_of_a_node_is_told_by_its_errors_not_by_what_it_told_in_passing(tmp_path):
    log = tmp_path / 'node.log'
    passing = [f'[INFO] [1.{i}] [arm.winches]: following commands' for i in range(9)]
    log.write_text('\n'.join(['[WARN] a', *passing[:3], '', 'winches: rope off', passing[3]]))
    assert node_processes._last_lines(log) == ['[WARN] a', 'winches: rope off']
    log.write_text('\n'.join(passing))
    assert node_processes._last_lines(log) == passing[-node_processes.LAST_LINES :]


def test_the_place_of_a_crash_is_told(tmp_path):
    log = tmp_path / 'node.log'
    code = 'import ctypes, numpy\ndef read(): ctypes.string_at(0)\n\ndef go(): read()\ngo()'
    with log.open('wb') as output:
        subprocess.run([sys.executable, '-X', 'faulthandler', '-c', code], stderr=output)
    first, *places = node_processes._last_lines(log)
    assert first == 'Fatal Python error: Segmentation fault'
    assert len(places) < node_processes.LAST_LINES
    assert 'line 2 in read' in ' '.join(places) and 'Extension modules' not in ' '.join(places)


def test_a_recorder_that_ends_before_the_motion_ends_the_run(circle, started, tmp_path):
    run_of = started(circle(), 'one', tmp_path / 'bag')

    def recorders():
        commands = {pid: Path(f'/proc/{pid}/cmdline').read_bytes() for pid in nodes_of(run_of.pid)}
        return [pid for pid, command in commands.items() if b'recorder' in command]

    assert wait_until(recorders, STARTING_S), run_of.said()
    os.kill(recorders()[0], signal.SIGKILL)
    output = run_of.end()
    assert 'EVENT error node recorder was killed by SIGKILL' in output
    assert 'COMPLETED False' in output
    assert nodes_of(run_of.pid) == []


def test_stopped_arm_does_not_restart_by_itself_after_a_node_was_paused(circle, started):
    from softarm_ros.nodes.graph_listener import GraphListener

    run_of = started(circle(laps=100), 'each')
    run_of.wait_for_motion()
    tracker = next(
        pid
        for pid in nodes_of(run_of.pid)
        if b'tracker' in Path(f'/proc/{pid}/cmdline').read_bytes()
    )
    services = ['supervisor/stop', 'supervisor/start']
    with GraphListener('somebody', '/cable_arm', services=services) as somebody:

        def until(state):
            end = time.monotonic() + 20.0
            while somebody.value('supervisor', 'state') != state:
                assert time.monotonic() < end, (state, somebody.health)
                somebody.spin(0.02)

        until('running')
        assert somebody.call('supervisor/stop', 5.0)[0]
        until('stopped')
        os.kill(tracker, signal.SIGSTOP)  # as a computer that is busy for a second
        try:
            until('waiting')
        finally:
            os.kill(tracker, signal.SIGCONT)
        until('ready')
        seen, end = set(), time.monotonic() + 1.0
        while time.monotonic() < end:
            somebody.spin(0.02)
            seen.add(somebody.value('supervisor', 'state'))
        assert seen == {'ready'}
        assert somebody.call('supervisor/start', 5.0)[0]
        until('running')


def test_a_full_folder_for_temporary_files_is_named(tmp_path):
    small = 200  # bytes; enough for the lock
    done = subprocess.run(
        [sys.executable, '-m', 'softarm_ros.cli', 'run', 'cable_arm'],
        env={**environment(), 'TMPDIR': str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (small, small)),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 2, done.stderr
    assert re.search(rf'{tmp_path}/softarm-.*\.yaml: cannot be written .File too', done.stderr)
    assert [path.suffix for path in tmp_path.iterdir()] == ['.lock']


def test_an_unusable_bag_folder_is_refused_before_anything_starts(circle, tmp_path):
    from softarm_ros.cli.run_command import RunOptions

    (tmp_path / 'used').mkdir()
    (tmp_path / 'used' / 'old').write_text('x')
    with pytest.raises(ValueError, match='not empty'):
        run(RunOptions(trajectory=circle(), bag=tmp_path / 'used'))
    assert nodes_of(os.getpid()) == []
