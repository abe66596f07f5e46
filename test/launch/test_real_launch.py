"""Wrong arguments, Ctrl-C, failures and the end of a run with the real `ros2 launch`."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from real_launch import RealLaunch, alive, environment, short_trajectory, wait_until, why_not

pytestmark = [pytest.mark.skipif(bool(why_not()), reason=why_not()), pytest.mark.slow]

COLD_S = 300.0  # to compile everything on a busy machine
START_S = 60.0
# Texts of errors; a clean end prints none of them.
RED = ('[ERROR]', '[FATAL]', 'Traceback', 'process has died', 'leaked', 'Exception')


@pytest.mark.parametrize(
    'argument, expected',
    [
        ('rate:=abc', 'rate:=abc: expected a number'),
        ('processes:=ech', "'one', 'each'"),
        ('laps:=two', 'laps:=two: expected a whole number'),
        ('seed:=x', 'seed:=x: expected a whole number'),
        ('home:=maybe', 'home:=maybe: expected true or false'),
        ('home:=True', "home: the simulated arm of backend 'sim' starts at rest"),
        ('rig:=cable_arn', "did you mean 'cable_arm'"),
        ('trajectory:=nowhere', 'nowhere'),
        ('gaols:=true', 'gaols:= is unknown (did you mean goals:=?)'),
        ('bag:=/proc/none', 'bag folder /proc/none cannot be written'),
        (f'bag:={Path(__file__).parent}', 'is not empty; expected a new or empty folder'),
    ],
)
def test_a_wrong_argument_is_refused_before_any_node_starts(argument, expected):
    with RealLaunch(argument) as launch:
        status, text = launch.end(START_S)
    assert status == 1
    assert expected in text
    assert not launch.nodes()


def test_a_missing_rviz2_is_reported_before_any_node_starts():
    from ament_index_python.packages import get_packages_with_prefixes

    if 'rviz2' in get_packages_with_prefixes():
        pytest.skip('rviz2 is installed')
    with RealLaunch('rviz:=true') as launch:
        status, text = launch.end(START_S)
    assert status == 1
    assert 'rviz2 is not installed: apt install' in text
    assert not launch.nodes()


def test_no_node_survives_when_the_launch_is_killed():
    with RealLaunch('laps:=50') as launch:
        launch.until('supervisor]: running', COLD_S)
        nodes = launch.nodes()
        assert {'node_group', 'markers_node'} <= set(nodes)
        os.kill(launch.process.pid, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, nodes.values())), 6.0, 'all nodes have ended')


def test_ctrl_c_ends_a_run_without_error_output():
    with RealLaunch('laps:=50') as launch:
        launch.until('supervisor]: running', COLD_S)
        launch.ctrl_c()
        status, text = launch.end(10.0)
        assert status == 0
        assert not [line for line in text.splitlines() if any(word in line for word in RED)]
        assert not any(map(alive, launch.nodes().values()))


def test_ctrl_c_during_kernel_compilation_ends_the_launch_within_5_s(tmp_path):
    with RealLaunch('rig:=cable_arm_single', NUMBA_CACHE_DIR=str(tmp_path)) as launch:
        launch.until('preparing cable_arm_single', START_S)
        wait_until(lambda: list(tmp_path.rglob('*.nbi')), COLD_S, 'the first kernel')
        launch.ctrl_c()
        status, text = launch.end(5.0)
        assert status == 0
        assert not [line for line in text.splitlines() if any(word in line for word in RED)]
        assert set(launch.nodes()) == {'prepare_kernels'}


def test_ctrl_c_during_node_startup_ends_the_launch_within_5_s():
    with RealLaunch() as launch:
        launch.until('supervisor]: starting', COLD_S)
        launch.ctrl_c()
        status, text = launch.end(5.0)
        assert status == 0
        assert not [line for line in text.splitlines() if any(word in line for word in RED)]


def test_exit_on_done_ends_the_launch_with_the_run_and_writes_the_bag(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    from rosbags.highlevel import AnyReader

    bag = tmp_path / 'bag'
    short = short_trajectory('cable_arm', tmp_path)
    arguments = ('exit_on_done:=true', f'trajectory:={short}', f'bag:={bag}')
    with RealLaunch(*arguments) as launch:
        status, text = launch.end(COLD_S)
    assert status == 0, text
    assert 'run complete' in text
    with AnyReader([bag]) as reader:
        topics = {connection.topic: connection.msgcount for connection in reader.connections}
    wanted = ('/cable_arm/tip/pose', '/cable_arm/actuators/command', '/rosout', '/diagnostics')
    assert all(topics.get(topic) for topic in wanted), topics


def test_controller_argument_is_accepted_and_an_unknown_controller_is_refused(tmp_path):
    short = short_trajectory('cable_arm', tmp_path)
    arguments = ('exit_on_done:=true', f'trajectory:={short}')
    with RealLaunch('controller:=damped_inverse', *arguments) as launch:
        status, text = launch.end(COLD_S)
    assert status == 0, text
    with RealLaunch('controller:=damped_invers') as launch:
        status, text = launch.end(START_S)
    assert status == 1
    assert "no such controller (did you mean 'damped_inverse'?)" in text


def test_exit_on_done_reports_a_held_run_with_exit_status_1():
    with RealLaunch('exit_on_done:=true', 'laps:=50') as launch:
        launch.until('supervisor]: running', COLD_S)
        estop = ('service', 'call', '/cable_arm/supervisor/estop', 'std_srvs/srv/Trigger')
        subprocess.run(['ros2', *estop], check=True, env=environment(), timeout=START_S)
        status, text = launch.end(30.0)
    assert status == 1
    assert 'run not completed: the arm was held' in text


@pytest.mark.parametrize(
    ('processes', 'executable', 'name'),
    [('each', 'inverse_kinematics_node', 'inverse_kinematics'), ('one', 'node_group', 'control')],
)
def test_a_killed_process_ends_the_launch_and_all_nodes_with_status_1(processes, executable, name):
    with RealLaunch('laps:=50', f'processes:={processes}') as launch:
        launch.until('supervisor]: running', COLD_S)
        os.kill(launch.nodes()[executable], signal.SIGKILL)
        status, text = launch.end(15.0)
        assert status == 1
        assert f'{name} has ended with exit status -9' in text
        assert not any(map(alive, launch.nodes().values()))
