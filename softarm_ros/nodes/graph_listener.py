"""Looks on at the graph of one arm from outside: topics, health of the nodes, service calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from std_srvs.srv import Trigger

from softarm_ros.nodes.conversions import Health
from softarm_ros.nodes.qos import HEARTBEAT, make_executor, newest, set_up_dds
from softarm_ros.nodes.wire import listen, read_status

# Nodes that may live where no arm runs: whoever else does follows what is said or played.
ONLOOKERS = ('player', 'recorder', 'markers')
ListenerT = TypeVar('ListenerT', bound='GraphListener')

OVERDUE_S = 0.2  # by which a look may come late before its process counts as kept from looking


class GraphListener:
    """
    A node beside the graph; use it in a `with` block and call `spin` often.

    Services that will be called are named at once: an answer is lost where the server has not
    found the client by the time it answers (ros2/rmw_fastrtps#842), which a server on a busy
    computer may not have a moment after the client has found it.

    Topics are tapped: not spun but emptied by hand, many messages at a time. That costs a third,
    and only so the time of sending comes along (the events executor refuses callbacks that ask
    for it).

    A node is silent only while this process listens: one that was stopped itself (Ctrl-Z), or kept
    from the processor, has missed what was said.
    """

    def __init__(
        self,
        name: str,
        namespace: str,
        *,
        simulated_time: bool = False,
        services: Sequence[str] = (),
    ) -> None:
        self._closed = False
        self._context = Context()
        set_up_dds()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node(
            name,
            namespace=namespace,
            context=self._context,
            start_parameter_services=False,
            parameter_overrides=[Parameter('use_sim_time', value=simulated_time)],
        )
        self._executor = make_executor(self._context)
        self._executor.add_node(self.node)
        self._taps = Node(f'{name}_taps', namespace=namespace, context=self._context)
        self._tapped: list[tuple[Any, Callable[[bytes], Any], Callable[[Any, int], None]]] = []
        self.health: dict[str, Health] = {}
        self._heard: dict[str, float] = {}  # by `_listening_s`
        self._listened_s, self._looked_at_s = 0.0, time.monotonic()
        self._longest_look_s = OVERDUE_S
        self._clients: dict[str, Any] = {
            service: self.node.create_client(Trigger, service) for service in services
        }
        listen(self.node, read_status, 'heartbeat', self._on_heartbeat, newest(HEARTBEAT))

    def __enter__(self: ListenerT) -> ListenerT:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening; what was collected stays. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._executor.remove_node(self.node)
        self._executor.shutdown()
        self.node.destroy_node()
        self._taps.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def tap(
        self,
        kind: type,
        read: Callable[[bytes], Any],
        topic: str,
        qos: QoSProfile,
        callback: Callable[[Any, int], None],
    ) -> None:
        """Have every message of a topic read, and given to a function with its time of sending."""
        subscription = self._taps.create_subscription(kind, topic, lambda data: None, qos)
        self._tapped.append((subscription, read, callback))

    def spin(self, duration_s: float) -> None:
        """Handle what arrives during a time [s]."""
        # One call for all events: to enter and leave the executor costs as much as most of them.
        self._longest_look_s = duration_s + OVERDUE_S
        self._executor.spin_until_future_complete(Future(), duration_s)
        self._listened_s, self._looked_at_s = self._listening_s(), time.monotonic()
        self.take_in()

    def take_in(self) -> None:
        """Empty the taps."""
        for subscription, read, callback in self._tapped:
            for data, sent in _take_all(subscription):
                callback(read(data), sent)

    def now_s(self) -> float:
        """Return ROS time [s], simulated if the run is."""
        return 1e-9 * float(self.node.get_clock().now().nanoseconds)

    def others(self, names: Sequence[str]) -> list[str]:
        """Return which of the named nodes exist in the namespace, seen or heard."""
        here = self.node.get_namespace()
        found = self.node.get_node_names_and_namespaces()
        present = {name for name, space in found if space == here} | set(self.health)
        return sorted(present & set(names))

    def value(self, node: str, key: str, default: str = '') -> str:
        """Return a value of a node's last heartbeat."""
        health = self.health.get(node)
        return default if health is None else health.values.get(key, default)

    def fresh(self, node: str, within_s: float = 0.5) -> bool:
        """Return whether a node was heard a moment ago."""
        return self.silent_s(node) <= within_s

    def silent_s(self, node: str) -> float:
        """Return for how long [s] this process listened since it heard a node; inf: never."""
        return self._listening_s() - self._heard.get(node, -np.inf)

    def _listening_s(self) -> float:
        """Return for how long [s] this process has listened, without what it was kept from it."""
        look_s = time.monotonic() - self._looked_at_s
        return self._listened_s + min(look_s, self._longest_look_s)

    def call(self, service: str, timeout_s: float = 1.0) -> tuple[bool, str]:
        """Call one of the `services`, each a Trigger; return success and message."""
        client = self._clients[service]
        end = time.monotonic() + timeout_s
        while not client.service_is_ready():
            if time.monotonic() > end:
                return False, 'no such service'
            self.spin(0.02)
        future: Any = client.call_async(Trigger.Request())
        while not future.done() and time.monotonic() < end:
            self.spin(0.02)
        if not future.done():
            client.remove_pending_request(future)
            return False, 'no answer'
        return bool(future.result().success), str(future.result().message)

    def _on_heartbeat(self, health: Health) -> None:
        self.health[health.name] = health
        self._heard[health.name] = self._listening_s()
        self.on_health(health)

    def on_health(self, health: Health) -> None:
        """Take what a node says of itself; for those who keep more than the last."""


def _take_all(subscription: Any) -> list[tuple[bytes, int]]:
    """Return serialised messages, each with the time it was sent [ns]."""
    taken = []
    with subscription.handle:
        while (item := subscription.handle.take_message(subscription.msg_type, True)) is not None:
            data, information = item
            taken.append((data, int(information['source_timestamp'])))
    return taken
