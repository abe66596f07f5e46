"""Passes single markers along the arm from their topic to an estimator that can use them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager

from rclpy.node import Node

from softarm_ros.nodes.qos import MEASUREMENT, newest
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.points_along import markers_counted, points_along
from softarm_ros.runtime.pose_intake import PoseIntake


def listen_to_points(
    node: Node,
    rig: Rig,
    intake: PoseIntake,
    now_s: Callable[[], float],
    refusing: Callable[[float], AbstractContextManager[None]],
) -> None:
    """
    Pass `sensors/points` to an intake, if a sensor sees markers along the arm.

    The context manager `refusing` catches what an estimator of another package raises.
    """
    along, counted = points_along(rig), markers_counted(rig)
    if not along or not intake.estimator.predicts:
        return
    from sensor_msgs.msg import PointCloud2  # no other part of this process needs this message

    from softarm_ros.nodes.marker_cloud import sighting_of_cloud

    def take(cloud: PointCloud2) -> None:
        with contextlib.suppress(ValueError):  # a cloud of another sensor, or cut off
            seen = sighting_of_cloud(cloud, counted)
            with refusing(now_s()):
                intake.on_points(now_s(), seen, along)

    node.create_subscription(PointCloud2, 'sensors/points', take, newest(MEASUREMENT))
