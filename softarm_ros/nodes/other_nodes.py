"""Finds other running nodes: one of the same name, and the publishers of a topic."""

from __future__ import annotations

import time

from rclpy.node import Node

from softarm_ros.nodes.discovery import QUIET_S, Discovery
from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.nodes.node_parameters import declare
from softarm_ros.runtime.run_files import ros_domain

_UNNAMED = '_NODE_NAME_UNKNOWN_'  # of rmw, for an endpoint discovered before its node


def publishers_of(node: Node, topic: str) -> list[tuple[str, str]]:
    """Return namespace and node name of each known publisher of a topic, in any order."""
    return [
        (info.node_namespace.rstrip('/'), info.node_name)
        for info in node.get_publishers_info_by_topic(topic)
        if info.node_name != _UNNAMED
    ]


def other_clocks(node: Node) -> str:
    """Return an error if nodes other than this one publish /clock; else ''."""
    me = (node.get_namespace().rstrip('/'), node.get_name())
    others = sorted({*publishers_of(node, '/clock')} - {me})
    if not others:
        return ''
    names = ', '.join(f'{namespace}/{name}' for namespace, name in others)
    return (
        f'{names} also publishes /clock in ROS domain {ros_domain()}, and '
        'simulated time would jump; end it, or use another ROS_DOMAIN_ID'
    )


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
            domain = ros_domain()
            raise RefusedError(
                f'rig {me[1].strip("/")} is already {rig_is} in ROS domain {domain}: '
                f'there is another {node.get_fully_qualified_name()}'
            )
        time.sleep(0.05)
