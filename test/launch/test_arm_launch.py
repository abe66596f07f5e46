"""
Runs every rig with the shipped launch file, under pytest or `launch_test`.

Needs a ROS installation with the package built and sourced.
"""

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

import pytest

pytest.importorskip('launch_testing', reason='needs launch_testing (a ROS installation)')
pytest.importorskip('launch_testing_ros', reason='needs launch_testing_ros (a ROS installation)')
rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

import launch_testing
import launch_testing.actions
import launch_testing.asserts
import numpy as np
from ament_index_python.packages import get_package_share_directory
from diagnostic_msgs.msg import DiagnosticStatus
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

sys.path.insert(0, str(Path(__file__).parent))  # launch_test does not do this
from real_launch import environment, short_trajectory

os.environ.update(environment())

START_S = 300.0  # a cold cache on a busy machine
DRIVE_S = 90.0
# The last run uses emulated devices.
RUNS = (
    ('cable_arm', 'sim'),
    ('cable_arm_single', 'sim'),
    ('fishbone_arm', 'sim'),
    ('hydraulic_arm', 'sim'),
    ('pam_arm', 'sim'),
    ('pneumatic_arm', 'sim'),
    ('trunk', 'sim'),
    ('hydraulic_arm', 'emulated'),
)


@pytest.mark.launch_test
@launch_testing.parametrize('rig, backend', RUNS)
def generate_test_description(rig, backend):
    share = get_package_share_directory('softarm_ros')
    folder = tempfile.mkdtemp(prefix='softarm-test-')
    arm = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(f'{share}/launch/arm.launch.py'),
        launch_arguments={
            'rig': rig,
            'backend': backend,
            'trajectory': short_trajectory(rig, folder),
        }.items(),
    )
    return LaunchDescription([arm, launch_testing.actions.ReadyToTest()]), {'rig': rig}


class TestRunningArm(unittest.TestCase):
    """The arm starts by itself; after an emergency stop and a reset it completes the run."""

    @classmethod
    def setUpClass(cls):
        rclpy.init()

    @classmethod
    def tearDownClass(cls):
        rclpy.shutdown()

    def setUp(self):
        self.said = {}
        self.states = []
        self.node = None

    def tearDown(self):
        if self.node is not None:
            self.node.destroy_node()

    def until(self, condition, timeout, what):
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                self.fail(f'{what} not within {timeout} s; {self.said}')
            rclpy.spin_once(self.node, timeout_sec=0.1)

    def call(self, service):
        client = self.node.create_client(Trigger, f'supervisor/{service}')
        self.assertTrue(client.wait_for_service(timeout_sec=10.0))
        future = client.call_async(Trigger.Request())
        self.until(future.done, 10.0, f'answer of {service}')
        self.assertTrue(future.result().success, future.result().message)

    def value(self, node, name):
        return self.said.get(node, {}).get(name, '')

    def span(self):
        """Return how far the actuators have moved, in their own unit."""
        return np.ptp(self.states, axis=0).max() if self.states else 0.0

    def test_arm_runs_stops_on_estop_and_completes_the_run_after_reset(self, rig):
        from softarm_ros.rigs.loader import load_rig

        limits = load_rig(rig).actuator_limits()
        moved = 1e-3 * float(np.max(limits.position_max - limits.position_min))
        self.node = rclpy.create_node('launch_test', namespace=f'/{rig}')

        def note(message):
            self.said[message.name] = {item.key: item.value for item in message.values}

        def note_state(message):
            self.states.append(np.array(message.position))

        self.node.create_subscription(DiagnosticStatus, 'heartbeat', note, 20)
        self.node.create_subscription(
            JointState, 'actuators/state', note_state, rclpy.qos.qos_profile_sensor_data
        )
        state = lambda: self.value('supervisor', 'state')  # noqa: E731
        self.until(lambda: state() == 'running', START_S, 'running')
        self.until(lambda: self.span() > moved, 30.0, 'motion')
        self.call('estop')
        self.until(lambda: state() == 'fault', 5.0, 'fault')
        self.call('reset')
        self.until(lambda: state() == 'ready', 10.0, 'ready')
        self.states.clear()
        self.call('start')
        self.until(lambda: state() == 'running', 10.0, 'running again')
        self.until(lambda: self.span() > moved, 30.0, 'motion after the reset')
        self.until(lambda: self.value('tracker', 'phase') == 'done', DRIVE_S, 'done')


@launch_testing.post_shutdown_test()
class TestAfterShutdown(unittest.TestCase):
    """The processes have ended after Ctrl-C."""

    def test_all_processes_exit_with_status_0(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
