"""Parse YAML text into plain data with the line of every field."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from softarm_ros.rigs.errors import FieldPath, Problem, RigError, format_path

_MERGE_TAG = 'tag:yaml.org,2002:merge'
_MAX_CHARACTERS = 4_000_000
_KEPT = 32  # parsed texts in the cache: more than all rigs of the package


@dataclass(frozen=True)
class YamlDocument:
    """
    One mapping read from a file.

    Attributes
    ----------
    source : str
        File name for messages.
    data : dict
        Mappings as dict, sequences as tuple, scalars as Python values.
    lines : dict
        1-based line of every field path.
    problems : list of Problem
        Problems of the YAML itself that do not prevent reading (duplicate keys).
    text : str
        The text that was parsed.
    settings : dict
        The setting that replaced or added the value at a path; see `apply_settings`.

    """

    source: str
    data: dict[Any, Any]
    lines: dict[FieldPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    text: str = ''
    settings: dict[FieldPath, str] = field(default_factory=dict)

    def setting_of(self, path: FieldPath) -> str | None:
        """Return the setting that a value comes from, or None if it stands in the file."""
        found = (self.settings.get(path[:end]) for end in range(len(path), 0, -1))
        return next(filter(None, found), None)

    def line_of(self, path: FieldPath) -> int | None:
        """Return the line of a field, or of the nearest mapping around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None

    def value_at(self, path: FieldPath) -> Any:
        """Return the value at a path, or None."""
        value: Any = self.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value


def read_yaml(path: Path) -> YamlDocument:
    """
    Read a file that holds one mapping.

    Raises
    ------
    RigError
        If the file does not exist, cannot be read, is not YAML, is empty, or holds no mapping.

    """
    source = str(path)
    if path.is_dir():
        raise RigError(source, 'is a folder; expected a YAML file')
    try:
        with path.open(encoding='utf-8') as file:  # may be a device without an end
            text = file.read(_MAX_CHARACTERS + 1)
    except FileNotFoundError:
        raise RigError(source, 'no such file') from None
    except UnicodeDecodeError:
        raise RigError(source, 'is not text in UTF-8; expected a YAML file') from None
    except OSError as error:
        raise RigError(source, f'cannot be read ({error.strerror})') from None
    if len(text) > _MAX_CHARACTERS:
        raise RigError(source, f'larger than {_MAX_CHARACTERS} characters; expected a YAML file')
    return parse_yaml(text, source)


def parse_yaml(text: str, source: str) -> YamlDocument:
    """Parse text that holds one YAML mapping; see `read_yaml`."""
    kept = _parsed(text, source)
    return replace(
        kept, data=_copied(kept.data), lines=dict(kept.lines), problems=list(kept.problems)
    )


def _copied(value: Any) -> Any:
    """Return a copy of all mappings that shares other values; ten times faster than `deepcopy`."""
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    return value


# Parsing takes half the time of loading a rig. Callers get a copy that they may change.
@lru_cache(_KEPT)
def _parsed(text: str, source: str) -> YamlDocument:
    yaml = YAML(typ='safe', pure=True)
    try:
        root = yaml.compose(text)
        if root is None:
            raise RigError(source, 'the file is empty; expected a mapping of fields')
        if not isinstance(root, MappingNode):
            problem = Problem((), f'expected a mapping of fields, found {_kind(root)}', None, 1)
            raise RigError(source, [problem])
        builder = _Builder(yaml)
        data = builder.mapping(root, ())
    except YAMLError as error:
        raise RigError(source, [_syntax_problem(error)]) from None
    return YamlDocument(source, data, {(): _line(root), **builder.lines}, builder.problems, text)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _kind(node: Node) -> str:
    if isinstance(node, SequenceNode):
        return 'a list'
    return f'the single value {node.value!r}'


def _syntax_problem(error: YAMLError) -> Problem:
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        what = ', '.join(str(t) for t in (error.context, error.problem) if t)
        line = None if mark is None else mark.line + 1
        return Problem((), f'not valid YAML: {what}', None, line)
    return Problem((), f'not valid YAML: {" ".join(str(error).split())}')


class _Builder:
    """Turns composed nodes into plain data; records lines and duplicate keys."""

    def __init__(self, yaml: YAML) -> None:
        self._constructor = yaml.constructor
        self._open: set[int] = set()
        self.lines: dict[FieldPath, int] = {}
        self.problems: list[Problem] = []

    def value(self, node: Node, path: FieldPath) -> Any:
        if isinstance(node, ScalarNode):
            return self._constructor.construct_object(node)
        if id(node) in self._open:
            self.problems.append(Problem(path, 'contains itself by an alias', None, _line(node)))
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self.mapping(node, path)
            return self._sequence(node, path)
        finally:
            self._open.discard(id(node))

    def _sequence(self, node: Node, path: FieldPath) -> tuple[Any, ...]:
        items = []
        for i, item in enumerate(node.value):
            place = (*path, i)
            self.lines[place] = _line(item)
            items.append(self.value(item, place))
        return tuple(items)

    def mapping(self, node: Node, path: FieldPath) -> dict[Any, Any]:
        data = self._merged(node, path)
        own: dict[Any, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE_TAG:
                continue
            if not isinstance(key_node, ScalarNode):
                self.problems.append(Problem(path, 'a key is not text', None, _line(key_node)))
                continue
            key = self._constructor.construct_object(key_node)
            place = (*path, key)
            if key in own:
                message = f'duplicate key {key!r}; first on line {own[key]}'
                self.problems.append(Problem(place, message, None, _line(key_node)))
                continue
            own[key] = _line(key_node)
            self.lines[place] = _line(key_node)
            data[key] = self.value(value_node, place)
        return data

    def _merged(self, node: Node, path: FieldPath) -> dict[Any, Any]:
        """Return the mapping of `<<: *anchor`; the keys of the mapping itself override it."""
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != _MERGE_TAG:
                continue
            sources = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
            for source in sources:
                merged = self.value(source, path)
                if not isinstance(merged, dict):
                    message = f'<< expects a mapping at {format_path(path) or "top level"}'
                    self.problems.append(Problem(path, message, None, _line(key_node)))
                    continue
                data = {**merged, **data}
        return data
