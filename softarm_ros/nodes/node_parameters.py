"""Parameters that nodes share: their declaration, unknown ones, and those that may not change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from softarm_ros.geometry.configs import TOPIC_NAME
from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.nodes.process import LARGEST_SEED
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.errors import closest, listed
from softarm_ros.rigs.graph import REAL_TIME_PRIORITY
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.rig_files import find_rig
from softarm_ros.rigs.schema import Rig

PRIORITY_PARAMETER = 'real_time_priority'


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


def declare_node_name(node: Node, name: str, default: str) -> str:
    """Declare a parameter with the name of another node; return it."""
    found = str(declare(node, name, default, f'name of the {default} node'))
    if not re.fullmatch(TOPIC_NAME, found):  # topics of that node begin with it
        raise RefusedError(f'{name} = {found!r}: expected the name of a node, as {default}')
    return found


def declare_time_scale(node: Node) -> float:
    """Declare `time_scale`, the speed of simulated time (1: real time); return it."""
    scale = float(
        declare(
            node,
            'time_scale',
            1.0,
            'simulated seconds per second; other than 1 needs use_sim_time',
            low=0.01,
            high=100.0,
        )
    )
    if scale != 1.0 and not node.get_parameter('use_sim_time').value:
        raise RefusedError(f'time_scale = {scale:g}: expected 1, or use_sim_time = true')
    return scale


def declare_seed(node: Node) -> int:
    """Declare `seed`, that of all random numbers of a simulated arm; return it."""
    about = 'seed of all random numbers of the plant'
    return int(declare(node, 'seed', 0, about, low=0, high=LARGEST_SEED))


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
