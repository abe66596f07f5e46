"""Plays a bag of an arm: publishes its messages again, with /clock, at a chosen speed."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from softarm_ros.nodes import conversions
from softarm_ros.nodes.bag_messages import BagMessage, messages_of, topics_of
from softarm_ros.nodes.graph_listener import ONLOOKERS
from softarm_ros.nodes.node_errors import (
    NodeFailedError,
    NodeInterruptedError,
    RefusedError,
)
from softarm_ros.nodes.node_parameters import declare, declare_rig
from softarm_ros.nodes.other_nodes import other_clocks, publishers_of, refuse_twin
from softarm_ros.nodes.qos import VISUAL
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.self_paced import SelfPaced
from softarm_ros.runtime.run_files import ros_domain

# Topics of each node; they are not played if the node itself runs beside the bag.
SAID_BY = {
    'tracker': (
        'configuration/command',
        'configuration/state',
        'reference/pose',
        'reference/path',
        'gripper/command',
        'goal/status',
        'state/tip',
        'state/twist',
        'tracker/cycle',
    ),
    'inverse_kinematics': ('actuators/command',),
    'supervisor': ('supervisor/permit',),
    'markers': (
        'markers',
        'joint_states',
        'tip/path',
        'robot_description',
        '/tf',
        '/tf_static',
    ),
}
LOOK_S = 0.2
# Topics that all arms share, and the names, ARM/..., of those that a message is about.
OF_ALL_ARMS: dict[str, Callable[[Any], list[str]]] = {
    '/diagnostics': lambda sent: [status.name for status in sent.status],
    '/tf': lambda sent: [frame.child_frame_id for frame in sent.transforms],
    '/tf_static': lambda sent: [frame.child_frame_id for frame in sent.transforms],
}
NEVER = ('/clock', '/rosout', '/parameter_events')
CLOCK_S = 0.005  # recorded time between two messages on /clock
_DEPTH = 10
_BATCH_S = 0.02  # wall clock; after that, events are handled


class PlayerNode(SelfPaced, Node):
    """
    Publishes the messages of a bag at the pace they were received, times `rate`.

    It refuses to play beside an arm, whose drives would follow the recorded commands with the
    recorded permits, and ends when an arm appears.

    It begins once all nodes in `live` are discovered, and ends when `lost` returns why one of them
    has ended. The recorded measurements do not respond to
    the present commands of a live tracker: the two drift apart, unless every cycle is the same
    (`replay_direct`).
    """

    def __init__(self, lost: Callable[[], str] = str, **options: Any) -> None:
        super().__init__('player', **options)
        self._lost = lost
        refuse_twin(self)
        rig = declare_rig(self)
        bag = declare(self, 'bag', '', 'folder of the bag')
        self._rate = declare(self, 'rate', 1.0, 'speed', low=0.01, high=100.0)
        live = declare(self, 'live', [''], 'nodes that run beside the bag')
        if not bag:
            raise RefusedError('parameter bag is empty; expected the folder of a bag')
        self._live = [name for name in live if name]
        for name in self._live:
            if name not in SAID_BY:
                raise RefusedError(f'{name!r} cannot run beside a bag; {", ".join(SAID_BY)} can')
        self._prefix = f'/{rig.name}/'
        self._look_s = 0.0
        self._others: set[str] = set()
        if beside := self._beside():
            raise RefusedError(beside)
        silent = {topic for name in self._live for topic in SAID_BY[name]}
        self._silent = {t if t.startswith('/') else self._prefix + t for t in silent} | set(NEVER)
        self._outputs = self._announced(Path(bag))
        self._time = self.create_publisher(Clock, '/clock', VISUAL)
        self._pose_topic = (
            rig.feedback.pose_topic
            if rig.feedback.pose_topic.startswith('/')
            else self._prefix + rig.feedback.pose_topic
        )
        self._messages = messages_of(Path(bag))
        self._next = next(self._messages, None)
        if self._next is None:
            raise RefusedError(f'{bag} has no messages')
        self._first_ns = self._clock_ns = self._next.received_ns
        self._began: float | None = None
        self._over = False  # played to the end, or failed
        self.played = 0

    def work(self) -> None:
        """Publish the messages that are due, or wait for the live nodes."""
        now = time.monotonic()
        if now >= self._look_s:
            self._look_s = now + LOOK_S
            self._others = self._other_arms()
            if why := self._lost() or self._beside():
                self._over = True
                raise NodeFailedError(why)
        if self._began is None:
            self._tell_time(self._first_ns)
            self.due = now + 0.02
            if self._heard():
                self._began = now
            return
        due_ns = self._first_ns + round((now - self._began) * self._rate * 1e9)
        while self._next is not None and self._next.received_ns <= due_ns:
            if self._next.received_ns - self._clock_ns >= CLOCK_S * 1e9:
                self._tell_time(self._next.received_ns)
            self._play(self._next)
            self._next = next(self._messages, None)
            if time.monotonic() - now > _BATCH_S:
                break
        if self._next is None:
            self._over = True
            signal.raise_signal(signal.SIGINT)  # end in order, as with Ctrl-C
            self.due = now + 1.0
            return
        ahead = 1e-9 * (self._next.received_ns - self._first_ns) / self._rate
        self.due = self._began + ahead

    def close(self) -> None:
        """Log how many messages were played; raise NodeInterruptedError if some were not."""
        self.get_logger().info(f'{self.played} messages played')
        if not self._over:
            raise NodeInterruptedError('interrupted before the end of the bag')

    def _beside(self) -> str:
        """Return an error if an arm would follow played commands, or if /clock has two sources."""
        heard = publishers_of(self, self._prefix + 'heartbeat')
        others = sorted({name for _, name in heard} - {*ONLOOKERS, *self._live})
        if not others:
            return other_clocks(self)
        return (
            f'rig {self._prefix.strip("/")} runs in ROS domain '
            f'{ros_domain()} (nodes {", ".join(others)}) and would follow '
            'the recorded commands; end it, or replay in another ROS_DOMAIN_ID'
        )

    def _other_arms(self) -> set[str]:
        """Return the names of other arms that run now."""
        topics = (topic.split('/') for topic, _ in self.get_topic_names_and_types())
        names = {parts[1] for parts in topics if len(parts) == 3 and parts[2] == 'heartbeat'}
        names.discard(self._prefix.strip('/'))
        return {name for name in names if publishers_of(self, f'/{name}/heartbeat')}

    def _announced(self, bag: Path) -> dict[str, Any]:
        publishers = {}
        for topic, (type_name, profiles) in topics_of(bag).items():
            package, _, name = type_name.partition('/msg/')
            try:
                kind = getattr(importlib.import_module(f'{package}.msg'), name)
            except (ImportError, AttributeError):
                self.get_logger().warning(f'{topic} is not played: {type_name} is not installed')
                continue
            if topic not in self._silent:
                publishers[topic] = self.create_publisher(kind, topic, _profile(profiles))
        return publishers

    def _heard(self) -> bool:
        """Return whether the live nodes listen; until then, they are still being built."""
        there = {name for _, name in publishers_of(self, self._prefix + 'heartbeat')}
        poses = self.get_subscriptions_info_by_topic(self._pose_topic)
        return there >= set(self._live) and (
            'tracker' not in self._live or 'tracker' in {info.node_name for info in poses}
        )

    def _tell_time(self, nanoseconds: int) -> None:
        self._clock_ns = nanoseconds
        self._time.publish(Clock(clock=conversions.time_message(nanoseconds)))

    def _play(self, message: BagMessage) -> None:
        publisher = self._outputs.get(message.topic)
        if publisher is None or self._of_live_node(message):
            return
        publisher.publish(message.data)
        self.played += 1

    def _of_live_node(self, message: BagMessage) -> bool:
        """Return whether a live node, or one of another live arm, sent a message."""
        if self._others and message.topic in OF_ALL_ARMS:
            sent = message.decoded()
            names = OF_ALL_ARMS[message.topic](sent)
            if names and {name.partition('/')[0] for name in names} <= self._others:
                return True
        if not self._live:
            return False
        if message.topic == self._prefix + 'heartbeat':
            return message.decoded().name in self._live
        if message.topic == '/diagnostics':  # each node sends its own, named arm/node
            arm = self._prefix.strip('/')
            said_by = {status.name for status in message.decoded().status}
            return said_by <= {f'{arm}/{name}' for name in self._live}
        return False


def _profile(offered: Any) -> QoSProfile:
    """Return the QoS profile of the recorded publisher."""
    profile = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=_DEPTH)
    if offered:
        first = offered[0]
        profile.reliability = ReliabilityPolicy(first.reliability.value)
        profile.durability = DurabilityPolicy(first.durability.value)
        deadline = first.deadline.sec * 1_000_000_000 + first.deadline.nsec
        if 0 < deadline < 2**62:
            profile.deadline = Duration(nanoseconds=deadline)
    return profile


def main(args: list[str] | None = None, lost: Callable[[], str] = str) -> int:
    """Run the node; `lost` as of `PlayerNode`."""
    return run_node(partial(PlayerNode, lost), 'player', args)


if __name__ == '__main__':
    sys.exit(main())
