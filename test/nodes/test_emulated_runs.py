"""`softarm run RIG --backend emulated`: as good as simulated, and how a run ends that breaks."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')

import softarm_ros
from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.warm_up import warm_up

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
ALIKE = 1.2  # times the simulated mean error
# Asked here is how well an arm tracks and how a run ends, not how soon a late node is noticed.
PATIENT = (
    'supervisor.heartbeat_timeout_s=1.0',
    'supervisor.feedback_timeout_s=1.0',
    'supervisor.command_timeout_s=0.5',
)
PATIENT_DAQ = ('devices.daq.call_timeout_s=0.5', 'devices.daq.read_margin_s=0.3')


@dataclass(frozen=True)
class Case:
    """A short trajectory, and which values of its devices must be what after it."""

    rig: str
    trajectory: str
    board: str | None = None
    settings: tuple[str, ...] = ()
    told: dict[tuple[str, str], str] = field(default_factory=dict)


CASES = (
    Case(
        'cable_arm',
        'type: circle\ncenter: [0.0, 0.0, 0.235]\nradius: 0.05\nspeed: 0.04\n',
        board='steppers',
        told={
            ('emulator', 'jumps'): '0 0 0 0 0 0',
            ('emulator', 'i2c_failures'): '0',
            ('steppers', 'connections'): '1',
        },
    ),
    Case(
        'hydraulic_arm',
        'type: waypoints\npoints: [[0.06, -0.06, 0.776], [0.06, 0.06, 0.776]]\nspeed: 0.02\n',
        settings=(
            'devices.servo.pressure_timeout_s=0.4',
            'devices.servo.link_timeout_s=0.4',
            'devices.servo.response_timeout_s=0.2',
            'devices.servo.command_timeout_s=0.4',
            *PATIENT_DAQ,
        ),
        told={('servo', 'pressures_rejected'): '0', ('servo', 'connections'): '1'},
    ),
    Case(
        'pneumatic_arm',
        'type: line\nstart: [0.08, -0.03, 0.187]\nend: [0.08, 0.03, 0.187]\nspeed: 0.015\n',
        settings=('devices.daq.command_timeout_s=0.7', *PATIENT_DAQ),
    ),
    Case(
        'pam_arm',
        'type: circle\ncenter: [0.05, 0.0, 0.985]\nradius: 0.02\nspeed: 0.01\n',
        board='valves',
        told={
            ('emulator', 'both_valves_open'): '0',
            ('valves', 'reboots'): '0',
            ('valves', 'connections'): '1',
        },
    ),
)
BROKEN = (('hydraulic_arm', 'servo fault proximal_3 0x2310'), ('pneumatic_arm', 'daq kill'))
CODES = {'hydraulic_arm': '0x2310', 'pneumatic_arm': 'grpc UNAVAILABLE'}


def case_of(rig):
    return next(case for case in CASES if case.rig == rig)


def started(case, folder, *more):
    """Start a run of a case; its JSON goes to out.json in the folder."""
    path = folder / 'trajectory.yaml'
    path.write_text(case.trajectory)
    root = str(Path(softarm_ros.__file__).parents[1])
    settings = (*PATIENT, *case.settings)
    return subprocess.Popen(
        [
            *(sys.executable, '-m', 'softarm_ros.cli', 'run', case.rig),
            *('--backend', 'emulated', '--trajectory', str(path)),
            *('--json', str(folder / 'out.json'), *more),
            *(word for setting in settings for word in ('--set', setting)),
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


@pytest.mark.parametrize('case', CASES, ids=[case.rig for case in CASES])
def test_an_arm_with_its_devices_tracks_as_in_simulation(case, tmp_path):
    if case.board is not None:
        try:
            built(case.board)
        except FirmwareBuildError as error:
            pytest.skip(str(error))
    rig = load_rig(case.rig)
    warm_up(rig)
    process = started(case, tmp_path)
    said, record = ended(process, tmp_path)
    assert process.returncode == 0, said
    simulated = run_direct(rig, str(tmp_path / 'trajectory.yaml')).error().mean
    emulated = record['tracking_error_m']['mean']
    print(f'{case.rig}: simulated {1e3 * simulated:.2f}, emulated {1e3 * emulated:.2f} mm')
    assert emulated <= ALIKE * simulated
    for (node, name), value in case.told.items():
        assert record['devices'][node][name] == value, (node, name)


@pytest.mark.parametrize(('rig', 'fault'), BROKEN, ids=[rig for rig, _ in BROKEN])
def test_a_run_that_breaks_ends_with_the_code_of_the_device_and_a_whole_bag(rig, fault, tmp_path):
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
    process = started(case_of(rig), tmp_path, '--bag', str(bag))
    try:
        end = time.monotonic() + 150.0
        while phases.count('track') < 20 and process.poll() is None and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        publisher.publish(String(data=fault))
        said, record = ended(process, tmp_path)
    finally:
        process.kill()
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()
    assert process.returncode == 1, said
    assert not record['completed']
    assert any(CODES[rig] in event['message'] for event in record['events']), record['events']
    assert np.isfinite(record['tracking_error_m']['mean'])
    with highlevel.AnyReader([bag]) as reader:
        counts = {c.topic.removeprefix(f'/{rig}/'): c.msgcount for c in reader.connections}
    for topic in ('actuators/command', 'actuators/state', 'tip/pose', 'chambers/pressure'):
        assert counts.get(topic, 0) > 50, counts
    assert counts['/diagnostics'] > 0
