"""Common parts of all nodes: parameters, heartbeat, start and end of the process."""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions

from softarm_ros.nodes import conversions
from softarm_ros.nodes.conversions import ERROR, OK, WARN, Health
from softarm_ros.nodes.discovery import QUIET_S, Discovery
from softarm_ros.nodes.process import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    StopSignals,
    end_with_parent,
    leave,
    wait_for_release,
)
from softarm_ros.nodes.qos import DIAGNOSTICS, HEARTBEAT, make_executor, set_up_dds
from softarm_ros.nodes.scheduling import drop_priority, keep_in_memory, raise_priority
from softarm_ros.nodes.self_paced import Turns
from softarm_ros.nodes.timing import Lateness
from softarm_ros.nodes.wire import status_bytes
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.common_checks import HEARTBEAT_RATE_HZ
from softarm_ros.rigs.errors import closest, listed
from softarm_ros.rigs.graph import REAL_TIME_PRIORITY
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.rig_files import find_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.part_failure import failure_text, part_at_fault

PRIORITY_PARAMETER = 'real_time_priority'


class NodeFailedError(RuntimeError):
    """The node cannot go on; the message explains it, so no traceback is printed."""


class RefusedError(ValueError):
    """A node refuses to start with its parameters; `node` names it if a process has several."""

    def __init__(self, what: str, node: str = '') -> None:
        super().__init__(what)
        self.node = node


# -- parameters -------------------------------------------------------------------------------


def declare(
    node: Node,
    name: str,
    default: Any,
    description: str,
    *,
    low: float | None = None,
    high: float | None = None,
    read_only: bool = True,
) -> Any:
    """Declare a parameter with its description and range; return its value."""
    descriptor = ParameterDescriptor(description=description, read_only=read_only)
    if low is not None and high is not None:
        if isinstance(default, float):
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
        else:
            descriptor.integer_range = [
                IntegerRange(from_value=int(low), to_value=int(high), step=1)
            ]
    return node.declare_parameter(name, default, descriptor).value


def declare_rig(node: Node) -> Rig:
    """Declare `rig` and `settings`, load the rig; RigError lists every problem of the file."""
    name = declare(node, 'rig', '', 'name of a built-in rig or path of a rig file')
    if not name:
        raise RefusedError('parameter rig is empty; expected a rig name or the path of a file')
    text = declare(
        node,
        'settings',
        '',
        'field=value; field=value: replace values of the rig file',
    )
    file = find_rig(name)
    return _load_once(name, text, file.stat().st_mtime_ns if file.is_file() else 0)


@lru_cache(maxsize=8)
def _load_once(name: str, settings: str, written_ns: int) -> Rig:
    """Load a rig; nodes in one process share it. `written_ns` reloads a file that has changed."""
    return load_rig(name, settings_of([settings]))


def declare_time_scale(node: Node) -> float:
    """Declare `time_scale`, the speed of simulated time (1: real time); return it."""
    return float(
        declare(
            node,
            'time_scale',
            1.0,
            'simulated seconds per second; other than 1 needs use_sim_time',
            low=0.01,
            high=100.0,
        )
    )


def declare_priority(node: Node) -> None:
    """Declare `real_time_priority` of a node in the loop; it applies from the first spin on."""
    declare(
        node,
        PRIORITY_PARAMETER,
        REAL_TIME_PRIORITY,
        'SCHED_FIFO priority of all threads of the node, if permitted; 0: ordinary scheduling',
        low=0,
        high=90,
    )


def command_deadline_s(rig: Rig, time_scale: float) -> float:
    """Return the QoS deadline [wall s] of command topics: the longest time between commands."""
    if time_scale == 1.0:
        return rig.supervisor.command_timeout_s
    # Off real time the plant waits for each command, so only a dead process misses the deadline.
    return max(rig.supervisor.heartbeat_timeout_s, rig.supervisor.command_timeout_s / time_scale)


def check_overrides(nodes: Sequence[Node]) -> None:
    """
    Refuse values of parameters that no node has, if the name resembles a parameter of a node.

    ROS ignores unknown parameters, so an arm would run with a default instead of the intended
    value. Other unknown parameters get a warning only: a launch file may give a value to all its
    nodes. The given values are a private attribute of rclpy nodes; without it nothing is checked.

    Raises
    ------
    RefusedError
        Names the unknown parameter, the node it was meant for and the parameter it resembles.

    """
    known = {node: set(node.get_parameters_by_prefix('')) for node in nodes}
    given = {node: set(getattr(node, '_parameter_overrides', {})) for node in nodes}
    unknown = sorted(
        name
        for name in set().union(*given.values()) - set().union(*known.values())
        if not name.startswith('qos_overrides.')
    )
    for name in unknown:
        asked = [node for node in nodes if name in given[node]]
        meant = closest(name, {own for node in asked for own in known[node]})
        if meant is not None:
            node = next(node for node in asked if meant in known[node])
            what = f'parameter {name} is unknown (did you mean {meant!r}?)'
            raise RefusedError(what, node.get_name())
    if unknown:
        nodes[0].get_logger().warning(f'ignored unknown parameters: {listed(unknown)}')


def keep_clock(node: Node) -> None:
    """Refuse changes of `use_sim_time` on a running node: its loops and stamps use one clock."""
    kept = node.get_parameter('use_sim_time').value

    def judge(parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == 'use_sim_time' and parameter.value != kept:
                return SetParametersResult(
                    successful=False,
                    reason=f'use_sim_time = {parameter.value}: expected {kept}, with which the '
                    'node was started; give it at the start',
                )
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(judge)


_UNNAMED = '_NODE_NAME_UNKNOWN_'  # of rmw, for an endpoint discovered before its node


def publishers_of(node: Node, topic: str) -> list[tuple[str, str]]:
    """Return namespace and node name of each known publisher of a topic, in any order."""
    return [
        (info.node_namespace.rstrip('/'), info.node_name)
        for info in node.get_publishers_info_by_topic(topic)
        if info.node_name != _UNNAMED
    ]


def steady_clock() -> Clock:
    """Return the monotonic clock, which neither simulation nor time servers change."""
    return Clock(clock_type=ClockType.STEADY_TIME)


def refuse_twin(node: Node, rig_is: str = 'running') -> None:
    """
    Refuse to start beside a node of the same name: both would publish on the same topics.

    `rig_is` completes "rig ... is already ..." in the error. Call this function before the node
    publishes. Two nodes that start at the same moment both refuse.
    """
    wait_s = declare(
        node,
        'twin_check_s',
        QUIET_S,
        'time given to discovery to find a node of the same name [s], on a busy computer up to '
        'three times as long; 0: not checked',
        low=0.0,
        high=30.0,
    )
    me = (node.get_name(), node.get_namespace())
    discovery = Discovery(wait_s)
    while wait_s > 0.0 and not discovery.over():
        if node.get_node_names_and_namespaces().count(me) > 1:
            domain = os.environ.get('ROS_DOMAIN_ID', '0')
            raise RefusedError(
                f'rig {me[1].strip("/")} is already {rig_is} in ROS domain {domain}: '
                f'there is another {node.get_fully_qualified_name()}'
            )
        time.sleep(0.05)


# -- heartbeat --------------------------------------------------------------------------------


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


# -- the process ------------------------------------------------------------------------------


def run_node(build: Callable[[], Node], name: str, args: list[str] | None = None) -> NoReturn:
    """Run one node in this process; see `run_nodes`."""
    run_nodes({name: build}, args)


def run_nodes(
    builders: Mapping[str, Callable[[], Node]], args: list[str] | None = None
) -> NoReturn:
    """
    Build nodes, spin them in one executor until SIGINT or SIGTERM, and end the process.

    The exit status is 0 after a signal, which ends the process at once while nodes are being
    built; 2 if a node refuses its input; 1 if a node failed while running. Status 1 and 2 print
    one line with the reason. Every node that has a `close` method is closed in every case.
    """
    leave(_status_of(builders, args))


def _status_of(builders: Mapping[str, Callable[[], Node]], args: list[str] | None) -> int:
    stop = StopSignals()
    end_with_parent()
    wait_for_release()
    set_up_dds()
    nodes: dict[str, Node] = {}
    name = ''
    try:
        try:
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        except RuntimeError as error:  # base class of rcl errors, which are private to rclpy
            refused = f'ROS 2 does not start with these arguments: {error}'
            print(f'{" ".join(builders)}: {refused}', file=sys.stderr, flush=True)
            return EXIT_BAD_INPUT
        for name, build in builders.items():
            nodes[name] = build()
        check_overrides(list(nodes.values()))
        for node in nodes.values():
            keep_clock(node)
        stop.note_only()
        return _spin(list(nodes.values()), stop)
    except NodeFailedError as error:
        print(f'{" ".join(builders)}: {error}', file=sys.stderr, flush=True)
        return EXIT_FAILED
    except (ValueError, OSError, ParameterException) as error:
        if part_at_fault(error):
            return _part_failed(name, error, running=len(nodes) == len(builders))
        if len(nodes) == len(builders) and not isinstance(error, RefusedError):
            raise
        refusing = error.node if isinstance(error, RefusedError) else ''
        print(f'{refusing or name}: {error}', file=sys.stderr, flush=True)
        return EXIT_BAD_INPUT
    except Exception as error:  # a part of another package may raise anything
        if not part_at_fault(error):
            raise
        return _part_failed(name, error, running=len(nodes) == len(builders))
    finally:
        stop.ignore()
        for node in nodes.values():
            getattr(node, 'close', lambda: None)()
        drop_priority()  # shutting down takes a second, which must not delay another arm
        for node in nodes.values():
            node.destroy_node()
        rclpy.try_shutdown()
        gc.unfreeze()  # otherwise compiled modules report the frozen objects as leaks


def _part_failed(name: str, error: Exception, *, running: bool) -> int:
    print(f'{name}: {failure_text(error)}', file=sys.stderr, flush=True)
    return EXIT_FAILED if running else EXIT_BAD_INPUT


def _spin(nodes: Sequence[Node], stop: StopSignals) -> int:
    # Objects alive now stay alive: freeze them, so the collector does not scan them mid-cycle.
    gc.collect()
    gc.freeze()
    executor = make_executor()
    for node in nodes:
        executor.add_node(node)
    _prioritise(nodes)
    turns = Turns(executor, nodes)
    for node in nodes:
        for timer in node.timers:
            timer.reset()  # align the timers: waking up costs more than most of their callbacks
    try:
        # spin() of the events executor does not return on a signal.
        while rclpy.ok() and not stop.seen:
            turns.take()
    finally:
        for node in nodes:
            executor.remove_node(node)
        executor.shutdown()
    return 0


def _prioritise(nodes: Sequence[Node]) -> None:
    """Give the process the highest priority that one of its nodes asks for."""
    asking = [node for node in nodes if node.has_parameter(PRIORITY_PARAMETER)]
    if not asking:
        return
    priority = max(int(node.get_parameter(PRIORITY_PARAMETER).value) for node in asking)
    if priority == 0:
        return
    for refusal in (raise_priority(priority), keep_in_memory()):
        if refusal is not None:
            asking[0].get_logger().info(refusal)
