"""`softarm run RIG --backend emulated`: a complete run, and one with a device fault."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')

import softarm_ros
from softarm_ros.emulation.firmware_build import FirmwareBuildError, built

pytestmark = [pytest.mark.ros, pytest.mark.wall_clock, pytest.mark.timeout(300)]
# Wide limits: these tests check how a run ends, not how soon a late node is noticed.
PATIENT = (
    'supervisor.heartbeat_timeout_s=1.0',
    'supervisor.feedback_timeout_s=1.0',
    'supervisor.state_timeout_s=1.0',
    'supervisor.command_timeout_s=0.5',
    'supervisor.permit_timeout_s=0.5',
    'supervisor.feedback_watch.max_age_s=1.0',
    'supervisor.feedback_watch.max_refused_s=1.0',
)
LINES = {
    'cable_arm': 'start: [0.02, 0.0, 0.235]\nend: [-0.02, 0.0, 0.235]\nspeed: 0.04\n',
    'pneumatic_arm': 'start: [0.08, -0.03, 0.187]\nend: [0.08, 0.03, 0.187]\nspeed: 0.015\n',
}


def started(rig, folder, *more):
    """Start a run along a line; its JSON goes to out.json in the folder."""
    path = folder / 'trajectory.yaml'
    path.write_text('type: line\n' + LINES[rig])
    root = str(Path(softarm_ros.__file__).parents[1])
    return subprocess.Popen(
        [
            *(sys.executable, '-m', 'softarm_ros.cli', 'run', rig),
            *('--backend', 'emulated', '--trajectory', str(path)),
            *('--json', str(folder / 'out.json'), *more),
            *(word for setting in PATIENT for word in ('--set', setting)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': root},
    )


def ended(process, folder):
    """Wait for the end of a run; return what it printed and its JSON."""
    try:
        said, _ = process.communicate(timeout=200)
    finally:
        process.kill()
    out = folder / 'out.json'
    return said, json.loads(out.read_text()) if out.exists() else {}


def test_complete_run_records_the_values_of_its_devices(tmp_path):
    try:
        built('steppers')
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    process = started('cable_arm', tmp_path)
    said, record = ended(process, tmp_path)
    assert process.returncode == 0, said
    assert record['completed']
    assert record['backend'] == 'emulated'
    assert record['devices']['steppers']['connections'] == '1'
    assert record['devices']['emulator']['jumps'] == '0 0 0 0 0 0'


def test_run_with_a_device_fault_ends_with_its_error_code_and_a_complete_bag(tmp_path):
    rig = 'pneumatic_arm'
    highlevel = pytest.importorskip('rosbags.highlevel', reason='needs rosbags')
    import rclpy
    from diagnostic_msgs.msg import DiagnosticStatus
    from rclpy.context import Context
    from std_msgs.msg import String

    from softarm_ros.nodes.conversions import health_of
    from softarm_ros.nodes.qos import HEARTBEAT, make_executor, newest

    bag = tmp_path / 'bag'
    context, phases = Context(), []
    rclpy.init(context=context)
    node = rclpy.create_node('saboteur', namespace=f'/{rig}', context=context)
    executor = make_executor(context)
    executor.add_node(node)

    def heard(message):
        if message.name == 'tracker':
            phases.append(health_of(message).values.get('phase'))

    node.create_subscription(DiagnosticStatus, 'heartbeat', heard, newest(HEARTBEAT))
    publisher = node.create_publisher(String, 'emulator/inject', 10)
    # Half of the images: drawing and reading them takes most of a slow computer.
    slow = ('--set', 'sensors.stereo_cameras.rate_hz=25')
    process = started(rig, tmp_path, '--bag', str(bag), *slow)
    try:
        end = time.monotonic() + 150.0
        while phases.count('track') < 8 and process.poll() is None and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        publisher.publish(String(data='daq kill'))
        said, record = ended(process, tmp_path)
    finally:
        process.kill()
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()
    assert process.returncode == 1, said
    assert not record['completed']
    # grpc reports CANCELLED for a call in progress when the host ends.
    said_of_host = re.compile('grpc (UNAVAILABLE|CANCELLED) DAQ host: ')
    assert any(said_of_host.search(event['message']) for event in record['events']), record
    assert np.isfinite(record['tracking_error_m']['mean'])
    with highlevel.AnyReader([bag]) as reader:
        counts = {c.topic.removeprefix(f'/{rig}/'): c.msgcount for c in reader.connections}
    for topic in ('actuators/command', 'actuators/state', 'tip/pose', 'chambers/pressure'):
        assert counts.get(topic, 0) > 50, counts
    assert counts['/diagnostics'] > 0
