"""Publishes the measured poses of a simulated arm, and the true position of its tip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped
from rclpy.lifecycle import LifecycleNode

from softarm_ros.geometry.poses import rows_from_transforms
from softarm_ros.nodes.qos import MEASUREMENT
from softarm_ros.nodes.wire import pose_bytes, poses_bytes
from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.plant.plant import Plant
from softarm_ros.rigs.schema import Rig

# The true tip position, for the evaluation of a run. No node of the loop may subscribe to it.
TRUE_TIP_TOPIC = 'plant/tip'
_NOT_TURNED = (0.0, 0.0, 0.0, 1.0)


class PosePublisher:
    """Publishes tip and section tips of a plant, stamped with the time of measurement."""

    def __init__(self, node: LifecycleNode, rig: Rig) -> None:
        self._frame = rig.base_frame
        self._tip = node.create_lifecycle_publisher(
            PoseStamped, rig.feedback.pose_topic, MEASUREMENT
        )
        self._sections = node.create_lifecycle_publisher(PoseArray, 'sections/poses', MEASUREMENT)
        self.count = 0

    def publish(self, frames: Sequence[PoseMeasurement], origin_s: float) -> list[int]:
        """Publish poses; return stamps [ns]. `origin_s` is ROS time [s] at the plant's time 0."""
        stamps = []
        for frame in frames:
            stamp_ns = round((origin_s + frame.stamp_s) * 1e9)
            rows = rows_from_transforms(frame.section_tips)
            frame_id = frame.frame_id or self._frame
            # Sections first: a tip that must wait for its sections delays the loop.
            self._sections.publish(poses_bytes(stamp_ns, frame_id, rows))
            self._tip.publish(pose_bytes(stamp_ns, frame_id, rows[-1]))
            stamps.append(stamp_ns)
        self.count += len(stamps)
        return stamps


class TrueTipPublisher:
    """Publishes the true tip position of a plant at every exposure, without orientation."""

    def __init__(self, node: LifecycleNode, rig: Rig) -> None:
        self._frame = rig.base_frame
        self._tip = node.create_lifecycle_publisher(PoseStamped, TRUE_TIP_TOPIC, MEASUREMENT)

    def publish(self, plant: Plant, origin_s: float) -> None:
        """Publish new true tips. `origin_s` is the ROS time [s] at the plant's time 0."""
        for time_s, position in plant.poll_true_tips():
            row = np.array([*position, *_NOT_TURNED])
            self._tip.publish(pose_bytes(round((origin_s + time_s) * 1e9), self._frame, row))
