"""Robot description and link transforms of an arm, if robot_state_publisher does not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import String

from softarm_ros.nodes import conversions
from softarm_ros.nodes.qos import LATCHED, TRANSFORMS
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.urdf import build_urdf
from softarm_ros.rigs.urdf_transforms import Linked, LinkTransforms

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # the ROS wheels on PyPI do not contain tf2_msgs
    TFMessage = None


class LinkBroadcaster:
    """
    Publishes `robot_description` and `/tf_static` once, and `/tf` with each `publish`.

    If tf2_msgs is not installed, it logs that once and publishes no transforms.
    """

    def __init__(self, node: Node, rig: Rig, links_per_section: int) -> None:
        self._prefix = rig.frame_prefix
        urdf = build_urdf(rig, links_per_section)
        self._links = LinkTransforms(urdf)
        self._description = node.create_publisher(String, 'robot_description', LATCHED)
        self._description.publish(String(data=urdf))
        if TFMessage is None:
            node.get_logger().info('no /tf: tf2_msgs is not installed')
            return
        self._moving = node.create_publisher(TFMessage, '/tf', TRANSFORMS)
        self._static = node.create_publisher(TFMessage, '/tf_static', LATCHED)
        self._send(self._static, self._links.fixed(), node.get_clock().now().to_msg())

    def watched(self) -> bool:
        """Return whether the transforms have a subscriber."""
        return TFMessage is not None and self._moving.get_subscription_count() > 0

    def publish(self, names: Sequence[str], positions: NDArray[np.float64], stamp: Time) -> None:
        """Publish the transforms of the links at joint positions (m,) [rad, m]."""
        if TFMessage is not None:
            positions_by_name = dict(zip(names, positions.tolist()))
            self._send(self._moving, self._links.moving(positions_by_name), stamp)

    def _send(self, publisher: Any, linked: list[Linked], stamp: Time) -> None:
        publisher.publish(
            TFMessage(
                transforms=[
                    conversions.transform_message(
                        transform, stamp, self._prefix + parent, self._prefix + child
                    )
                    for parent, child, transform in linked
                ]
            )
        )
