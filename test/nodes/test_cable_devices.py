"""cable_arm with its stepper board emulated: homing, steps, a pulled plug, a restarted board."""

import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.graph import NodeSpec, graph_plan
from softarm_ros.rigs.loader import load_rig

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
RIG = 'cable_arm'
REPORTED_S = 0.3
SEEING_S = 0.03  # two messages and this process's own delay


@pytest.fixture(scope='module', autouse=True)
def firmware():
    try:
        built('steppers')
    except FirmwareBuildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    from node_bench import CIRCLE, Bench
    from std_msgs.msg import String

    circle = tmp_path_factory.mktemp('steppers') / 'circle.yaml'
    circle.write_text(CIRCLE.format(speed=0.03, laps=100))
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
    """Break or mend something; return when."""
    from std_msgs.msg import String

    bench.until(lambda: bench.inject.get_subscription_count() > 0, 10.0, 'the emulator listens')
    bench.inject.publish(String(data=fault))
    return time.monotonic()


def values(bench, node):
    return bench.health[node].values if node in bench.health else {}


def at_rest(bench):
    """Wait until driver and coils have the same microsteps, and return them."""

    def agree():
        told = values(bench, 'steppers').get('positions_microsteps', 'unknown')
        return told == values(bench, 'emulator').get('shafts_microsteps')

    bench.hold_time(time.monotonic())
    bench.until(agree, 10.0, 'the same steps in driver and coils')
    return values(bench, 'steppers')['positions_microsteps']


def test_it_homes_and_runs(bench):
    bench.run()
    assert values(bench, 'steppers')['homed'] == 'true'
    assert values(bench, 'emulator')['emulator']
    bench.until(lambda: values(bench, 'steppers').get('state') == 'RUNNING', 5.0, 'RUNNING')


def test_steps_told_are_steps_made(bench):
    bench.run()
    bench.call('supervisor/stop')
    assert at_rest(bench) != '0 0 0 0 0 0'
    assert values(bench, 'emulator')['jumps'] == '0 0 0 0 0 0'
    assert values(bench, 'emulator')['i2c_failures'] == '0'


def test_a_pulled_plug_stops_the_run_until_told_otherwise(bench):
    bench.run()
    pulled = inject(bench, 'steppers unplug')

    def told():
        return [delay for delay, message in bench.reasons(pulled) if 'link: lost' in message]

    bench.until(told, 5.0, 'link: lost, said by the supervisor')
    print(f'reported by the supervisor after {1e3 * min(told()):.0f} ms')
    assert min(told()) < REPORTED_S + SEEING_S
    assert bench.state == 'fault'

    inject(bench, 'steppers plug')

    def back():
        return values(bench, 'steppers').get('state') == 'STOPPED'

    bench.until(back, 10.0, 'connection')
    reply = bench.call('supervisor/reset')
    assert not reply.success
    assert 'link: lost' in reply.message
    stood = at_rest(bench)
    bench.spin(0.5)
    assert at_rest(bench) == stood

    assert bench.call('steppers/reset').success
    bench.until(lambda: values(bench, 'steppers').get('ready') == 'true', 5.0, 'ready')
    assert at_rest(bench) == stood  # ready is not moving, and no homing is needed
    bench.run()
    assert at_rest_after_stop(bench) != stood


def at_rest_after_stop(bench):
    bench.call('supervisor/stop')
    return at_rest(bench)


def test_a_restarted_board_waits_to_be_homed(bench):
    bench.run()
    inject(bench, 'steppers reset')
    bench.until(lambda: bench.state == 'fault', 5.0, 'fault')
    bench.until(lambda: 'reset 2' in values(bench, 'steppers').get('not_ready', ''), 5.0, 'reset')
    bench.call('steppers/reset')
    bench.until(lambda: 'not homed' in values(bench, 'steppers')['not_ready'], 5.0, 'not homed')
    assert not bench.call('supervisor/start').success
    reply = bench.call('steppers/home')  # wherever the arm is: that is the person's matter
    assert reply.success
    bench.until(lambda: values(bench, 'steppers').get('homed') == 'true', 5.0, 'homed')
