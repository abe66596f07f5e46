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


def listen_to_stop_homing(node: Node, stop_homing: Callable[[], None]) -> None:
    """Call `stop_homing` at every stop. Call this after `listen_to_permit`, as `RequestMemory`."""
    supervisor = node.get_parameter('supervisor').value
    node.create_subscription(
        Empty, f'{supervisor}/stop_homing', lambda message: stop_homing(), EVENTS
    )


class RequestMemory:
    """
    Remembers for a restarted supervisor what people asked of the one before.

    These are whether somebody has started or stopped the arm, and an emergency stop that nobody
    has reset. Construct it after `listen_to_permit`, which declares the parameter `supervisor`.

    Attributes
    ----------
    on_halt : callable
        Called with True at an emergency stop, and with False at its end.

    """

    def __init__(self, node: Node) -> None:
        self._touched = self._halted = False
        self.on_halt: Callable[[bool], None] = lambda halted: None
        supervisor = node.get_parameter('supervisor').value
        node.create_subscription(Bool, f'{supervisor}/touched', self._on_touched, LATCHED)
        node.create_subscription(Bool, f'{supervisor}/halt', self._on_halt, LATCHED)

    def values(self) -> dict[str, str]:
        """Return the memory as values of the heartbeat."""
        return {'touched': str(self._touched).lower(), 'halted': str(self._halted).lower()}

    def _on_touched(self, message: Bool) -> None:
        self._touched = self._touched or bool(message.data)

    def _on_halt(self, message: Bool) -> None:
        self._halted = bool(message.data)
        self.on_halt(self._halted)
