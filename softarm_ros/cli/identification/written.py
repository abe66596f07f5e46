"""Writes identified values into a copy of the rig file, with where they come from."""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.rigs.field_values import path_of
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.residual_file import ResidualFile
from softarm_ros.rigs.schema import Rig

_DIGITS = 6  # significant, in the file
_NO_WRAPPING = 4096  # columns
_COMMENT_COLUMN = 40


def updated_text(text: str, values: Mapping[str, float], note: str, rig: Rig | None = None) -> str:
    """
    Return the text of a rig file with other numbers, each line that has one marked by `note`.

    Entries that are references to others (`- *other`, `<<: *other`) become their own. Lists that
    the file leaves out are taken from `rig`.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _NO_WRAPPING
    if re.search(r'^( *)[a-z_]+:[^\n]*\n(\s*#[^\n]*\n)*\1 +-', text, flags=re.MULTILINE):
        yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(text)
    marked: set[int] = set()
    for field, value in values.items():
        *way, last = path_of(field)
        node: Any = document
        line: tuple[Any, Any] | None = None
        for i, step in enumerate(way):
            if isinstance(node, CommentedMap) and step not in node and rig is not None:
                node[step] = _default(rig, tuple(way[: i + 1]))
            _own(node, step)
            if isinstance(node, CommentedMap) and not _is_flow(node):
                line = (node, step)
            node = node[step]
        if isinstance(node, CommentedMap) and not _is_flow(node):
            line = (node, last)
        _own(node, last)
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
    Write a rig file, and its residual beside it; return the files. What was written is loaded.

    A residual that the rig has already goes along.

    Raises
    ------
    UsageError
        If a file cannot be written.
    RigError
        If the identified values are beyond what the rig's fields may be; names them.

    """
    if rig.source is None:
        raise UsageError(f'rig {rig.name!r} comes from no file')
    text = updated_text(rig.source.read_text(encoding='utf-8'), values, note, rig)
    written = [output]
    try:
        kept = None if rig.residual is None else rig.source.parent / rig.residual.file
        if learned is not None or kept is not None:
            beside = output.with_suffix('.residual.json')
            mark = note if learned is not None else '[I] learned with the values before'
            block = f'residual: {{file: {beside.name}}}  # {mark}\n'
            text = re.sub(r'^residual:[^\n]*\n', '', text, flags=re.MULTILINE)
            text = text.rstrip('\n') + '\n\n' + block
            beside.write_text(_residual_text(learned, kept), encoding='utf-8')
            written.append(beside)
        output.write_text(text, encoding='utf-8')
    except OSError as error:
        raise UsageError(f'{output}: cannot be written ({error.strerror})') from None
    load_rig(output).model()
    return written


def _residual_text(learned: ResidualFile | None, kept: Path | None) -> str:
    if learned is not None:
        return json.dumps(learned.model_dump(), indent=1) + '\n'
    return '' if kept is None else kept.read_text(encoding='utf-8')


def files_of(names: Sequence[str]) -> str:
    """Return the names of files for a comment: all of them, or the first, the last, how many."""
    if len(names) <= 2:
        return ', '.join(names)
    return f'{names[0]} to {names[-1]}, {len(names)} files'


def _default(rig: Rig, path: tuple[str | int, ...]) -> Any:
    value: Any = rig
    for step in path:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    if isinstance(value, BaseModel):
        return CommentedMap(_listed(value.model_dump()))
    if isinstance(value, Mapping):
        return CommentedMap(value)
    entries = CommentedSeq(_plain(entry) for entry in value)
    if not any(isinstance(entry, CommentedMap) for entry in entries):
        entries.fa.set_flow_style()
    return entries


def _listed(value: Any) -> Any:
    """Return a value with its tuples as lists that stand in a line."""
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


def _own(node: Any, step: Any) -> None:
    """Make what stands at a step a copy of its own, where it is shared with other places."""
    if isinstance(node, CommentedMap) and node.merge and step not in dict(node.non_merged_items()):
        node[step] = copy.deepcopy(node[step]) if step in node else 0.0
    inner = node[step] if isinstance(node, CommentedSeq) or step in node else None
    if isinstance(inner, (CommentedMap, CommentedSeq)):
        own = copy.deepcopy(inner)
        if inner.anchor.value is None:
            return
        if isinstance(node, CommentedSeq) and any(
            item is inner for i, item in enumerate(node) if i < step
        ):
            own.yaml_set_anchor(None)
            node[step] = own


def _is_flow(node: CommentedMap) -> bool:
    return bool(node.fa.flow_style())


def _mark(node: CommentedMap, key: Any, note: str, marked: set[int]) -> None:
    """Put the note behind a line in place of the comment there; lines below keep theirs."""
    if id(node) * 1000003 + hash(key) in marked:
        return
    marked.add(id(node) * 1000003 + hash(key))
    if isinstance(node[key], (CommentedMap, CommentedSeq)) and not node[key].fa.flow_style():
        return  # its entries have lines of their own
    behind = node.ca.items.get(key, [None] * 4)[2]
    _, newline, after = behind.value.partition('\n') if behind is not None else ('', '', '')
    node.yaml_add_eol_comment(note, key, column=_COMMENT_COLUMN)
    node.ca.items[key][2].value += newline + after
