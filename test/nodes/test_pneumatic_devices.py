"""pneumatic_arm with its DAQ emulated: the whole graph over real topics, and what breaks it."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from softarm_ros.rigs.loader import load_rig

pytestmark = [pytest.mark.ros, pytest.mark.timeout(240)]
RIG = 'pneumatic_arm'
REPORTED_S = 0.3
SEEING_S = 0.03  # two messages and this process's own delay
CIRCLE = """\
type: circle
center: [0.0, 0.0, 0.192]
radius: 0.09
speed: 0.03
laps: 100
"""
FAULTS = {
    'daq overrun': '-200279',
    'daq open distal_chamber_2': 'distal_chamber_2: open',
    'daq kill': 'grpc UNAVAILABLE',
}


@pytest.fixture(scope='module', autouse=True)
def compiled_here():
    from softarm_ros.runtime.warm_up import warm_up

    warm_up(load_rig(RIG))


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    from node_bench import Bench, emulated_plan
    from sensor_msgs.msg import FluidPressure

    from softarm_ros.nodes.qos import MEASUREMENT, PER_CHAMBER

    circle = tmp_path_factory.mktemp('pneumatic') / 'circle.yaml'
    circle.write_text(CIRCLE)
    rig = load_rig(RIG)
    with Bench(rig, emulated_plan(rig, circle)) as running:
        running.pressures, running.gripper = [], []
        running.node.create_subscription(
            FluidPressure, 'chambers/pressure', running.pressures.append, PER_CHAMBER
        )
        running.node.create_subscription(
            FluidPressure, 'gripper/pressure', running.gripper.append, MEASUREMENT
        )
        yield running


def mend(bench):
    """Have the DAQ ready, whatever it has been through; nothing moves by that."""
    for what in ('daq mend', 'daq revive'):
        bench.inject(what)
    bench.call('daq/reset')
    bench.until(lambda: bench.health['daq'].values['ready'] == 'true', 10.0, 'ready')


def outputs(bench):
    return [float(v) for v in bench.health['emulator'].values['output_V'].split(',')]


def test_it_runs_with_its_daq_and_measures_every_chamber(bench):
    from node_bench import READY_S

    bench.until(lambda: bench.state == 'running', READY_S, 'running')
    assert bench.health['daq'].values['ready'] == 'true'
    bench.pressures.clear()
    bench.until(lambda: len(bench.pressures) > 60 and bench.gripper, 10.0, 'pressures')
    names = load_rig(RIG).actuator_names
    assert {message.header.frame_id for message in bench.pressures} == set(names)
    bench.until(lambda: max(outputs(bench)) > 0.1, 10.0, 'volts at the regulators')


@pytest.mark.parametrize('fault', FAULTS)
def test_a_fault_in_motion_stops_the_arm_with_the_code_of_the_device(bench, fault):
    mend(bench)
    bench.run()
    bench.spin(0.3)
    began = bench.inject(fault)
    for source in ('daq', 'supervisor'):

        def told(source=source):
            found = bench.reasons(began, source)
            return [at for at, message in found if FAULTS[fault] in message]

        bench.until(told, 5.0, f'the code on /diagnostics by {source}')
        print(f'{fault}: {source} after {1e3 * min(told()):.0f} ms')
        assert min(told()) <= REPORTED_S + SEEING_S
    assert not bench.call('supervisor/reset').success
    if fault != 'daq kill':  # the outputs of a card nobody reaches stand as they were
        bench.until(lambda: not any(outputs(bench)[:6]), 5.0, 'outputs at zero')
    bench.inject('daq revive' if fault == 'daq kill' else 'daq mend')
    bench.until(lambda: not any(outputs(bench)[:6]), 10.0, 'outputs at zero')
    # What has come back by itself moves nothing.
    bench.spin(0.6)
    assert bench.state == 'fault' and not any(outputs(bench)[:6])
    assert FAULTS[fault] in bench.health['daq'].values['not_ready']
    assert bench.call('daq/reset').success
    bench.until(lambda: bench.health['daq'].values['ready'] == 'true', 10.0, 'ready')
    assert bench.state == 'fault' and not any(outputs(bench)[:6])


def test_the_force_sensor_is_tared_by_a_service(bench):
    from geometry_msgs.msg import WrenchStamped

    from softarm_ros.nodes.qos import MEASUREMENT

    wrenches = []
    bench.node.create_subscription(WrenchStamped, 'wrench', wrenches.append, MEASUREMENT)
    bench.until(lambda: wrenches, 10.0, 'wrench')
    assert wrenches[-1].wrench.force.z > 2.0
    assert bench.call('daq/tare').success
    bench.until(lambda: abs(wrenches[-1].wrench.force.z) < 0.1, 10.0, 'tared')
