"""Several nodes in one process: each has a heartbeat, and a failure of one ends all."""

import os
import signal

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from forked_python import NODES, ForkedPython

pytestmark = pytest.mark.ros


@pytest.fixture(scope='module')
def python():
    with ForkedPython(NODES) as forked:
        yield forked


@pytest.mark.parametrize(
    ('names', 'expected'),
    [
        ([], 'no node is named'),
        (['tracker_node', 'device_node'], 'device_node cannot share a process'),
        (
            ['tracker_node', '--ros-args', '-r', '__ns:=/arm', '-p', 'tracker:goals:=true'],
            '-p tracker:goals:=true reaches no node in a namespace; expected a file',
        ),
    ],
)
def test_node_group_refuses_invalid_arguments(python, names, expected):
    done = python.run('-m', 'softarm_ros.nodes.node_group', *names)
    assert done.returncode == 2
    assert expected in done.stderr


def test_mistyped_parameter_is_refused_with_the_node_that_has_the_right_one(python):
    done = python.run(
        *('-m', 'softarm_ros.nodes.node_group', 'tracker_node', 'inverse_kinematics_node'),
        *('--ros-args', '-r', '__ns:=/cable_arm', '-p', 'rig:=cable_arm'),
        *('-p', 'twin_check_s:=0.0', '-p', 'lasp:=2'),
    )
    assert done.returncode == 2
    assert "tracker: parameter lasp is unknown (did you mean 'laps'?)" in done.stderr


def test_a_node_that_refuses_its_input_ends_the_group_with_its_name(python):
    done = python.run(
        *('-m', 'softarm_ros.nodes.node_group', 'inverse_kinematics_node'),
        *('tracker_node', '--ros-args', '-r', '__ns:=/cable_arm'),
        *('-p', 'rig:=cable_arm', '-p', 'twin_check_s:=0.0', '-p', 'trajectory:=circel'),
    )
    assert done.returncode == 2
    assert 'tracker: ' in done.stderr
    assert 'circel' in done.stderr
    assert 'Traceback' not in done.stderr


@pytest.mark.graphs
def test_paused_control_process_causes_a_hold_and_the_arm_goes_on(tmp_path):
    from node_bench import circling

    with circling(tmp_path, speed=0.03) as bench:
        loop = ['plant', 'inverse_kinematics', 'tracker', 'supervisor']
        assert bench.together('tracker') == loop
        assert bench.together('markers') == ['markers']
        bench.until(lambda: set(loop) <= set(bench.health), 10.0, 'each speaks for itself')
        holds = int(bench.values('supervisor')['holds'])
        with bench.paused('tracker'):
            bench.spin(0.5)
        bench.until(
            lambda: int(bench.values('supervisor')['holds']) > holds and bench.state == 'running',
            10.0,
            'held and running again',
        )
        since = bench.now_s()
        bench.until(lambda: bench.moved_at > since, 10.0, 'motion')

        # On a busy computer, ending takes longer than `stop` waits before it kills the process; a
        # killed one says no farewell to the graph.
        ended = []
        os.kill(bench.processes.pid('tracker'), signal.SIGINT)
        bench.until(lambda: ended.extend(bench.processes.ended()) or ended, 60.0, 'ended')
        assert [(set(process.nodes), process.exit_code) for process in ended] == [(set(loop), 0)]
        graph = bench.node.get_node_names
        bench.until(lambda: not set(loop) & set(graph()), 5.0, 'out of the graph, not 20 s later')


@pytest.mark.parametrize(
    ('rig', 'device', 'has'),
    [('hydraulic_arm', 'steppers', "'daq', 'servo'"), ('trunk', 'steppers', "'dynamixel'")],
)
def test_a_device_that_a_rig_does_not_have_is_refused(python, rig, device, has):
    done = python.run(
        *('-m', 'softarm_ros.nodes.device_node', '--ros-args'),
        *('-p', f'rig:={rig}', '-p', f'device:={device}'),
    )
    assert done.returncode == 2
    assert f"device = '{device}': rig '{rig}' has {has}" in done.stderr
