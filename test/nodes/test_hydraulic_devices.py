"""hydraulic_arm with its drives and DAQ emulated: whole runs over real topics, and faults."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

import softarm_ros
from softarm_ros.rigs.graph import NodeSpec, graph_plan
from softarm_ros.rigs.loader import load_rig

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
RIG = 'hydraulic_arm'
DOMAIN = '151'
REPORTED_S = 0.3
SEEING_S = 0.03  # two messages and this process's own delay
CIRCLE = """\
type: circle
center: [0.0, 0.0, 0.78]
radius: 0.1
speed: 0.03
laps: 100
"""
PATH = """\
type: waypoints
frame: base
points: [[0.06, -0.06, 0.776], [0.06, 0.06, 0.776]]
speed: 0.02
closed: false
"""
# Whole runs try tracking and the end of a run, not whether a busy machine is in time.
PATIENT = (
    'supervisor.heartbeat_timeout_s=1.0',
    'supervisor.feedback_timeout_s=1.0',
    'supervisor.command_timeout_s=0.4',
    'devices.servo.pressure_timeout_s=0.4',
    'devices.servo.link_timeout_s=0.4',
    'devices.servo.response_timeout_s=0.2',
    'devices.servo.command_timeout_s=0.4',
    'devices.daq.call_timeout_s=0.4',
    'devices.daq.read_margin_s=0.3',
)
# Fault, node that reports it, what it says, whether the drives go off.
FAULTS = [
    ('servo fault distal_2 0x4210', 'servo', 'distal_2: 0x4210 drive over-temperature', True),
    ('servo delay 400', 'servo', 'link: no device answered', True),
    ('servo kill', 'servo', 'link: ', True),
    ('daq open proximal_2', 'daq', 'proximal_2: open', False),
    ('daq overrun', 'daq', '-200279', False),
]


@pytest.fixture(scope='module', autouse=True)
def compiled_here():
    from softarm_ros.runtime.warm_up import warm_up

    warm_up(load_rig(RIG))


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    from node_bench import Bench
    from std_msgs.msg import String

    circle = tmp_path_factory.mktemp('hydraulic') / 'circle.yaml'
    circle.write_text(CIRCLE)
    rig = load_rig(RIG)
    plan = [
        NodeSpec(
            s.executable,
            s.module,
            s.name,
            s.namespace,
            {**s.parameters, 'twin_check_s': 0.0},
            s.required,
        )
        for s in graph_plan(rig, 'emulated', trajectory=str(circle), autostart=True)
    ]
    with Bench(rig, plan) as running:
        running.inject = running.node.create_publisher(String, 'emulator/inject', 10)
        yield running


def inject(bench, fault):
    from std_msgs.msg import String

    bench.inject.publish(String(data=fault))
    return time.monotonic()


def truth(bench, name):
    return np.array([float(v) for v in bench.health['emulator'].values[name].split()])


def lifted(bench):
    return bench.health['emulator'].values['brakes_lifted']


def ready(bench):
    """Have both devices ready and the arm homed, whatever it has been through."""
    for what in ('servo revive', 'servo mend', 'daq mend'):
        inject(bench, what)
    bench.until(
        lambda: bench.health['servo'].values.get('connected') == 'true', 10.0, 'connection'
    )
    bench.call('daq/reset')
    bench.call('servo/reset')
    bench.until(lambda: not bench.health['servo'].values.get('problem 1'), 10.0, 'no problems')
    if bench.health['servo'].values['ready'] != 'true':
        bench.until(lambda: bench.call('servo/home').success, 10.0, 'home')
    for name in ('daq', 'servo'):
        bench.until(lambda name=name: bench.health[name].values['ready'] == 'true', 20.0, name)


def track(bench):
    """Have the arm in motion along its path, again where a busy machine has stopped it."""
    end = time.monotonic() + 90.0
    while True:
        ready(bench)
        bench.call('supervisor/reset')
        bench.call('supervisor/start')
        since = time.monotonic()
        tracking = 0.0
        while time.monotonic() - since < 20.0 and bench.state != 'fault':
            bench.spin(0.05)
            on_path = bench.health['tracker'].values.get('phase') == 'track'
            tracking = tracking + 0.05 if on_path and bench.state == 'running' else 0.0
            if tracking > 0.5:
                return
        assert time.monotonic() < end, bench.health['supervisor'].message


def test_it_homes_and_runs(bench):
    from node_bench import READY_S

    bench.until(lambda: bench.state == 'running', READY_S, 'running')
    assert lifted(bench) == 'all'
    bench.until(lambda: truth(bench, 'pressure_kPa').max() > 150.0, 20.0, 'pressure')
    values = bench.health['servo'].values
    assert int(values['pressures']) > 50 and int(values['pressures_rejected']) == 0
    np.testing.assert_array_equal(truth(bench, 'boiled_s'), 0.0)


@pytest.mark.parametrize(('fault', 'node', 'text', 'off'), FAULTS, ids=[f[0] for f in FAULTS])
def test_a_fault_in_motion_stops_the_arm_with_the_code_of_the_device(
    bench, fault, node, text, off
):
    track(bench)
    began = inject(bench, fault)
    for source in (node, 'supervisor'):

        def told(source=source):
            return [at for at, message in bench.reasons(began, source) if text in message]

        bench.until(told, 5.0, f'{text} on /diagnostics by {source}')
        print(f'{fault}: {source} after {1e3 * min(told()):.0f} ms')
        assert min(told()) <= REPORTED_S + SEEING_S
    assert bench.state == 'fault'
    bench.spin(0.7)
    assert lifted(bench) == ('none' if off else 'all')
    # Brakes, or torques of the moment: the chambers keep their water.
    before, torque = truth(bench, 'pressure_kPa'), truth(bench, 'torque_N_m')
    bench.spin(1.0)
    np.testing.assert_allclose(truth(bench, 'pressure_kPa'), before, atol=5.0)
    np.testing.assert_array_equal(truth(bench, 'torque_N_m'), torque)
    assert torque.max() < 2.0 and truth(bench, 'pressure_kPa').min() > 0.0
    for mend in ('servo mend', 'servo revive', 'daq mend'):
        inject(bench, mend)
    # What comes back by itself moves nothing.
    bench.spin(0.6)
    assert bench.state == 'fault' and lifted(bench) == ('none' if off else 'all')
    assert text in bench.health[node].values['not_ready']


def command(tmp_path, *more):
    path = tmp_path / 'path.yaml'
    path.write_text(PATH)
    root = str(Path(softarm_ros.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, '-m', 'softarm_ros.tools.cli', 'run', RIG, '--trajectory', str(path),
         '--json', str(tmp_path / 'out.json'), *more,
         *(word for setting in PATIENT for word in ('--set', setting))],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': root, 'ROS_DOMAIN_ID': DOMAIN},
    )  # fmt: skip


def result(process, tmp_path):
    said, _ = process.communicate(timeout=200)
    out = tmp_path / 'out.json'
    return said, json.loads(out.read_text()) if out.exists() else {}


def test_it_tracks_as_the_simulation_does(tmp_path):
    errors = {}
    for backend in ('sim', 'emulated'):
        process = command(tmp_path, '--backend', backend)
        said, out = result(process, tmp_path)
        assert process.returncode == 0, said
        errors[backend] = out['tracking_error_m']['mean']
    print(errors)
    assert errors['emulated'] == pytest.approx(errors['sim'], rel=0.2)
    servo = out['devices']['servo']
    assert int(servo['pressures_rejected']) == 0 and servo['ready'] == 'true'


def test_a_run_with_a_drive_fault_ends_with_its_code_and_a_whole_bag(tmp_path):
    highlevel = pytest.importorskip('rosbags.highlevel', reason='needs rosbags')
    import rclpy
    from rclpy.context import Context
    from std_msgs.msg import String

    bag = tmp_path / 'bag'
    process = command(tmp_path, '--backend', 'emulated', '--bag', str(bag))
    context = Context()
    rclpy.init(context=context, domain_id=int(DOMAIN))
    node = rclpy.create_node('saboteur', context=context)
    try:
        from diagnostic_msgs.msg import DiagnosticStatus
        from rclpy.executors import SingleThreadedExecutor

        from softarm_ros.nodes.conversions import health_of
        from softarm_ros.nodes.qos import HEARTBEAT

        phases = []

        def heard(message):
            if message.name == 'tracker':
                phases.append(health_of(message).values.get('phase'))

        node.create_subscription(DiagnosticStatus, f'/{RIG}/heartbeat', heard, HEARTBEAT)
        publisher = node.create_publisher(String, f'/{RIG}/emulator/inject', 10)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        end = time.monotonic() + 150.0
        while phases[-1:] != ['track']:
            assert time.monotonic() < end, phases[-3:]
            assert process.poll() is None, result(process, tmp_path)[0]
            executor.spin_once(timeout_sec=0.1)
        publisher.publish(String(data='servo fault proximal_3 0x2310'))
        said, out = result(process, tmp_path)
    finally:
        process.kill()
        node.destroy_node()
        context.try_shutdown()
    assert process.returncode not in (0, -9), said
    assert '0x2310' in said
    assert any('0x2310' in event['message'] for event in out['events']), out['events']
    assert not out['completed']
    with highlevel.AnyReader([bag]) as reader:
        topics = {connection.topic for connection, _, _ in reader.messages()}
    assert {f'/{RIG}/actuators/state', f'/{RIG}/chambers/pressure', '/diagnostics'} <= topics
