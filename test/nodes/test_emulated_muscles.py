"""pam_arm with an emulated valve board, which is unplugged and plugged in again."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from emulated_bench import Case, arm_of, assert_reported, assert_tracks, heard_after

pytestmark = [pytest.mark.ros, pytest.mark.wall_clock, pytest.mark.timeout(300)]
CASE = Case(
    'pam_arm',
    'type: circle\ncenter: [0.03, 0.0, 0.99]\nradius: 0.008\nspeed: 0.01\nlaps: 100\n',
    board='valves',
    seeds=3,  # their errors differ by a third
)
muscles = arm_of(CASE)


def test_pam_arm_tracks_as_in_simulation(muscles):
    assert_tracks(muscles)
    assert muscles.values('emulator')['both_valves_open'] == '0'
    assert muscles.values('valves')['reboots'] == '0'
    assert muscles.values('valves')['connections'] == '1'


def test_unplugged_valve_board_closes_all_valves_until_a_reset(muscles):
    muscles.run()
    pulled = muscles.inject('valves unplug')
    assert_reported(muscles, pulled, 'valves: link: lost', 'supervisor')
    # The emulator checks its valves twice a second: wait for a report from after the stop.
    heard_after(muscles, 'emulator', pulled + 1.0)
    muscles.until(lambda: muscles.values('emulator')['valves_open'] == '0', 2.0, 'all closed')
    openings = muscles.values('emulator')['openings']

    muscles.inject('valves plug')
    muscles.until(lambda: muscles.values('valves')['connected'] == 'true', 10.0, 'connected')
    assert not muscles.call('supervisor/reset').success
    heard_after(muscles, 'emulator', muscles.now_s() + 0.7)
    assert muscles.values('emulator')['openings'] == openings
    assert muscles.call('valves/reset').success
    muscles.until(lambda: muscles.values('valves')['ready'] == 'true', 5.0, 'ready')
    assert muscles.call('supervisor/reset').success
    muscles.run()  # the board kept its power, and the lengths are known
    muscles.until(lambda: muscles.values('emulator')['openings'] != openings, 5.0, 'valves open')
