"""Publishes what the pose sensor of a simulated arm has measured."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseArray, PoseStamped
from rclpy.lifecycle import LifecycleNode

from softarm_ros.nodes import conversions
from softarm_ros.nodes.qos import MEASUREMENT
from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.rigs.schema import Rig


class PosePublisher:
    """Tip and section tips of a plant, stamped with the time they were measured at."""

    def __init__(self, node: LifecycleNode, rig: Rig) -> None:
        self._frame = rig.base_frame
        self._tip = node.create_lifecycle_publisher(
            PoseStamped, rig.feedback.pose_topic, MEASUREMENT
        )
        self._sections = node.create_lifecycle_publisher(PoseArray, 'sections/poses', MEASUREMENT)
        self.count = 0

    def publish(self, frames: Sequence[PoseMeasurement], origin_s: float) -> list[Time]:
        """Publish frames; return their stamps. `origin_s`: ROS time [s] of the plant's time 0."""
        stamps = []
        for frame in frames:
            stamp = conversions.time_message(round((origin_s + frame.stamp_s) * 1e9))
            tips, frame_id = frame.section_tips, frame.frame_id or self._frame
            # Sections first: a tip that has to wait for its sections delays the loop.
            self._sections.publish(conversions.pose_array_message(tips, stamp, frame_id))
            self._tip.publish(conversions.pose_message(tips[-1], stamp, frame_id))
            stamps.append(stamp)
        self.count += len(stamps)
        return stamps
