"""Validate plain data as a configuration, or report every problem with its line."""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from softarm_ros.rigs.errors import (
    FieldPath,
    InconsistentRigError,
    Problem,
    RigError,
    closest,
    did_you_mean,
    listed,
    value_text,
)
from softarm_ros.rigs.expectation import SchemaTree
from softarm_ros.rigs.yaml_document import YamlDocument

# Type of errors whose message is reported unchanged.
PART_ERROR = 'part'


class Described(Protocol):
    """Additional knowledge of a document whose parts are found by name."""

    def tree(self, document: YamlDocument) -> SchemaTree:
        """Return the schema of the fields that the document may have."""

    def between(self, document: YamlDocument, wrong: set[FieldPath]) -> list[Problem]:
        """Return the problems between those fields that are valid by themselves."""


def validate_document(
    kind: Any, document: YamlDocument, described: Described | None = None
) -> Any:
    """
    Validate a document strictly: numbers must be numbers, unknown keys are refused.

    Parameters
    ----------
    kind : type or annotation
        Type of the result.
    document : YamlDocument
        Data to validate.
    described : Described, optional
        Description of the fields, for documents whose parts are found by name.

    Raises
    ------
    RigError
        With every problem found, including those between fields that are valid by themselves.

    """
    problems = list(document.problems)
    value: Any = None
    try:
        context = {'strict': True, 'data': document.data}
        value = adapter_of(kind).validate_python(document.data, strict=True, context=context)
    except ValidationError as error:
        tree = _schema_tree(kind) if described is None else described.tree(document)
        problems += _in_words(error, document, tree)
        wrong = {path for d in error.errors() if (path := tree.place(d['loc'], document))}
        if described is not None and wrong:  # otherwise the checks have run
            problems += [_placed(p, document) for p in described.between(document, wrong)]
    if problems:
        raise RigError(document.source, _without_repetition(problems))
    return value


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return the validator of a class or annotation; cached, since making one is slow."""
    return TypeAdapter(kind)


@cache
def _schema_tree(kind: Any) -> SchemaTree:
    return SchemaTree(adapter_of(kind).json_schema())


def _without_repetition(problems: list[Problem]) -> list[Problem]:
    """Keep one of several problems that an alias or merge key repeats for one line of text."""
    kept: dict[tuple[Any, ...], Problem] = {}
    for problem in problems:
        keys = tuple(part for part in problem.path if isinstance(part, str))
        # Without a line, the path alone distinguishes problems.
        place = problem.path if problem.line is None else (problem.line, keys)
        kept.setdefault((place, problem.message, problem.value), problem)
    return list(kept.values())


def _in_words(error: ValidationError, document: YamlDocument, tree: SchemaTree) -> list[Problem]:
    problems: list[Problem] = []
    explained: set[FieldPath] = set()
    details = error.errors()
    missing = {tree.place(d['loc'], document) for d in details if d['type'] == 'missing'}
    for detail in details:
        path = tree.place(detail['loc'], document)
        if detail['type'] == 'extra_forbidden':
            known = tree.fields(path[:-1], document)
            meant = closest(path[-1], known)
            if meant is not None:
                explained.add((*path[:-1], meant))
    # A misspelt field is one problem, so the right name is not also reported as missing.
    skip = missing & explained
    for detail in details:
        path = tree.place(detail['loc'], document)
        if detail['type'] == 'missing' and path in skip:
            continue
        if detail['type'] == 'too_short' and detail['ctx']['actual_length'] < _length(
            document, path
        ):
            continue  # pydantic counts valid items only; invalid items are reported separately
        cause = detail.get('ctx', {}).get('error')
        if isinstance(cause, InconsistentRigError):
            problems += [_placed(p, document) for p in cause.problems]
        else:
            problem = _one(detail['type'], path, detail.get('ctx', {}), document, tree)
            problems.append(_placed(problem, document))
    return problems


def _length(document: YamlDocument, path: FieldPath) -> int:
    value = document.value_at(path)
    return len(value) if isinstance(value, (tuple, dict)) else 0


def _placed(problem: Problem, document: YamlDocument) -> Problem:
    setting = document.setting_of(problem.path)
    if setting is not None:  # the line has another value, or none
        message = f'{problem.message}; from the setting {setting!r}'
        return Problem(problem.path, message, problem.value)
    line = document.line_of(problem.path)
    return Problem(problem.path, problem.message, problem.value, line)


def _one(
    kind: str, path: FieldPath, context: Any, document: YamlDocument, tree: SchemaTree
) -> Problem:
    cause, message = context.get('error'), context.get('message')
    if kind == 'extra_forbidden':
        known = tree.fields(path[:-1], document)
        value = value_text(document.value_at(path))
        hint = did_you_mean(path[-1], known) or f'; known: {listed(known)}'
        return Problem(path, f'unknown field {str(path[-1])!r}{hint}', value)
    if kind in ('union_tag_invalid', 'union_tag_not_found'):
        path = (*path, tree.tag(path, document))
        kind = 'missing' if kind == 'union_tag_not_found' else 'literal'
    if kind == PART_ERROR:
        at = document.value_at(path)
        unsaid = at is None or isinstance(at, dict)
        return Problem(path, str(message), None if unsaid else value_text(at))
    if path and path[-1] == '[key]':
        name = path[-2]
        expected = 'text of lowercase letters, digits and _, starting with a letter'
        return Problem(path[:-1], f'name {name!r}: expected {expected}')
    if kind == 'missing' and isinstance(path[-1], int):
        path, kind = path[:-1], 'too_short'
    expected = tree.expected(path, document)
    if kind == 'missing':
        description = tree.description(path, document)
        return Problem(
            path, f'missing; expected {expected}' + (description and f' ({description})')
        )
    value = document.value_at(path)
    if cause is not None:
        whole = value is None or isinstance(value, (tuple, dict))  # the message names the part
        return Problem(path, str(cause), None if whole else value_text(value))
    choices = tree.choices(path, document)
    hint = did_you_mean(value, choices) if isinstance(value, str) and len(choices) > 1 else ''
    return Problem(path, f'expected {expected}{hint}', value_text(value))
