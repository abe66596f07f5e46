"""Runs several nodes of an arm in one process, with one interpreter and one executor."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise

from rclpy.node import Node

from softarm_ros.nodes.process import EXIT_BAD_INPUT
from softarm_ros.nodes.run_nodes import run_nodes
from softarm_ros.nodes.sharing import SHARING

_ROS_ARGUMENTS = '--ros-args'


def main(args: list[str] | None = None) -> int:
    """Run the nodes named before `--ros-args`; parameters are addressed by full node names."""
    given = sys.argv[1:] if args is None else args
    end = given.index(_ROS_ARGUMENTS) if _ROS_ARGUMENTS in given else len(given)
    names = given[:end]
    unknown = [name for name in names if name not in SHARING]
    if unknown or not names:
        what = f'{", ".join(unknown)} cannot share a process' if unknown else 'no node is named'
        print(f'node_group: {what}; known: {", ".join(SHARING)}', file=sys.stderr)
        return EXIT_BAD_INPUT
    lost = _reaches_no_node(given[end:])
    if lost:
        print(f'node_group: {lost}', file=sys.stderr)
        return EXIT_BAD_INPUT
    return run_nodes({name.removesuffix('_node'): _builder(name) for name in names}, given[end:])


def _reaches_no_node(arguments: Sequence[str]) -> str:
    """
    Return the error for a parameter argument that reaches no node in a namespace, or ''.

    ROS 2 silently applies NODE:NAME:=VALUE only to a node without a namespace.
    """
    if not any('__ns:=' in argument for argument in arguments):
        return ''
    for flag, value in pairwise(arguments):
        name = value.partition(':=')[0]
        if flag in ('-p', '--param') and ':' in name:
            return (
                f'{flag} {value} reaches no node in a namespace; expected a file (--params-file) '
                'with the full name of the node (docs/topics.md)'
            )
    return ''


def _builder(executable: str) -> Callable[[], Node]:
    module = importlib.import_module(f'softarm_ros.nodes.{executable}')

    def build() -> Node:
        node: Node = getattr(module, SHARING[executable])()
        return node

    return build


if __name__ == '__main__':
    sys.exit(main())
