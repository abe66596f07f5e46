"""The true tip reaches the record of a run over its own topic, and no other listener."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from geometry_msgs.msg import PoseStamped
from rclpy.lifecycle import LifecycleNode

from softarm_ros.nodes.pose_publisher import TRUE_TIP_TOPIC, PosePublisher, TrueTipPublisher
from softarm_ros.nodes.qos import VISUAL, set_up_dds
from softarm_ros.nodes.run_monitor import RunMonitor
from softarm_ros.nodes.wire import pose_bytes
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

pytestmark = [pytest.mark.ros, pytest.mark.packets]
RIG = load_rig('cable_arm_single', ['plant.pose_sensor.frame_turn_deg=[2.0, 0.0, 0.0]'])
WAIT_S = 20.0


@pytest.fixture
def node():
    set_up_dds()
    rclpy.init()
    made = LifecycleNode('plant', namespace=f'/{RIG.name}')
    yield made
    made.destroy_node()
    rclpy.try_shutdown()


def wait_until(monitor, holds):
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, 'did not come about'
        monitor.spin(0.02)


def test_record_over_topics_contains_true_and_measured_tips(node):
    plant = build_plant(RIG, 0)
    poses, truth = PosePublisher(node, RIG), TrueTipPublisher(node, RIG)
    references = node.create_publisher(PoseStamped, 'reference/pose', VISUAL)
    names = RIG.model().configuration_names
    with RunMonitor(
        f'/{RIG.name}', names, RIG.actuator_names, pose_topic='tip/pose', simulated_time=False
    ) as monitor:
        node.trigger_configure()
        node.trigger_activate()
        topic = node.resolve_topic_name(TRUE_TIP_TOPIC)
        for name in (topic, node.resolve_topic_name('tip/pose')):
            wait_until(monitor, lambda n=name: node.count_subscribers(n) > 0)
        wait_until(monitor, lambda: references.get_subscription_count() > 0)

        def listeners():
            return [info.node_name for info in node.get_subscriptions_info_by_topic(topic)]

        wait_until(monitor, lambda: listeners() == ['run_monitor_taps'])
        origin_s = 1e-9 * node.get_clock().now().nanoseconds

        def one_period():
            plant.step(np.full(3, 2e-3), 0.02)
            for stamp_ns in poses.publish(plant.poll_poses(), origin_s):
                references.publish(pose_bytes(stamp_ns, 'base', np.zeros(7)))
            truth.publish(plant, origin_s)

        # The monitor's record begins with the tracking phase; no tracker reports one here.
        monitor._phases.append((origin_s, 'track', 0))

        def enough():
            one_period()
            samples = monitor.samples()
            known = np.isfinite(samples.tip) & np.isfinite(samples.true_tip)
            return np.count_nonzero(known.all(axis=1)) >= 50

        wait_until(monitor, enough)
        samples = monitor.samples()
    rows = np.isfinite(samples.tip).all(axis=1) & np.isfinite(samples.true_tip).all(axis=1)
    apart = np.linalg.norm(samples.tip[rows] - samples.true_tip[rows], axis=1)
    turned = np.deg2rad(2.0) * np.hypot(samples.true_tip[rows, 1], samples.true_tip[rows, 2])
    assert apart.mean() == pytest.approx(turned.mean(), rel=0.05)
    assert samples.true_tip_known
