"""A node sends no heartbeat before its executor spins; afterwards it reports its lateness."""

import time

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from softarm_ros.nodes.conversions import health_of
from softarm_ros.nodes.heartbeat import Heartbeat
from softarm_ros.nodes.qos import HEARTBEAT, make_executor, newest

pytestmark = pytest.mark.ros


class Turning:
    """A node and its executor."""

    def __init__(self, name, context):
        self.node = Node(name, context=context, namespace='/heartbeat_test')
        self.executor = make_executor(context)
        self.executor.add_node(self.node)

    def until(self, condition, timeout=10.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end
            self.executor.spin_once(timeout_sec=0.02)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()


def test_heartbeat_is_not_sent_before_the_executor_spins(context):
    listener, speaker = Turning('listener', context), Turning('speaker', context)
    heard = []
    listener.node.create_subscription(
        DiagnosticStatus, 'heartbeat', lambda m: heard.append(health_of(m)), newest(HEARTBEAT)
    )
    heartbeat = Heartbeat(speaker.node, 'arm')
    publisher = speaker.node.create_publisher(DiagnosticStatus, 'heartbeat', HEARTBEAT)
    listener.until(lambda: publisher.get_subscription_count() == 1)
    heartbeat.ok('loading')
    heartbeat.error('something')
    # The connection works: a heartbeat that was sent would arrive before this.
    publisher.publish(DiagnosticStatus(name='marker'))
    listener.until(lambda: any(h.name == 'marker' for h in heard))
    assert [h.name for h in heard] == ['marker']

    deadline = time.monotonic() + 10.0
    while not any(h.name == 'speaker' for h in heard) and time.monotonic() < deadline:
        speaker.executor.spin_once(timeout_sec=0.01)
        listener.executor.spin_once(timeout_sec=0.01)
    said = next(h for h in heard if h.name == 'speaker')
    assert said.message == 'something'  # the newer of the two messages
    heartbeat.late(0.25)
    heartbeat.publish()
    listener.until(lambda: any(h.values.get('late_ms') == '250' for h in heard))
    listener.close()
    speaker.close()


def test_paused_listener_does_not_take_other_nodes_for_silent(monkeypatch):
    from types import SimpleNamespace

    from softarm_ros.nodes import graph_listener
    from softarm_ros.nodes.conversions import OK, Health

    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    with graph_listener.GraphListener('listener', '/heartbeat_test') as listener:
        monkeypatch.setattr(graph_listener, 'time', clock)
        listener.spin(0.01)
        assert not listener.fresh('supervisor', 1e6)
        listener._on_heartbeat(Health('supervisor', OK, 'running', {}))
        now[0] += 60.0  # this process was stopped
        listener.spin(0.01)
        assert listener.fresh('supervisor', 0.5)
        for _ in range(11):
            now[0] += 0.05
            listener.spin(0.05)
        assert not listener.fresh('supervisor', 0.5)
