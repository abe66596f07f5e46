"""The muscle arm with the valve firmware behind its nodes: tracking, a pulled plug, and back."""

import json
import subprocess
import sys
import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from node_bench import Bench

from softarm_ros.rigs.graph import graph_plan
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.warm_up import warm_up

pytestmark = [pytest.mark.ros, pytest.mark.timeout(240)]

CIRCLE = """\
type: circle
center: [0.05, 0.0, 0.985]
radius: 0.02
speed: 0.01
laps: {laps}
"""


@pytest.fixture(scope='module')
def rig():
    rig = load_rig('pam_arm')
    warm_up(rig)
    return rig


def test_a_circle_is_tracked_as_well_as_in_simulation(rig, tmp_path):
    circle, result = tmp_path / 'circle.yaml', tmp_path / 'run.json'
    circle.write_text(CIRCLE.format(laps=1))
    simulated = run_direct(rig, str(circle), seed=0).summary()['tracking_error_m']['mean']
    command = [sys.executable, '-m', 'softarm_ros.tools.cli', 'run', 'pam_arm']
    command += ['--backend', 'emulated', '--trajectory', str(circle), '--json', str(result)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    told = json.loads(result.read_text())
    assert told['tracking_error_m']['mean'] == pytest.approx(simulated, rel=0.2)
    arm, valves = told['devices']['emulator'], told['devices']['valves']
    assert int(valves['pulses']) > 200
    assert arm['both_valves_open'] == '0'
    assert valves['reboots'] == '0'
    assert valves['connections'] == '1'


def test_a_pulled_plug_stops_the_arm_and_it_goes_on_when_told(rig, tmp_path):
    from std_msgs.msg import String

    circle = tmp_path / 'circle.yaml'
    circle.write_text(CIRCLE.format(laps=50))
    with Bench(rig, graph_plan(rig, 'emulated', trajectory=str(circle))) as arm:
        inject = arm.node.create_publisher(String, 'emulator/inject', 10)
        arm.run()
        inject.publish(String(data='valves unplug'))
        pulled = time.monotonic()
        arm.until(lambda: arm.state == 'fault', 5.0, 'fault')
        arm.spin(0.3)
        reasons = arm.reasons(pulled)
        assert 'valves: link: lost' in reasons[0][1]
        assert reasons[0][0] < 0.3 + 0.2  # the injection takes its way, too
        arm.until(lambda: arm.health['emulator'].values['valves_open'] == '0', 2.0, 'all closed')
        openings = arm.health['emulator'].values['openings']

        inject.publish(String(data='valves plug'))
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
