"""hydraulic_arm with its drives and DAQ emulated: whole runs over real topics, and faults."""

import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from softarm_ros.rigs.loader import load_rig

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
RIG = 'hydraulic_arm'
REPORTED_S = 0.3
SEEING_S = 0.03  # two messages and this process's own delay
CIRCLE = """\
type: circle
center: [0.0, 0.0, 0.78]
radius: 0.1
speed: 0.03
laps: 100
"""
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
    from node_bench import Bench, emulated_plan

    circle = tmp_path_factory.mktemp('hydraulic') / 'circle.yaml'
    circle.write_text(CIRCLE)
    rig = load_rig(RIG)
    with Bench(rig, emulated_plan(rig, circle)) as running:
        yield running


def truth(bench, name):
    return np.array([float(v) for v in bench.health['emulator'].values[name].split()])


def lifted(bench):
    return bench.health['emulator'].values['brakes_lifted']


def ready(bench):
    """Have both devices ready and the arm homed, whatever it has been through."""
    for what in ('servo revive', 'servo mend', 'daq mend'):
        bench.inject(what)
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
    began = bench.inject(fault)
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
        bench.inject(mend)
    # What comes back by itself moves nothing.
    bench.spin(0.6)
    assert bench.state == 'fault' and lifted(bench) == ('none' if off else 'all')
    assert text in bench.health[node].values['not_ready']
