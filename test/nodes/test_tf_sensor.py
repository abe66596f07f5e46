"""The tf sensor as a node: frames that other programs publish on /tf become tip/pose."""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np
import pytest

pytest.importorskip('rclpy')

import rclpy
from geometry_msgs.msg import PoseStamped, TransformStamped
from rclpy.context import Context
from rclpy.node import Node

from softarm_ros.cli.node_processes import NodeProcesses
from softarm_ros.nodes.qos import MEASUREMENT, TRANSFORMS, listening, make_executor
from softarm_ros.rigs.graph import NodeSpec

SETTING = (
    'sensors={tf: {frame: map, rate_hz: 100, bodies: [{name: stand, section: base}, '
    '{name: middle, section: proximal}, {name: tip, section: distal}]}}'
)
TIP, BASE = (0.02, 0.0, 0.21), (1.0, -2.0, 0.5)


def sensor_node() -> NodeProcesses:
    parameters = {'rig': 'cable_arm', 'settings': SETTING, 'sensor': 'tf', 'twin_check_s': 0.0}
    return NodeProcesses(
        [NodeSpec('sensor_node', 'softarm_ros.nodes.sensor_node', 'tf', '/cable_arm', parameters)]
    )


@pytest.mark.skipif(find_spec('tf2_msgs') is not None, reason='tf2_msgs is installed')
def test_tf_sensor_without_tf2_msgs_names_the_package_to_install():
    with sensor_node() as processes:
        end = time.monotonic() + 60.0
        while not (ended := processes.ended()):
            assert time.monotonic() < end, processes.log('tf')
            time.sleep(0.05)
    assert ended[0].exit_code != 0
    assert 'tf2_msgs is not installed: apt install ros-$ROS_DISTRO-tf2-msgs' in str(ended[0])


def transform(
    parent: str, child: str, place: tuple[float, ...], stamp: object
) -> TransformStamped:
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.header.stamp = parent, stamp
    p = message.transform.translation
    p.x, p.y, p.z = place
    return message


@pytest.mark.skipif(find_spec('tf2_msgs') is None, reason='tf2_msgs is not in the ROS wheels')
def test_tf_frames_become_tip_poses_in_the_base_frame():
    from tf2_msgs.msg import TFMessage

    context = Context()
    rclpy.init(context=context)
    node = Node('motion_capture', context=context)
    executor = make_executor(context)
    executor.add_node(node)
    latched = listening(depth=1, reliable=True, latched=True)
    moving = node.create_publisher(TFMessage, '/tf', TRANSFORMS)
    static = node.create_publisher(TFMessage, '/tf_static', latched)
    poses: list[PoseStamped] = []
    node.create_subscription(PoseStamped, '/cable_arm/tip/pose', poses.append, MEASUREMENT)
    sent: set[int] = set()
    try:
        now = node.get_clock().now().to_msg()
        static.publish(TFMessage(transforms=[transform('map', 'stand', BASE, now)]))
        with sensor_node() as processes:
            end = time.monotonic() + 60.0
            while len(poses) < 20:
                assert time.monotonic() < end, processes.log('tf')
                stamp = node.get_clock().now().to_msg()
                sent.add(stamp.sec * 10**9 + stamp.nanosec)
                tips = {'middle': np.add(BASE, (0.0, 0.0, 0.1)), 'tip': np.add(BASE, TIP)}
                frames = [transform('map', n, tuple(p), stamp) for n, p in tips.items()]
                moving.publish(TFMessage(transforms=frames))
                until = time.monotonic() + 0.01
                while (left := until - time.monotonic()) > 0.0:
                    executor.spin_once(timeout_sec=left)
    finally:
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()
    for pose in poses:
        p, stamp = pose.pose.position, pose.header.stamp
        assert pose.header.frame_id == 'cable_arm/base'
        assert (p.x, p.y, p.z) == pytest.approx(TIP, abs=1e-9)
        # Both sides use this computer's clock: the stamp is that of a transform.
        stamp_ns = stamp.sec * 10**9 + stamp.nanosec
        assert min(abs(stamp_ns - one) for one in sent) < 2e6
