"""Replace values of a rig file by settings, as `field=value`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from softarm_ros.rigs.errors import FieldPath, RigError, format_path
from softarm_ros.rigs.replaced_fields import instead_of
from softarm_ros.rigs.yaml_document import YamlDocument

_PART = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]')


def apply_settings(document: YamlDocument, settings: Sequence[str]) -> YamlDocument:
    """
    Return a document with values replaced or added; they are validated with the rest.

    A field is written as in error messages: `arm.sections[0].length_m`. Blocks that the document
    leaves out are added.

    Raises
    ------
    RigError
        If a setting is not `field=value`, its value is no YAML, or the document has no such place.

    """
    if isinstance(settings, str):  # its letters would be taken for settings
        raise RigError('', f'settings = {settings!r}: expected a list of field=value')
    data: Any = document.data
    by_path = dict(document.settings)
    for setting in settings:
        path, value = _parse(setting)
        data = _replaced(data, path, value, setting, ())
        by_path[path] = setting
    return replace(document, data=data, settings=by_path) if settings else document


def _parse(setting: str) -> tuple[FieldPath, Any]:
    field, equals, text = setting.partition('=')
    field = field.strip()
    parts: list[str | int] = []
    for piece in field.split('.'):
        found = _PART.findall(piece)
        if not found or _PART.sub('', piece):
            raise _malformed(setting)
        parts += [name or int(index) for name, index in found]
    if not equals or not parts:
        raise _malformed(setting)
    try:
        value = YAML(typ='safe', pure=True).load(text)
    except YAMLError:
        raise RigError('', f'setting {setting!r}: {text!r} is not a YAML value') from None
    return tuple(parts), _tuples(value)


def _malformed(setting: str) -> RigError:
    example = 'medium=water or arm.sections[0].length_m=0.1'
    return RigError('', f'setting {setting!r}: expected field=value, as {example}')


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(v) for v in value)
    if isinstance(value, dict):
        return {k: _tuples(v) for k, v in value.items()}
    return value


def _replaced(node: Any, path: FieldPath, value: Any, setting: str, done: FieldPath) -> Any:
    """Return a copy of a mapping or sequence with the value at a path replaced."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    place = (*done, key)
    if isinstance(node, str) and isinstance(key, str):
        node = {'kind': node}  # a part named by its kind alone
    if isinstance(key, str) and (node is None or isinstance(node, dict)):
        node = node or {}  # a block that the file leaves out
        instead = instead_of((*place, *rest)) if rest and key not in node else None
        if not done and rest and key in (node.get('arm') or ()):
            instead = f'no longer a field; write arm.{key}'
        if instead is not None:
            raise RigError('', f'setting {setting!r}: {format_path(place)} is {instead}')
        return {**node, key: _replaced(node.get(key), rest, value, setting, place)}
    if isinstance(node, tuple) and isinstance(key, int) and key < len(node):
        inner = _replaced(node[key], rest, value, setting, place)
        return (*node[:key], inner, *node[key + 1 :])
    raise RigError('', f'setting {setting!r}: the file has no {format_path(place)}')
