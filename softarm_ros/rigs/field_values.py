"""Read and replace numbers of a loaded rig by field name, without its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.schema import Rig

_PART = re.compile(r'([^.\[\]]+)|\[(\d+)\]')
Path = tuple[str | int, ...]


def path_of(field: str) -> Path:
    """Return the keys and indices of a field such as `arm.sections[0].length_m`."""
    return tuple(name or int(index) for name, index in _PART.findall(field))


def values_of(rig: Rig, fields: Sequence[str]) -> dict[str, float]:
    """
    Return the numbers in the given fields.

    Raises
    ------
    RigError
        If the rig has no such field, or it holds no number.

    """
    found = {}
    for field in fields:
        node: Any = rig
        try:
            for step in path_of(field):
                block = isinstance(node, BaseModel)
                node = getattr(node, str(step)) if block else node[step]
            found[field] = float(node)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            raise RigError('', f'rig {rig.name!r} has no number {field}') from None
    return found


def with_values(rig: Rig, values: Mapping[str, float]) -> Rig:
    """Return the rig with other numbers; they are not checked before the rig is written."""
    tree: dict[Any, Any] = {}
    for field, value in values.items():
        branch = tree
        *way, last = path_of(field)
        for step in way:
            branch = branch.setdefault(step, {})
        branch[last] = float(value)
    changed: Rig = _changed(rig, tree)
    return changed


def _changed(node: Any, tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if isinstance(node, BaseModel):
        update = {str(step): _changed(getattr(node, str(step)), t) for step, t in tree.items()}
        return node.model_copy(update=update)
    if isinstance(node, tuple):
        return tuple(_changed(item, tree[i]) if i in tree else item for i, item in enumerate(node))
    return {**node, **{step: _changed(node[step], t) for step, t in tree.items()}}
