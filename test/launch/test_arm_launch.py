"""
The shipped launch file, started as a laboratory would; pytest and `launch_test` both take this.

It needs a ROS installation with the package built and sourced.
"""

import time
import unittest

import pytest

pytest.importorskip('launch_testing', reason='needs launch_testing (a ROS installation)')
pytest.importorskip('launch_testing_ros', reason='needs launch_testing_ros (a ROS installation)')
rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

import launch_testing
import launch_testing.actions
import launch_testing.asserts
from ament_index_python.packages import get_package_share_directory
from diagnostic_msgs.msg import DiagnosticStatus
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from std_srvs.srv import Trigger

RIGS = ('cable_arm', 'cable_arm_single')


@pytest.mark.launch_test
@launch_testing.parametrize('rig', RIGS)
def generate_test_description(rig):
    share = get_package_share_directory('softarm_ros')
    arm = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(f'{share}/launch/arm.launch.py'),
        launch_arguments={'rig': rig, 'backend': 'sim', 'laps': '50'}.items(),
    )
    return LaunchDescription([arm, launch_testing.actions.ReadyToTest()]), {'rig': rig}


class TestRunningArm(unittest.TestCase):
    """The arm starts by itself, stops on request and stays under supervision."""

    @classmethod
    def setUpClass(cls):
        rclpy.init()

    @classmethod
    def tearDownClass(cls):
        rclpy.shutdown()

    def wait_for_state(self, node, states, wanted, timeout):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            rclpy.spin_once(node, timeout_sec=0.1)
            if states and states[-1] == wanted:
                return
        self.fail(f'not {wanted} within {timeout} s; states: {states[-5:]}')

    def test_starts_and_stops(self, rig):
        node = rclpy.create_node('launch_test', namespace=f'/{rig}')
        states = []

        def note(message):
            if message.name == 'supervisor':
                values = {item.key: item.value for item in message.values}
                states.append(values['state'])

        node.create_subscription(DiagnosticStatus, 'heartbeat', note, 20)
        try:
            self.wait_for_state(node, states, 'running', 60.0)
            client = node.create_client(Trigger, 'supervisor/stop')
            self.assertTrue(client.wait_for_service(timeout_sec=10.0))
            future = client.call_async(Trigger.Request())
            rclpy.spin_until_future_complete(node, future, timeout_sec=5.0)
            self.assertTrue(future.result().success)
            self.wait_for_state(node, states, 'stopped', 5.0)
        finally:
            node.destroy_node()


@launch_testing.post_shutdown_test()
class TestAfterShutdown(unittest.TestCase):
    """Every node ends with status 0 after Ctrl-C."""

    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
