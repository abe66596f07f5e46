"""Writes identified values into a copy of the rig file, with a note of their source."""

from __future__ import annotations

import copy
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.field_values import path_of
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.residual_file import ResidualFile
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.yaml_document import parse_yaml
from softarm_ros.whole_file import write_text

_DIGITS = 6  # significant, in the file
_NO_WRAPPING = 4096  # columns
_COMMENT_COLUMN = 40
_RESIDUAL = re.compile(r'^residual:.*\n(?:[ \t]+.*\n|\}.*\n)*', flags=re.MULTILINE)


def updated_text(
    text: str, values: Mapping[str, float | str], note: str, rig: Rig | None = None
) -> str:
    """
    Return the text of a rig file with new values; `note` marks each line with a new number.

    A shared block (`*other`, `<<: *other`) is copied where it is changed; the other places that
    share it keep their values. Lists missing from the file are taken from `rig`.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _NO_WRAPPING
    if re.search(r'^( *)[a-z_]+:[^\n]*\n(\s*#[^\n]*\n)*\1 +-', text, flags=re.MULTILINE):
        yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(text)
    marked: set[int] = set()
    if rig is not None and any('bends' in path_of(field) for field in values):
        _state_all_bends(document, rig)
    for field, value in values.items():
        *way, last = path_of(field)
        node: Any = document
        line: tuple[Any, Any] | None = None
        for i, step in enumerate(way):
            _keep(document, node, step, rig)
            if isinstance(node, CommentedMap) and step not in node and rig is not None:
                node[step] = _default(rig, tuple(way[: i + 1]))
            _own(document, node, step)
            if isinstance(node, CommentedMap) and not _is_flow(node):
                line = (node, step)
            node = node[step]
        if isinstance(node, CommentedMap) and not _is_flow(node):
            line = (node, last)
        _keep(document, node, last, rig)
        _own(document, node, last)
        if isinstance(value, str):
            node[last] = value
            continue
        node[last] = float(f'{value:.{_DIGITS}g}') + 0.0
        if line is not None:
            _mark(*line, note, marked)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def write(
    rig: Rig, output: Path, values: Mapping[str, float], learned: ResidualFile | None, note: str
) -> list[Path]:
    """
    Write a rig file and its residual beside it, load it as a check, and return the files written.

    If `learned` is None, a residual that the rig already has is copied. A calibration file beside
    the old rig file is named by its path from the new one.

    Raises
    ------
    NotWrittenError
        If a file cannot be written.
    UsageError
        If the residual cannot be read any more; or if identified values are outside the limits of
        the rig's fields, or far from those of its plant: the files are written, and it names them.

    """
    if rig.source is None:
        raise UsageError(f'rig {rig.name!r} was not loaded from a file')
    moved = _calibrations(rig, rig.source.parent, output.resolve().parent)
    text = updated_text(rig.text, {**values, **moved}, note, rig)
    written = [output]
    kept = None if rig.residual is None else rig.source.parent / rig.residual.file
    if learned is not None or kept is not None:
        beside = residual_path(output)
        mark = note if learned is not None else '[I] learned with the previous values'
        block = f'residual: {{file: {beside.name}}}  # {mark}\n'
        text = _RESIDUAL.sub('', text).rstrip('\n') + '\n\n' + block
        write_text(beside, _residual_text(learned, kept))
        written.append(beside)
    write_text(output, text)
    try:
        load_rig(output).model()
    except RigError as error:
        raise UsageError(
            f'{output} is written with the identified values, but cannot be loaded before this '
            f'is corrected in it:\n{error}'
        ) from error
    return written


def _calibrations(rig: Rig, old: Path, new: Path) -> dict[str, str]:
    """Return the fields that name calibration files relative to `old`, with paths from `new`."""
    file = parse_yaml(rig.text, str(rig.source))  # without settings, which are not written
    named = {
        f'sensors.{name}.base_calibration': file.value_at(('sensors', name, 'base_calibration'))
        for name in rig.sensors.devices()
    }
    beside = {
        field: old / Path(value).expanduser()
        for field, value in named.items()
        if isinstance(value, str) and not Path(value).expanduser().is_absolute()
    }
    return {
        field: os.path.relpath(path, new)
        for field, path in beside.items()
        if old != new and path.is_file()
    }


def _residual_text(learned: ResidualFile | None, kept: Path | None) -> str:
    if learned is not None:
        return json.dumps(learned.model_dump(), indent=1) + '\n'
    if kept is None:
        return ''
    try:
        return kept.read_text(encoding='utf-8')
    except OSError as error:
        raise UsageError(
            f'{kept}: the residual cannot be read any more ({error.strerror}); nothing was written'
        ) from None


def residual_path(output: Path) -> Path:
    """Return the path of the residual that is written with a rig file."""
    return output.parent / f'{output.stem}.residual.json'


def files_of(names: Sequence[str]) -> str:
    """Return file names for a comment: up to two names, or first, last and number of files."""
    if len(names) <= 2:
        return ', '.join(names)
    return f'{names[0]} to {names[-1]}, {len(names)} files'


def _default(rig: Rig, path: tuple[str | int, ...]) -> Any:
    value: Any = rig
    for step in path:
        value = getattr(value, str(step)) if isinstance(value, BaseModel) else value[step]
    if value is None or isinstance(value, (int, float, str)):
        return value
    if isinstance(value, BaseModel):
        return CommentedMap(_listed(value.model_dump()))
    if isinstance(value, Mapping):
        return CommentedMap(value)
    entries = CommentedSeq(_plain(entry) for entry in value)
    if not any(isinstance(entry, CommentedMap) for entry in entries):
        entries.fa.set_flow_style()
    return entries


def _state_all_bends(document: Any, rig: Rig) -> None:
    """State the bends of all actuators: a file must state them for all or none."""
    actuators = document['arm']['actuators']
    for i in [i for i, actuator in enumerate(actuators) if 'bends' not in actuator]:
        actuators[i]['bends'] = _default(rig, ('arm', 'actuators', i, 'bends'))


def _listed(value: Any) -> Any:
    """Return a value with its tuples as one-line (flow style) lists."""
    if isinstance(value, Mapping):
        return {name: _listed(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        found = CommentedSeq(_listed(entry) for entry in value)
        found.fa.set_flow_style()
        return found
    return value


def _plain(entry: Any) -> Any:
    if not isinstance(entry, BaseModel):
        return entry
    fields = CommentedMap(entry.model_dump())
    fields.fa.set_flow_style()
    return fields


def _own(document: Any, node: Any, step: Any) -> None:
    """Replace the value at a step by a copy if other places of the document share it."""
    if isinstance(node, CommentedMap) and node.merge and step not in dict(node.non_merged_items()):
        node[step] = copy.deepcopy(node[step]) if step in node else 0.0
    inner = node[step] if isinstance(node, CommentedSeq) or step in node else None
    if not isinstance(inner, (CommentedMap, CommentedSeq)) or inner.anchor.value is None:
        return
    if sum(other is inner for _, other in _blocks(document)) > 1:
        own = copy.deepcopy(inner)
        own.yaml_set_anchor(None)
        node[step] = own


def _keep(document: Any, node: Any, step: Any, rig: Rig | None) -> None:
    """Copy the value at a step into the blocks that inherit it from a node (`<<: *node`)."""
    if not isinstance(node, CommentedMap) or node.anchor.value is None:
        return
    for path, other in list(_blocks(document)):
        if not isinstance(other, CommentedMap) or step in dict(other.non_merged_items()):
            continue
        if not any(base is node for base in _bases(other)):
            continue
        if step in other:
            other[step] = copy.deepcopy(other[step])
        elif rig is not None:
            other[step] = _default(rig, (*path, step))


def _bases(block: CommentedMap) -> Iterator[Any]:
    """Yield the blocks that a block inherits from, and recursively theirs."""
    for entry in block.merge:
        base = entry[1] if isinstance(entry, tuple) else entry  # ruamel.yaml 0.18: (index, base)
        yield base
        yield from _bases(base)


def _blocks(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield path and value of all blocks and lists, for each of their occurrences."""
    if isinstance(node, CommentedMap):
        steps = list(node.non_merged_items())
    elif isinstance(node, CommentedSeq):
        steps = list(enumerate(node))
    else:
        return
    yield path, node
    for step, inner in steps:
        yield from _blocks(inner, (*path, step))


def _is_flow(node: CommentedMap) -> bool:
    return bool(node.fa.flow_style())


def _mark(node: CommentedMap, key: Any, note: str, marked: set[int]) -> None:
    """Replace the end comment of a line by the note; keep the comments on lines below."""
    if id(node) * 1000003 + hash(key) in marked:
        return
    marked.add(id(node) * 1000003 + hash(key))
    if isinstance(node[key], (CommentedMap, CommentedSeq)) and not node[key].fa.flow_style():
        return  # its entries have lines of their own
    behind = node.ca.items.get(key, [None] * 4)[2]
    _, newline, after = behind.value.partition('\n') if behind is not None else ('', '', '')
    node.yaml_add_eol_comment(note, key, column=_COMMENT_COLUMN)
    node.ca.items[key][2].value += newline + after
