"""
cable_arm with emulated stepper board and cameras, in one graph for all tests.

Step counts, an unplugged or restarted board, wrong or missing camera data, a killed control loop.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('natnet', reason="needs natnet: pip install 'softarm_ros[sensing]'")
from emulated_bench import Case, arm_of, assert_reported, assert_tracks, stand_by
from node_bench import READY_S

pytestmark = [pytest.mark.ros, pytest.mark.wall_clock, pytest.mark.timeout(300)]
CASE = Case(
    'cable_arm',
    'type: circle\ncenter: [0.0, 0.0, 0.24]\nradius: 0.02\nspeed: 0.015\nlaps: 100\n',
    board='steppers',
    settings=('sensors.natnet.timeout_s=0.5',),
)
HOLD_S = 0.55  # permit_timeout_s, the ramp of the motors, two messages
cable = arm_of(CASE)


def seen_by(arm):
    """Return the heartbeat message of the camera node."""
    return arm.health['natnet'].message if 'natnet' in arm.health else ''


def at_rest(arm):
    """Wait until driver and emulated motors have the same microsteps; return them."""

    def agree():
        told = arm.values('steppers').get('positions_microsteps', 'unknown')
        return told == arm.values('emulator').get('shafts_microsteps')

    arm.hold_time(arm.now_s())
    arm.until(agree, 10.0, 'the same steps in driver and coils')
    return arm.values('steppers')['positions_microsteps']


def test_cable_arm_tracks_as_in_simulation_and_loses_no_steps(cable):
    cable.until(lambda: cable.state == 'ready', READY_S, 'ready')
    connections = cable.values('steppers')['connections']  # a busy computer starts boards late
    assert_tracks(cable)
    assert cable.values('steppers')['homed'] == 'true'
    assert cable.values('steppers')['state'] == 'RUNNING'
    assert cable.values('steppers')['connections'] == connections
    assert cable.call('supervisor/stop').success
    assert at_rest(cable) != '0 0 0 0 0 0'
    assert cable.values('emulator')['jumps'] == '0 0 0 0 0 0'
    assert cable.values('emulator')['i2c_failures'] == '0'


def test_only_the_cameras_measure_the_tip_and_latency_counts_from_the_exposure(cable):
    cable.run()
    values = cable.values('natnet')
    assert values['ready'] == 'true'
    assert values['seen'] == 'proximal, tip'
    assert values['server'].startswith('Motive (emulated)')
    # From the exposure: the cameras' delay of 10 ms is known although the two clocks differ.
    assert float(values['latency_ms']) > 9.0
    assert abs(float(values['clock_offset_s'])) > 1.0
    # No other node publishes poses.
    assert cable.node.count_publishers('/cable_arm/tip/pose') == 2  # with that of the bench
    assert int(cable.values('emulator')['natnet_clients']) == 1


def test_unplugged_stepper_board_stops_the_cables_until_a_reset(cable):
    cable.run()
    pulled = cable.inject('steppers unplug')
    assert_reported(cable, pulled, 'link: lost', 'steppers', 'supervisor')
    cable.inject('steppers plug')
    cable.until(lambda: cable.values('steppers').get('state') == 'STOPPED', 10.0, 'connection')
    reply = cable.call('supervisor/reset')
    assert not reply.success
    assert 'link: lost' in reply.message
    assert reply.message.endswith('in order again, call steppers/reset, then this')
    stood = at_rest(cable)
    cable.spin(0.5)
    assert at_rest(cable) == stood
    assert cable.call('steppers/reset').success
    cable.until(lambda: cable.values('steppers').get('ready') == 'true', 5.0, 'ready')
    assert at_rest(cable) == stood  # a ready driver does not move, and needs no homing
    cable.run()
    assert cable.call('supervisor/stop').success
    assert at_rest(cable) != stood


@pytest.mark.parametrize(
    ('fault', 'said', 'advice'),
    [
        ('flip', 'degrees between two frames', 'less symmetric'),
        ('hide', 'tip: not seen', 'whether it is hidden'),
        ('second', 'sends NatNet as well', 'end the second Motive'),
        ('die', 'no NatNet server answers', 'start Motive'),
    ],
)
def test_motion_capture_fault_is_reported_with_advice_and_no_tip_jumps(cable, fault, said, advice):
    from geometry_msgs.msg import PoseStamped

    from softarm_ros.nodes.conversions import seconds_of
    from softarm_ros.nodes.qos import MEASUREMENT

    stand_by(cable, 'steppers')
    cable.run()
    tips = []

    def note(message):
        where = message.pose.position
        tips.append((seconds_of(message.header.stamp), where.x, where.y, where.z))

    listener = cable.node.create_subscription(PoseStamped, 'tip/pose', note, MEASUREMENT)
    cable.spin(0.2)
    cable.inject(f'natnet {fault}')
    cable.until(lambda: said in seen_by(cable), 8.0, said)
    assert advice in seen_by(cable)
    if fault == 'second':
        cable.spin(1.2)  # longer than the supervisor waits for a tip
        assert cable.state == 'running'
    else:  # a tip or sections missing for longer than that hold the arm
        cable.until(lambda: cable.state != 'running', 5.0, 'held')
        if fault == 'flip':  # the reason for the missing sections
            assert said in cable.health['supervisor'].message
    cable.inject('natnet mend')
    cable.until(lambda: cable.values('natnet').get('ready') == 'true', 10.0, 'ready again')
    cable.spin(0.3)
    cable.node.destroy_subscription(listener)
    steps = np.diff(tips, axis=0)
    next_frame = steps[:, 0] < 0.05  # without steps across the gap in the poses
    assert np.linalg.norm(steps[next_frame, 1:], axis=1).max() < 0.02


def test_restarted_stepper_board_does_not_start_before_it_is_homed(cable):
    cable.run()
    cable.inject('steppers reset')
    cable.until(lambda: cable.state == 'fault', 5.0, 'fault')
    cable.until(lambda: 'reset 2' in cable.values('steppers').get('not_ready', ''), 5.0, 'reset')
    assert cable.call('steppers/reset').success
    cable.until(lambda: 'not homed' in cable.values('steppers')['not_ready'], 5.0, 'not homed')
    assert not cable.call('supervisor/start').success
    assert cable.call('steppers/home').success  # wherever the arm is: the operator is responsible
    cable.until(lambda: cable.values('steppers').get('homed') == 'true', 5.0, 'homed')


def test_driver_holds_the_motors_when_the_control_process_is_killed(cable):
    cable.run()
    dead, began = cable.kill('supervisor')
    assert dead == ['inverse_kinematics', 'tracker', 'supervisor']
    held = cable.hold_time(began)
    print(f'held after {1e3 * held:.0f} ms')
    assert held <= HOLD_S
    (ended,) = cable.processes.ended()
    assert list(ended.nodes) == dead
    assert 'was killed by SIGKILL' in ended.describe()
    assert 'supervisor silent' in cable.health['steppers'].message
