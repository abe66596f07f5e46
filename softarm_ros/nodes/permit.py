"""
Subscriptions to the supervisor's topics.

`<supervisor>/permit` tells fifty times a second whether motion is allowed. `<supervisor>/touched`
tells once that somebody has started or stopped the arm. Homing needs no permit:
`<supervisor>/stop_homing` stops it, at every stop, and `<supervisor>/halt` tells whether none may
begin, from an emergency stop to a reset.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from std_msgs.msg import Bool, Empty

from softarm_ros.nodes.node_parameters import declare_node_name
from softarm_ros.nodes.qos import EVENTS, LATCHED, PERMIT, newest


def listen_to_permit(node: Node, on_permit: Callable[[bool], None]) -> None:
    """Declare `supervisor`, the node to obey; call `on_permit` with each of its permits."""
    supervisor = declare_node_name(node, 'supervisor', 'supervisor')
    node.create_subscription(
        Bool, f'{supervisor}/permit', lambda message: on_permit(bool(message.data)), newest(PERMIT)
    )


def listen_to_halt(
    node: Node, on_halt: Callable[[bool], None], stop_homing: Callable[[], None]
) -> None:
    """
    Call `on_halt` at an emergency stop and its end, `stop_homing` at every stop.

    Call it after `listen_to_permit`, as `TouchMemory`.
    """
    supervisor = node.get_parameter('supervisor').value
    node.create_subscription(
        Bool, f'{supervisor}/halt', lambda message: on_halt(bool(message.data)), LATCHED
    )
    node.create_subscription(
        Empty, f'{supervisor}/stop_homing', lambda message: stop_homing(), EVENTS
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
