"""`Turns` alternates between events and the work of nodes, so that neither waits for long."""

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from rclpy.node import Node
from std_msgs.msg import Empty

from softarm_ros.nodes.qos import make_executor
from softarm_ros.nodes.self_paced import SelfPaced, Turns

pytestmark = pytest.mark.ros
CALL_S = 1e-5  # duration of an event


class Ticking(SelfPaced):
    """Works once a period, on a clock moved by hand."""

    def __init__(self, clock, period_s=0.01):
        self._clock, self._period_s, self.worked = clock, period_s, []

    def work(self):
        self.worked.append(self._clock.now)
        self.due = self._clock.now + self._period_s


class ByHand:
    """A clock, and an executor whose timed events and waits advance it."""

    def __init__(self, events=()):
        self.now, self.calls = 100.0, 0
        self._events = sorted(events, key=lambda event: event[0])

    def spin_once(self, timeout_sec):
        self.calls += 1
        end = self.now + timeout_sec
        if not self._events or self._events[0][0] > end:
            self.now = end
            return
        at, event = self._events.pop(0)
        self.now = max(self.now, at) + CALL_S
        event()


def run(turns, clock, until):
    while clock.now < until:
        turns.take()


def turns_of(clock, *nodes):
    return Turns(clock, nodes, now_s=lambda: clock.now)


def test_work_is_done_when_due_without_wake_ups_in_between():
    clock = ByHand()
    node = Ticking(clock)
    turns = turns_of(clock, node)
    run(turns, clock, 100.995)
    assert node.worked == pytest.approx([100.001 + 0.01 * i for i in range(101)], abs=1e-9)
    assert clock.calls == len(node.worked)


def test_work_that_an_event_makes_due_is_done_within_a_millisecond():
    clock = ByHand()
    node = Ticking(clock, period_s=5.0)
    turns = turns_of(clock, node)
    run(turns, clock, 100.1)
    clock._events = [(100.5, lambda: setattr(node, 'due', 0.0))]
    run(turns, clock, 100.6)
    assert len(node.worked) == 2
    assert node.worked[1] == pytest.approx(100.5, abs=1.2e-3)


def test_work_that_events_postpone_causes_no_wake_up():
    clock = ByHand()
    node = Ticking(clock, period_s=0.013)
    turns = turns_of(clock, node)
    run(turns, clock, 100.001)
    poses = [100.01 + 0.01 * i for i in range(100)]
    clock._events = [(at, lambda: setattr(node, 'due', clock.now + 0.013)) for at in poses]
    clock.calls = 0
    run(turns, clock, 100.999)
    assert len(node.worked) == 2  # before the first pose, and after the last
    assert node.worked[1] == pytest.approx(poses[-1] + 0.013, abs=1e-4)
    assert clock.calls <= len(poses) + 1


def test_overdue_work_leaves_a_millisecond_per_turn_for_events():
    seen = []
    clock = ByHand([(100.0 + 1e-4 * i, lambda: seen.append(clock.now)) for i in range(1000)])

    class Slow(Ticking):
        def work(self):
            clock.now += 0.004
            super().work()
            self.due = 0.0

    node = Slow(clock)
    turns = turns_of(clock, node)
    run(turns, clock, 100.05)
    assert len(node.worked) in (10, 11)
    assert len(seen) > 400  # all that came so far


def test_turn_without_work_takes_a_fifth_of_a_second():
    """Signals are handled between turns."""
    clock = ByHand()
    turns = turns_of(clock)
    for _ in range(5):
        turns.take()
    assert clock.now == pytest.approx(101.0)


def test_node_executor_returns_for_work_that_a_message_makes_due(context):
    class Listener(SelfPaced, Node):
        def __init__(self):
            super().__init__('listener', context=context)
            self.heard = self.worked = 0
            self.due = float('inf')
            self.create_subscription(Empty, 'said', self.on_said, 10)

        def on_said(self, message):
            self.heard += 1
            self.due = 0.0

        def work(self):
            self.worked += 1
            self.due = float('inf')

    listener, speaker = Listener(), Node('speaker', context=context)
    publisher = speaker.create_publisher(Empty, 'said', 10)
    executor = make_executor(context)
    executor.add_node(listener)
    turns = Turns(executor, [listener])
    for _ in range(100):  # 20 s
        if publisher.get_subscription_count() == 1:
            break
        turns.take()
    assert publisher.get_subscription_count() == 1
    for count in (1, 2, 3):
        publisher.publish(Empty())
        for _ in range(100):
            if listener.worked == count:
                break
            turns.take()
        assert (listener.heard, listener.worked) == (count, count)
    executor.remove_node(listener)
    executor.shutdown()
    listener.destroy_node()
    speaker.destroy_node()
