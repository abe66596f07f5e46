"""Sections of parameter files that reach no node: ROS ignores them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rclpy.node import Node

from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.rigs.errors import closest, listed

_VALUES = 'ros__parameters'
_LIKENESS = 0.8


def check_parameter_files(nodes: Sequence[Node], arguments: Sequence[str] | None) -> None:
    """
    Refuse sections for no node of this process whose name resembles that of one.

    As a node without its section would run with defaults. A file of which no section reaches a
    node here gets a warning only: it may be given to several processes.

    Raises
    ------
    RefusedError
        Names the file, the section and the node that it was probably meant for.

    """
    names = [node.get_fully_qualified_name() for node in nodes]
    for flag, file in pairwise(sys.argv if arguments is None else arguments):
        if flag != '--params-file':
            continue
        sections = list(_sections(_read(Path(file))))
        lost = [s for s in sections if not any(_reaches(s, name) for name in names)]
        for section in lost:
            if meant := _meant(section, [name for name in names if name not in sections]):
                raise RefusedError(
                    f'parameter file {file}: section {section!r} reaches no node '
                    f'(did you mean {meant!r}?)',
                    meant.rpartition('/')[2],
                )
        if lost and lost == sections:
            nodes[0].get_logger().warning(
                f'ignored parameter file {file}: its sections are {listed(lost)}; expected '
                f'{listed(names)} or /**'
            )


def _read(path: Path) -> Any:
    from ruamel.yaml import YAML, YAMLError

    try:
        return YAML(typ='safe').load(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, YAMLError):  # rclpy has refused what it cannot read
        return None


def _sections(values: Any, name: str = '') -> Iterator[str]:
    """Yield the names of nodes, to which nested keys add up, as `/cable_arm/tracker`."""
    if not isinstance(values, Mapping):
        return
    for key, inner in values.items():
        if key == _VALUES:
            yield name
        else:
            yield from _sections(inner, f'{name}/{str(key).strip("/")}')


def _reaches(section: str, node: str) -> bool:
    """Return whether a section is for a node; `*` is one part of its name, `**` any number."""
    wild = {'*': r'/\w+', '**': r'(/\w+)*'}
    parts = section.strip('/').split('/')
    return bool(re.fullmatch(''.join(wild.get(p, re.escape(f'/{p}')) for p in parts), node))


def _meant(section: str, names: Sequence[str]) -> str | None:
    """Return the node that a section without a namespace, or with its own, was meant for."""
    space, _, name = section.rpartition('/')
    known = {n.rpartition('/')[2]: n for n in names if space in ('', n.rpartition('/')[0])}
    found = closest(name, known, likeness=_LIKENESS)
    return None if found is None else known[found]
