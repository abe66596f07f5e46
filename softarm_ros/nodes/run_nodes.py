"""Runs nodes in this process: start, spinning, orderly end and exit status."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
from softarm_ros.nodes.node_parameters import PRIORITY_PARAMETER, check_overrides, keep_clock
from softarm_ros.nodes.parameter_files import check_parameter_files
from softarm_ros.nodes.process import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    StopSignals,
    end_with_parent,
    leave,
    wait_for_release,
)
from softarm_ros.nodes.qos import check_domain, make_executor, set_up_dds
from softarm_ros.nodes.self_paced import Turns
from softarm_ros.runtime.part_failure import FAILURES, failure_text, part_at_fault
from softarm_ros.runtime.scheduling import drop_priority, keep_in_memory, raise_priority


def run_node(build: Callable[[], Node], name: str, args: list[str] | None = None) -> NoReturn:
    """Run one node in this process; see `run_nodes`."""
    run_nodes({name: build}, args)


def run_nodes(
    builders: Mapping[str, Callable[[], Node]], args: list[str] | None = None
) -> NoReturn:
    """
    Build nodes, spin them in one executor until SIGINT or SIGTERM, and end the process.

    The exit status is 0 after a signal, which ends the process at once while nodes are being
    built; 2 if a node refuses its input; 1 if a node failed while running; 130 if a signal came
    before the work of a node was done (`NodeInterruptedError`). Others than 0 print one line with
    the reason. Every node that has a `close` method is closed in every case.
    """
    leave(_status_of(builders, args))


def _status_of(builders: Mapping[str, Callable[[], Node]], args: list[str] | None) -> int:
    stop = StopSignals()
    end_with_parent()
    wait_for_release()
    set_up_dds()
    nodes: dict[str, Node] = {}
    status = EXIT_FAILED
    try:
        status = _run(builders, args, nodes, stop)
    finally:
        stop.ignore()
        status = max(status, _close(nodes))
        drop_priority()  # shutting down takes a second, which must not delay another arm
        for node in nodes.values():
            node.destroy_node()
            # rclpy leaves it a lifecycle node's state machine, which keeps the node in the graph:
            # others would see it, and call its services, until Fast DDS gives it up 20 s later.
            vars(node).pop('_state_machine', None)
        rclpy.try_shutdown()
        gc.unfreeze()  # otherwise compiled modules report the frozen objects as leaks
    return status


def _run(
    builders: Mapping[str, Callable[[], Node]],
    args: list[str] | None,
    nodes: dict[str, Node],
    stop: StopSignals,
) -> int:
    """Build the nodes into `nodes` and spin them; return the exit status."""
    name = ''
    try:
        try:
            check_domain()
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        except (RefusedError, RuntimeError) as error:  # rcl errors are private to rclpy
            refused = f'ROS 2 does not start with these arguments: {error}'
            print(f'{" ".join(builders)}: {refused}', file=sys.stderr, flush=True)
            return EXIT_BAD_INPUT
        for name, build in builders.items():
            nodes[name] = build()
        check_overrides(list(nodes.values()))
        check_parameter_files(list(nodes.values()), args)
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
    except FAILURES as error:
        if stop.seen or not part_at_fault(error):  # a signal raises SystemExit wherever code runs
            raise
        return _part_failed(name, error, running=len(nodes) == len(builders))


def _close(nodes: Mapping[str, Node]) -> int:
    """Close all nodes, also after a failure; return the exit status."""
    status = 0
    for name, node in nodes.items():
        try:
            getattr(node, 'close', lambda: None)()
        except FAILURES as error:
            if isinstance(error, NodeFailedError):
                text, status = str(error), max(status, error.status)
            else:
                text, status = f'closing failed: {failure_text(error)}', max(status, EXIT_FAILED)
            print(f'{name}: {text}', file=sys.stderr, flush=True)
    return status


def _part_failed(name: str, error: BaseException, *, running: bool) -> int:
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
            node.executor = None  # type: ignore[assignment]  # threads of devices get none
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
