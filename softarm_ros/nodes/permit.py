"""
Subscriptions to the supervisor's topics.

`<supervisor>/permit` tells fifty times a second whether motion is allowed. `<supervisor>/touched`
tells once that somebody has started or stopped the arm. `<supervisor>/halt` stops homing, which
needs no permit: until a reset after an emergency stop, and for a moment at a stop.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from std_msgs.msg import Bool

from softarm_ros.nodes.node_parameters import declare
from softarm_ros.nodes.qos import HALT, LATCHED, PERMIT, newest


def listen_to_permit(node: Node, on_permit: Callable[[bool], None]) -> None:
    """Declare `supervisor`, the node to obey; call `on_permit` with each of its permits."""
    supervisor = declare(node, 'supervisor', 'supervisor', 'name of the supervisor node')
    node.create_subscription(
        Bool, f'{supervisor}/permit', lambda message: on_permit(bool(message.data)), newest(PERMIT)
    )


def listen_to_halt(node: Node, on_halt: Callable[[bool], None]) -> None:
    """Call `on_halt` at each halt, and at its end; after `listen_to_permit`, as `TouchMemory`."""
    supervisor = node.get_parameter('supervisor').value
    node.create_subscription(
        Bool, f'{supervisor}/halt', lambda message: on_halt(bool(message.data)), HALT
    )


class TouchMemory:
    """
    Remembers whether somebody has started or stopped the arm, for a restarted supervisor.

    Construct it after `listen_to_permit`, which declares the parameter `supervisor`.
    """

    def __init__(self, node: Node) -> None:
        self._touched = False
        supervisor = node.get_parameter('supervisor').value
        node.create_subscription(Bool, f'{supervisor}/touched', self._on_touched, LATCHED)

    def values(self) -> dict[str, str]:
        """Return the memory as a value of the heartbeat."""
        return {'touched': str(self._touched).lower()}

    def _on_touched(self, message: Bool) -> None:
        self._touched = self._touched or bool(message.data)
