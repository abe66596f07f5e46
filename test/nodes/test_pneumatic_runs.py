"""`softarm run pneumatic_arm --backend emulated`: as good as simulated, and how it ends."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct

pytestmark = [pytest.mark.ros, pytest.mark.timeout(240)]
RIG = 'pneumatic_arm'
CIRCLE = """\
type: circle
center: [0.0, 0.0, 0.192]
radius: 0.09
speed: 0.03
laps: 100
"""
LINE = """\
type: line
start: [0.08, -0.03, 0.187]
end: [0.08, 0.03, 0.187]
speed: 0.015
"""
# What is asked here is how well the arm tracks and how it ends, not how soon a late node is
# noticed: a busy machine must not stop it.
PATIENT = (
    'supervisor.heartbeat_timeout_s=1.0',
    'supervisor.feedback_timeout_s=1.0',
    'supervisor.command_timeout_s=0.5',
    'devices.daq.command_timeout_s=0.7',
    'devices.daq.call_timeout_s=0.7',
)


def command(trajectory, *more):
    return [
        *(sys.executable, '-m', 'softarm_ros.tools.cli', 'run', RIG),
        *('--trajectory', str(trajectory), *more),
        *(part for setting in PATIENT for part in ('--set', setting)),
    ]


def test_a_line_is_tracked_as_well_as_in_simulation(tmp_path):
    line = tmp_path / 'line.yaml'
    line.write_text(LINE)
    simulated = run_direct(load_rig(RIG), str(line)).error().mean
    result = tmp_path / 'run.json'
    run = subprocess.run(
        command(line, '--backend', 'emulated', '--json', str(result)),
        capture_output=True,
        text=True,
        check=False,
        timeout=180.0,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    emulated = json.loads(result.read_text())['tracking_error_m']['mean']
    print(f'simulated {1e3 * simulated:.2f} mm, emulated {1e3 * emulated:.2f} mm')
    assert emulated == pytest.approx(simulated, rel=0.2)


def test_a_run_whose_host_dies_ends_with_the_reason(tmp_path):
    import rclpy
    from diagnostic_msgs.msg import DiagnosticStatus
    from rclpy.context import Context
    from rclpy.node import Node
    from std_msgs.msg import String

    from softarm_ros.nodes.conversions import health_of
    from softarm_ros.nodes.qos import HEARTBEAT, make_executor

    circle, result = tmp_path / 'circle.yaml', tmp_path / 'run.json'
    circle.write_text(CIRCLE)
    context = Context()
    rclpy.init(context=context)
    node = Node('visitor', namespace=f'/{RIG}', context=context)
    executor = make_executor(context)
    executor.add_node(node)
    publisher = node.create_publisher(String, 'emulator/inject', 10)
    running = []
    node.create_subscription(
        DiagnosticStatus,
        'heartbeat',
        lambda m: (
            running.append(time.monotonic())
            if health_of(m).values.get('phase') == 'track'
            else None
        ),
        HEARTBEAT,
    )
    process = subprocess.Popen(
        command(circle, '--backend', 'emulated', '--json', str(result)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ),
    )
    try:
        end = time.monotonic() + 120.0
        while process.poll() is None and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.05)
            if running and time.monotonic() - running[0] > 0.5:
                publisher.publish(String(data='daq kill'))
                break
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()
    assert process.returncode == 1, output
    events = json.loads(result.read_text())['events']
    assert any('grpc UNAVAILABLE' in event['message'] for event in events), events
    assert np.isfinite(json.loads(result.read_text())['tracking_error_m']['mean'])
