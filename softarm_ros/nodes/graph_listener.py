"""Observes the graph of one arm from outside: topics, health of the nodes, service calls."""

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
from std_srvs.srv import Trigger

from softarm_ros.nodes.conversions import Health
from softarm_ros.nodes.qos import (
    HEARTBEAT,
    check_domain,
    handle_events,
    make_executor,
    newest,
    set_up_dds,
)
from softarm_ros.nodes.wire import listen, read_status

# Nodes that may run without an arm; every other node follows live or played messages.
ONLOOKERS = ('player', 'recorder', 'markers')
ListenerT = TypeVar('ListenerT', bound='GraphListener')

OVERDUE_S = 0.2  # a look later than this counts as a pause of this process, not of a node


class GraphListener:
    """
    A node beside the graph; use it in a `with` block and call `spin` often.

    Name the services to call at construction. An answer is lost if the server has not discovered
    the client when it answers (ros2/rmw_fastrtps#842); on a busy computer the server may discover
    the client later than the client discovers the server.

    Topics are tapped: their queues are emptied by hand, many messages at a time, not by the
    executor. That costs a third as much, and gives the time of sending, which callbacks of the
    events executor cannot get.

    Silence of a node is counted only while this process listens: a process that was stopped
    (Ctrl-Z) or had no processor has missed heartbeats.
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
        check_domain()
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
        # Nobody spins this node: it must not offer services, for whose answers `ros2 param list`
        # would wait.
        self._taps = Node(
            f'{name}_taps',
            namespace=namespace,
            context=self._context,
            start_parameter_services=False,
            parameter_overrides=[Parameter('start_type_description_service', value=False)],
        )
        self._tapped: list[tuple[Any, Callable[[bytes], Any], Callable[[Any, int], None]]] = []
        self.health: dict[str, Health] = {}
        self._heard: dict[str, float] = {}  # last heartbeat of each node, on `_listening_s`
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
        """Stop listening; the collected data stay. A second call does nothing."""
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
        """Call a function with each message of a topic, after `read`, and its send time [ns]."""
        subscription = self._taps.create_subscription(kind, topic, lambda data: None, qos)
        self._tapped.append((subscription, read, callback))

    def spin(self, duration_s: float) -> None:
        """Handle messages and events for a time [s]."""
        self._longest_look_s = duration_s + OVERDUE_S
        handle_events(self._executor, duration_s)
        self._listened_s, self._looked_at_s = self._listening_s(), time.monotonic()
        self.take_in()

    def take_in(self) -> None:
        """Empty the taps."""
        for subscription, read, callback in self._tapped:
            for data, sent in _take_all(subscription):
                callback(read(data), sent)

    def now_s(self) -> float:
        """Return ROS time [s]; in a simulated run, simulated time."""
        return 1e-9 * float(self.node.get_clock().now().nanoseconds)

    def others(self, names: Sequence[str]) -> list[str]:
        """Return which of the named nodes exist in the namespace, in the graph or by heartbeat."""
        here = self.node.get_namespace()
        found = self.node.get_node_names_and_namespaces()
        present = {name for name, space in found if space == here} | set(self.health)
        return sorted(present & set(names))

    def value(self, node: str, key: str, default: str = '') -> str:
        """Return a value of a node's last heartbeat."""
        health = self.health.get(node)
        return default if health is None else health.values.get(key, default)

    def fresh(self, node: str, within_s: float = 0.5) -> bool:
        """Return whether a node's last heartbeat is at most `within_s` [s] old."""
        return self.silent_s(node) <= within_s

    def silent_s(self, node: str) -> float:
        """Return the listening time [s] since a node's last heartbeat; inf if there was none."""
        return self._listening_s() - self._heard.get(node, -np.inf)

    def _listening_s(self) -> float:
        """Return how long [s] this process has listened, excluding its own pauses."""
        look_s = time.monotonic() - self._looked_at_s
        return self._listened_s + min(look_s, self._longest_look_s)

    def call(self, service: str, timeout_s: float = 1.0) -> tuple[bool, str]:
        """Call one of the `services`, which are Triggers; return success and message."""
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
        """Handle a heartbeat; for subclasses that keep more than the last one."""


def _take_all(subscription: Any) -> list[tuple[bytes, int]]:
    """Return the queued serialised messages, each with its time of sending [ns]."""
    taken = []
    with subscription.handle:
        while (item := subscription.handle.take_message(subscription.msg_type, True)) is not None:
            data, information = item
            taken.append((data, int(information['source_timestamp'])))
    return taken
