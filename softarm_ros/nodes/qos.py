"""QoS profiles of topics, settings of the DDS transport, and differences of ROS distributions."""

from __future__ import annotations

import os
import time
from typing import Any

from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.rigs.schema import Rig
from softarm_ros.share_folder import share_folder

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

__all__ = [
    'CYCLES',
    'DIAGNOSTICS',
    'EVENTS',
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
    'command_deadline_s',
    'command_qos',
    'handle_events',
    'listening',
    'make_executor',
    'newest',
    'prefer_deep_sockets',
    'set_up_dds',
]


HIGHEST_DOMAIN = 232  # the ports of higher ones are beyond 65535
_TRANSPORTS, _UDP = 'FASTDDS_BUILTIN_TRANSPORTS', 'UDPv4'
_PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')  # 3.0 on, before


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
# Messages of all chambers arrive together: none may push out another.
PER_CHAMBER = _profile(64, reliable=False)
# All nodes of an arm share the topic: the queue holds one message of each, and more.
HEARTBEAT = _profile(20, reliable=True)
# Only the newest permit counts; a queue would deliver outdated ones.
PERMIT = _profile(1, reliable=True)
# Requests for this moment: none may be missed, none of the past may reach a node started later.
EVENTS = _profile(10, reliable=True)
# One message per cycle, for observers: none may be missing.
CYCLES = _profile(100, reliable=True)
DIAGNOSTICS = _profile(10, reliable=True)
# Goals from people and programs: none may be lost, although only the newest is followed.
GOALS = _profile(10, reliable=True)
REPORTS = _profile(50, reliable=True)
TRANSFORMS = _profile(100, reliable=True)  # the profile of tf2


def command_deadline_s(rig: Rig, time_scale: float) -> float:
    """Return the QoS deadline [wall s] of command topics: the longest time between commands."""
    if time_scale == 1.0:
        return rig.supervisor.command_timeout_s
    # Off real time the plant waits for each command, so only a dead process misses the deadline.
    return max(rig.supervisor.heartbeat_timeout_s, rig.supervisor.command_timeout_s / time_scale)


def command_qos(deadline_s: float) -> QoSProfile:
    """Return the profile of commands: keep last 1, reliable, with a deadline [s]."""
    return _profile(1, reliable=True, deadline=Duration(nanoseconds=round(deadline_s * 1e9)))


def listening(*, depth: int, reliable: bool = False, latched: bool = False) -> QoSProfile:
    """Return a profile for observers, which must not miss a message: a queue, no deadline."""
    return _profile(depth, reliable=reliable, latched=latched)


def set_up_dds() -> None:
    """
    Set the Fast DDS options that the user has not set; call it before `rclpy.init`.

    No shared memory: while that transport opens the ports of new participants, it delivers nothing
    for a third of a second (its health check). An arm with a shorter timeout would stop. The
    messages of an arm are small; UDP delivers them as fast.

    No type look-up: for each topic of other processes that is unknown here, Fast DDS asks for its
    message type, which no node needs. Its thread for that occasionally crashed a starting process
    (3.2.3, a mutex without an owner).

    An announcement every half second instead of every three: a new participant announces itself
    before it listens. Half the time it therefore misses the answers and discovers nobody until the
    others announce themselves again.
    """
    os.environ.setdefault(_TRANSPORTS, _UDP)
    if not any(name in os.environ for name in _PROFILES):
        profile = 'config/fastdds/nodes.xml'
        os.environ[_PROFILES[0]] = str(share_folder(profile) / profile)


def check_domain() -> None:
    """Raise RefusedError if DDS cannot use the ROS domain; call it before `rclpy.init`."""
    text = os.environ.get('ROS_DOMAIN_ID', '').strip()
    if text and not (text.isdecimal() and int(text) <= HIGHEST_DOMAIN):
        raise RefusedError(f'ROS_DOMAIN_ID = {text!r}: expected 0 to {HIGHEST_DOMAIN}')


def prefer_deep_sockets() -> None:
    """
    Ask for large socket buffers, for pauses of this process; call it before `rclpy.init`.

    With the usual 0.2 MB, a recorder that pauses for a tenth of a second loses the next
    measurements, which are not sent again. The system limits the size to `net.core.rmem_max`.
    """
    if os.environ.get(_TRANSPORTS, _UDP) == _UDP:
        os.environ[_TRANSPORTS] = f'{_UDP}?sockets_size=2MB'


def newest(offered: QoSProfile) -> QoSProfile:
    """
    Return the profile of a listener that needs only current messages.

    It does not ask for lost messages. A reliable listener gets no newer message until the lost one
    has been sent again, which takes Fast DDS up to three seconds. A node that has paused for half
    a second would then take all other nodes for silent.
    """
    profile = _profile(offered.depth, reliable=False)
    profile.deadline = offered.deadline
    return profile


def make_executor(context: Context | None = None) -> Executor:
    """
    Return the cheapest available executor, for the default context or another.

    The events executor needs a third of the processor time of the default one; Humble lacks it.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    executor: Executor = EventsExecutor(context=context)
    return executor


def handle_events(executor: Executor, duration_s: float) -> None:
    """
    Handle the events of a time [s], one by one.

    The events executor's own `spin_until_future_complete` leaks 32 bytes a call.
    """
    until = time.monotonic() + duration_s
    while (left := until - time.monotonic()) > 0.0:
        executor.spin_once(left)
