"""The supervisor's word that motion is allowed: `<supervisor>/permit`, fifty times a second."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from std_msgs.msg import Bool

from softarm_ros.nodes.node_base import declare
from softarm_ros.nodes.qos import PERMIT, newest


def listen_to_permit(node: Node, on_permit: Callable[[bool], None]) -> None:
    """Declare `supervisor`, the node to obey; call `on_permit` with each of its words."""
    supervisor = declare(node, 'supervisor', 'supervisor', 'name of the supervisor node')
    node.create_subscription(
        Bool, f'{supervisor}/permit', lambda message: on_permit(bool(message.data)), newest(PERMIT)
    )
