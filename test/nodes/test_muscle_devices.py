"""The muscle arm with the valve firmware behind its nodes: a pulled plug, and back."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from node_bench import Bench, emulated_plan

from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.warm_up import warm_up

pytestmark = [pytest.mark.ros, pytest.mark.timeout(240)]

CIRCLE = """\
type: circle
center: [0.05, 0.0, 0.985]
radius: 0.02
speed: 0.01
laps: 50
"""


@pytest.fixture(scope='module')
def rig():
    rig = load_rig('pam_arm')
    warm_up(rig)
    return rig


def test_a_pulled_plug_stops_the_arm_and_it_goes_on_when_told(rig, tmp_path):
    circle = tmp_path / 'circle.yaml'
    circle.write_text(CIRCLE)
    with Bench(rig, emulated_plan(rig, circle)) as arm:
        arm.run()
        pulled = arm.inject('valves unplug')
        arm.until(lambda: arm.state == 'fault', 5.0, 'fault')
        arm.spin(0.3)
        reasons = arm.reasons(pulled)
        assert 'valves: link: lost' in reasons[0][1]
        assert reasons[0][0] < 0.3 + 0.2  # the injection takes its way, too
        # The emulator looks at its valves twice a second: what it says must be of after the stop.
        arm.spin(0.7)
        arm.until(lambda: arm.health['emulator'].values['valves_open'] == '0', 2.0, 'all closed')
        openings = arm.health['emulator'].values['openings']

        arm.inject('valves plug')
        arm.until(lambda: arm.health['valves'].values['connected'] == 'true', 5.0, 'connected')
        assert not arm.call('supervisor/reset').success
        arm.spin(0.7)
        assert arm.health['emulator'].values['openings'] == openings
        assert arm.call('valves/reset').success
        arm.until(lambda: arm.health['valves'].values['ready'] == 'true', 2.0, 'ready')
        assert arm.call('supervisor/reset').success
        arm.run()  # the board kept its power, and the lengths are known
        arm.until(
            lambda: arm.health['emulator'].values['openings'] != openings, 5.0, 'valves open'
        )
