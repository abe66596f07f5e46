"""Errors in hand-written files: all problems at once, each with its line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

FieldPath = tuple[str | int, ...]

_MAX_VALUE_TEXT = 60


@dataclass(frozen=True)
class Problem:
    """
    One problem of a file.

    Attributes
    ----------
    path : tuple
        Keys and indices that lead to the field; () for the file as a whole.
    message : str
        What was expected.
    value : str, optional
        The value found, as text.
    line : int, optional
        1-based line of the file.

    """

    path: FieldPath
    message: str
    value: str | None = None
    line: int | None = None

    def text(self, source: str) -> str:
        """Return `SOURCE:LINE: field = value: message`, leaving out unknown parts."""
        place = source if self.line is None else f'{source}:{self.line}'
        field = format_path(self.path)
        if field and self.value is not None:
            field += f' = {self.value}'
        return ': '.join(part for part in (place, field, self.message) if part)


class InconsistentRigError(ValueError):
    """Carries the problems of a rig whose fields are valid by themselves, but not together."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__('; '.join(p.text('') for p in problems))
        self.problems = problems


class RigError(ValueError):
    """
    A rig or trajectory cannot be used as written; the message lists every problem.

    Attributes
    ----------
    source : str
        File (or name) the problems belong to; may be empty.
    problems : tuple of Problem
        Sorted by line.

    """

    def __init__(self, source: str, problems: str | Sequence[Problem]) -> None:
        if isinstance(problems, str):
            problems = (Problem((), problems),)
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda p: p.line or 0))
        super().__init__('\n'.join(p.text(source) for p in self.problems))

    def __reduce__(self) -> tuple[type[RigError], tuple[str, tuple[Problem, ...]]]:
        """Support pickling, to pass the error between processes."""
        return RigError, (self.source, self.problems)


def format_path(path: FieldPath) -> str:
    """Return `sections[0].length_m` for ('sections', 0, 'length_m')."""
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        else:
            text += f'.{part}' if text else part
    return text


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the known word closest to `word`, or ''."""
    close = closest(word, known)
    return '' if close is None else f' (did you mean {close!r}?)'


def closest(word: object, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known word most similar to `word`, or None below `likeness` (1: identical)."""
    by_lower = {k.lower(): k for k in known}
    found = difflib.get_close_matches(str(word).lower(), list(by_lower), n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None


def listed(words: Iterable[str]) -> str:
    """Return the words in quotes, separated by commas."""
    return ', '.join(repr(w) for w in words)


def value_text(value: Any) -> str:
    """Return a value as it is written in the file, shortened."""
    if isinstance(value, str):
        text = repr(value)
    elif value is None:
        text = 'null'
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, tuple):
        text = '[' + ', '.join(value_text(v) for v in value) + ']'
    elif isinstance(value, dict):
        text = '{' + ', '.join(f'{k}: {value_text(v)}' for k, v in value.items()) + '}'
    else:
        text = str(value)
    return text if len(text) <= _MAX_VALUE_TEXT else text[: _MAX_VALUE_TEXT - 3] + '...'
