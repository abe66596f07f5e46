"""Quality of service of topics, the transport below, and differences of ROS distributions."""

from __future__ import annotations

import os
from typing import Any

from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from softarm_ros.share_folder import share_folder

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

__all__ = [
    'CYCLES',
    'DIAGNOSTICS',
    'GOALS',
    'HEARTBEAT',
    'LATCHED',
    'MEASUREMENT',
    'PERMIT',
    'PER_CHAMBER',
    'REPORTS',
    'TRANSFORMS',
    'VISUAL',
    'PublisherEventCallbacks',
    'SubscriptionEventCallbacks',
    'command_qos',
    'listening',
    'make_executor',
    'newest',
    'prefer_deep_sockets',
    'set_up_dds',
]


_TRANSPORTS, _UDP = 'FASTDDS_BUILTIN_TRANSPORTS', 'UDPv4'
_PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')  # from 3.0, before


def _profile(depth: int, *, reliable: bool, latched: bool = False, **options: Any) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        **options,
    )


MEASUREMENT = _profile(1, reliable=False)
LATCHED = _profile(1, reliable=True, latched=True)
VISUAL = _profile(1, reliable=True)
# One message of every chamber at a time: none may push out another's.
PER_CHAMBER = _profile(64, reliable=False)
# All nodes of an arm share the topic: room for one message of each and some.
HEARTBEAT = _profile(20, reliable=True)
# The newest word counts; one that is late must not be followed by older ones.
PERMIT = _profile(1, reliable=True)
# Of every cycle, for who looks on: none may be missing.
CYCLES = _profile(100, reliable=True)
DIAGNOSTICS = _profile(10, reliable=True)
# Goals that people and programs send: none may be lost, though only the newest is followed.
GOALS = _profile(10, reliable=True)
REPORTS = _profile(50, reliable=True)
TRANSFORMS = _profile(100, reliable=True)  # as tf2 has them


def command_qos(deadline_s: float) -> QoSProfile:
    """Return the profile of commands: keep-last 1, reliable, one at least every `deadline_s`."""
    return _profile(1, reliable=True, deadline=Duration(nanoseconds=round(deadline_s * 1e9)))


def listening(*, depth: int, reliable: bool = False, latched: bool = False) -> QoSProfile:
    """Return a profile for observers, who must not miss a message: a queue, no deadline asked."""
    return _profile(depth, reliable=reliable, latched=latched)


def set_up_dds() -> None:
    """
    Choose for Fast DDS what the user has not chosen; before `rclpy.init`.

    No shared memory: while that transport opens the ports of new participants, nothing is
    delivered for a third of a second (its health check), which stops an arm that is watched more
    closely than that. The messages of an arm are small; over UDP they take as long.

    No look-up of types: of each topic that others use and this process does not know, Fast DDS
    asks how its messages are built, which no node needs, in a thread that now and then crashed
    the process while it started (3.2.3, a mutex of nobody).

    An announcement every half second instead of every three: a new participant announces itself
    before it listens, so that half the time it misses the answers and finds nobody until they
    announce themselves again.
    """
    os.environ.setdefault(_TRANSPORTS, _UDP)
    if not any(name in os.environ for name in _PROFILES):
        profile = 'config/fastdds/nodes.xml'
        os.environ[_PROFILES[0]] = str(share_folder(profile) / profile)


def prefer_deep_sockets() -> None:
    """
    Let the system keep what arrives while this process waits for its turn; before `rclpy.init`.

    Of the usual 0.2 MB a recorder that is kept from its work for a tenth of a second loses what
    comes next, for nobody repeats measurements. More than `net.core.rmem_max` it does not get.
    """
    if os.environ.get(_TRANSPORTS, _UDP) == _UDP:
        os.environ[_TRANSPORTS] = f'{_UDP}?sockets_size=2MB'


def newest(offered: QoSProfile) -> QoSProfile:
    """
    Return the profile of a listener to whom only what comes now matters.

    It does not ask for what was lost. A reliable listener is given nothing newer until the lost
    message has been sent again, which takes Fast DDS up to three seconds: a node that was kept
    from its work for half a second then takes all others for silent.
    """
    profile = _profile(offered.depth, reliable=False)
    profile.deadline = offered.deadline
    return profile


def make_executor(context: Context | None = None) -> Executor:
    """
    Return the cheapest executor there is, for the default context or another.

    The events executor needs a third of the processor time of the default one; Humble has none.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    executor: Executor = EventsExecutor(context=context)
    return executor
