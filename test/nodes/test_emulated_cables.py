"""cable_arm with its stepper board emulated: homing, steps, a pulled plug, a restarted board."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from emulated_bench import Case, arm_of, assert_reported, assert_tracks

pytestmark = [pytest.mark.ros, pytest.mark.wall_clock, pytest.mark.timeout(300)]
CASE = Case(
    'cable_arm',
    'type: circle\ncenter: [0.0, 0.0, 0.24]\nradius: 0.02\nspeed: 0.04\nlaps: 100\n',
    board='steppers',
)
cable = arm_of(CASE)


def at_rest(arm):
    """Wait until driver and coils have the same microsteps, and return them."""

    def agree():
        told = arm.values('steppers').get('positions_microsteps', 'unknown')
        return told == arm.values('emulator').get('shafts_microsteps')

    arm.hold_time(arm.now_s())
    arm.until(agree, 10.0, 'the same steps in driver and coils')
    return arm.values('steppers')['positions_microsteps']


def test_cables_follow_as_in_simulation_and_steps_told_are_steps_made(cable):
    assert_tracks(cable)
    assert cable.values('steppers')['homed'] == 'true'
    assert cable.values('steppers')['state'] == 'RUNNING'
    assert cable.values('steppers')['connections'] == '1'
    assert cable.call('supervisor/stop').success
    assert at_rest(cable) != '0 0 0 0 0 0'
    assert cable.values('emulator')['jumps'] == '0 0 0 0 0 0'
    assert cable.values('emulator')['i2c_failures'] == '0'


def test_a_pulled_plug_stops_the_cables_until_told_otherwise(cable):
    cable.run()
    pulled = cable.inject('steppers unplug')
    assert_reported(cable, pulled, 'link: lost', 'steppers', 'supervisor')
    cable.inject('steppers plug')
    cable.until(lambda: cable.values('steppers').get('state') == 'STOPPED', 10.0, 'connection')
    reply = cable.call('supervisor/reset')
    assert not reply.success
    assert 'link: lost' in reply.message
    stood = at_rest(cable)
    cable.spin(0.5)
    assert at_rest(cable) == stood
    assert cable.call('steppers/reset').success
    cable.until(lambda: cable.values('steppers').get('ready') == 'true', 5.0, 'ready')
    assert at_rest(cable) == stood  # ready is not moving, and no homing is needed
    cable.run()
    assert cable.call('supervisor/stop').success
    assert at_rest(cable) != stood


def test_a_restarted_board_waits_to_be_homed(cable):
    cable.run()
    cable.inject('steppers reset')
    cable.until(lambda: cable.state == 'fault', 5.0, 'fault')
    cable.until(lambda: 'reset 2' in cable.values('steppers').get('not_ready', ''), 5.0, 'reset')
    assert cable.call('steppers/reset').success
    cable.until(lambda: 'not homed' in cable.values('steppers')['not_ready'], 5.0, 'not homed')
    assert not cable.call('supervisor/start').success
    assert cable.call('steppers/home').success  # wherever the arm is: that is the person's matter
    cable.until(lambda: cable.values('steppers').get('homed') == 'true', 5.0, 'homed')
