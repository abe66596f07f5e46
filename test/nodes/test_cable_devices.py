"""cable_arm with its stepper board emulated: homing, steps, a pulled plug, a restarted board."""

import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
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
    from node_bench import CIRCLE, Bench, emulated_plan

    circle = tmp_path_factory.mktemp('steppers') / 'circle.yaml'
    circle.write_text(CIRCLE.format(speed=0.03, laps=100))
    rig = load_rig(RIG)
    with Bench(rig, emulated_plan(rig, circle)) as running:
        yield running


def at_rest(bench):
    """Wait until driver and coils have the same microsteps, and return them."""

    def agree():
        told = bench.values('steppers').get('positions_microsteps', 'unknown')
        return told == bench.values('emulator').get('shafts_microsteps')

    bench.hold_time(time.monotonic())
    bench.until(agree, 10.0, 'the same steps in driver and coils')
    return bench.values('steppers')['positions_microsteps']


def test_it_homes_and_runs(bench):
    bench.run()
    assert bench.values('steppers')['homed'] == 'true'
    assert bench.values('emulator')['emulator']
    bench.until(lambda: bench.values('steppers').get('state') == 'RUNNING', 5.0, 'RUNNING')


def test_steps_told_are_steps_made(bench):
    bench.run()
    bench.call('supervisor/stop')
    assert at_rest(bench) != '0 0 0 0 0 0'
    assert bench.values('emulator')['jumps'] == '0 0 0 0 0 0'
    assert bench.values('emulator')['i2c_failures'] == '0'


def test_a_pulled_plug_stops_the_run_until_told_otherwise(bench):
    bench.run()
    pulled = bench.inject('steppers unplug')

    def told():
        return [delay for delay, message in bench.reasons(pulled) if 'link: lost' in message]

    bench.until(told, 5.0, 'link: lost, said by the supervisor')
    print(f'reported by the supervisor after {1e3 * min(told()):.0f} ms')
    assert min(told()) < REPORTED_S + SEEING_S
    assert bench.state == 'fault'

    bench.inject('steppers plug')

    def back():
        return bench.values('steppers').get('state') == 'STOPPED'

    bench.until(back, 10.0, 'connection')
    reply = bench.call('supervisor/reset')
    assert not reply.success
    assert 'link: lost' in reply.message
    stood = at_rest(bench)
    bench.spin(0.5)
    assert at_rest(bench) == stood

    assert bench.call('steppers/reset').success
    bench.until(lambda: bench.values('steppers').get('ready') == 'true', 5.0, 'ready')
    assert at_rest(bench) == stood  # ready is not moving, and no homing is needed
    bench.run()
    assert at_rest_after_stop(bench) != stood


def at_rest_after_stop(bench):
    bench.call('supervisor/stop')
    return at_rest(bench)


def test_a_restarted_board_waits_to_be_homed(bench):
    bench.run()
    bench.inject('steppers reset')
    bench.until(lambda: bench.state == 'fault', 5.0, 'fault')
    bench.until(lambda: 'reset 2' in bench.values('steppers').get('not_ready', ''), 5.0, 'reset')
    bench.call('steppers/reset')
    bench.until(lambda: 'not homed' in bench.values('steppers')['not_ready'], 5.0, 'not homed')
    assert not bench.call('supervisor/start').success
    reply = bench.call('steppers/home')  # wherever the arm is: that is the person's matter
    assert reply.success
    bench.until(lambda: bench.values('steppers').get('homed') == 'true', 5.0, 'homed')
