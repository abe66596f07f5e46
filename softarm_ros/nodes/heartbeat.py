"""Heartbeat and diagnostics of a node."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node

from softarm_ros.nodes import conversions
from softarm_ros.nodes.clocks import steady_clock
from softarm_ros.nodes.conversions import ERROR, OK, WARN, Health
from softarm_ros.nodes.qos import DIAGNOSTICS, HEARTBEAT
from softarm_ros.nodes.timing import Lateness
from softarm_ros.nodes.wire import status_bytes
from softarm_ros.rigs.common_checks import HEARTBEAT_RATE_HZ

# Why a node that owns devices is not ready if a request has switched it off.
SWITCHED_OFF = INACTIVE, UNCONFIGURED, SHUT_DOWN = 'inactive', 'unconfigured', 'shut down'


class Heartbeat:
    """
    Publishes at a steady rate that a node is alive, and its health: `heartbeat`, /diagnostics.

    Nothing is sent before the node's executor runs: a node that is still loading does not count as
    alive. From then on a change of level or message is sent at once; otherwise /diagnostics is
    sent at 1 Hz. Each message calls `fill` for the values.

    The value `longest_pause_ms` is the longest delay of the process since the start, `late_ms`
    that of the last one to two seconds. A node with scheduled work reports its delays to `late`.
    """

    def __init__(
        self,
        node: Node,
        hardware_id: str,
        *,
        rate_hz: float = HEARTBEAT_RATE_HZ,
        fill: Callable[[], dict[str, str]] = dict,
    ) -> None:
        self._node = node
        self._hardware_id = hardware_id
        self._fill = fill
        self.level = OK
        self.message = 'starting'
        self._beats = 0
        self._period_s = 1.0 / rate_hz
        self._last_beat: float | None = None
        self._lateness = Lateness()
        self._per_diagnostics = max(round(rate_hz), 1)
        self._heartbeat = node.create_publisher(DiagnosticStatus, 'heartbeat', HEARTBEAT)
        self._diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', DIAGNOSTICS)
        # The first log message of a process takes rclpy a tenth of a second: log one now.
        node.get_logger().info(self.message)
        self._timer = node.create_timer(self._period_s, self._beat, clock=steady_clock())

    def set(self, level: int, message: str, *, now: bool = False, log: int | None = None) -> None:
        """
        Set level and message; if more than numbers in it changed, or with `now`, send it at once.

        The change is logged with the severity of `log`, or else of `level`.
        """
        if level == self.level and message == self.message and not now:
            return
        changed = now or level != self.level or _wording(message) != _wording(self.message)
        self.level, self.message = level, message
        if changed:
            self._log(level if log is None else log)
            self.publish()

    def ok(self, message: str = 'ok') -> None:
        """Report that everything is in order."""
        self.set(OK, message)

    def warn(self, message: str) -> None:
        """Report a warning; the node goes on."""
        self.set(WARN, message)

    def waiting(self, message: str) -> None:
        """Report that the node does not work yet: a warning, but logged as information."""
        self.set(WARN, message, log=OK)

    def error(self, message: str) -> None:
        """Report that the node cannot do its work."""
        self.set(ERROR, message)

    def late(self, seconds: float) -> None:
        """Note a delay [s] of work past its due time."""
        self._lateness.note(time.monotonic(), seconds)

    @property
    def late_s(self) -> float:
        """The longest delay [s] of work in the last one to two seconds."""
        return self._lateness.recent_s(time.monotonic())

    def publish(self, *, diagnostics: bool = True) -> None:
        """Send the heartbeat now, if the executor of the node runs."""
        if self._last_beat is None:
            return
        values = self._fill() | self._lateness.values(time.monotonic())
        health = Health(self._node.get_name(), self.level, self.message, values)
        self._heartbeat.publish(status_bytes(health, self._hardware_id))
        if diagnostics:
            stamp = self._node.get_clock().now().to_msg()
            self._diagnostics.publish(
                conversions.diagnostics_message(health, self._hardware_id, stamp)
            )

    def _beat(self) -> None:
        now = time.monotonic()
        first = self._last_beat is None
        if self._last_beat is not None:
            self.late(now - self._last_beat - self._period_s)
        self._last_beat = now
        self._beats += 1
        self.publish(diagnostics=first or self._beats % self._per_diagnostics == 0)

    def _log(self, level: int) -> None:
        logger = self._node.get_logger()
        # One call site per severity: rclpy refuses a call site that changes its severity.
        if level >= ERROR:
            logger.error(self.message)
        elif level == WARN:
            logger.warning(self.message)
        else:
            logger.info(self.message)


def _wording(message: str) -> str:
    return re.sub(r'\d+', '#', message)
