"""Faults as lines of text, `cable snap proximal_1`: what can break in a simulated arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ACTUATOR = 'ACTUATOR'  # the word for the name of one, in what may be injected


@dataclass(frozen=True)
class InjectedFault:
    """What the words after the first two mean, and what they do."""

    arguments: tuple[tuple[str, Callable[[str], Any]], ...]
    work: Callable[..., None]


Faults = Mapping[str, InjectedFault]


def inject(faults: Faults, line: str) -> str:
    """
    Do what a line says; return the line.

    Raises
    ------
    ValueError
        If there is no such fault or an argument is none, with all there are.

    """
    words = line.split()
    fault = faults.get(' '.join(words[:2]))
    given = words[2:]
    if fault is None or len(given) != len(fault.arguments):
        raise ValueError(f'no such fault {line!r}; known: {"; ".join(usage(faults))}')
    fault.work(*(kind(word) for (_, kind), word in zip(fault.arguments, given)))
    return ' '.join(words)


def usage(faults: Faults) -> list[str]:
    """Return how each fault is written."""
    return [
        ' '.join((name, *(argument for argument, _ in fault.arguments)))
        for name, fault in faults.items()
    ]


def kilograms(word: str) -> float:
    """Return a mass [kg]; ValueError for one that cannot be."""
    value = _number(word)
    if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f'{word} kg: expected a finite number of at least 0')
    return value


def millimetres(word: str) -> float:
    """Return a length [mm]; ValueError for one that is not finite."""
    value = _number(word)
    if not math.isfinite(value):
        raise ValueError(f'{word} mm: expected a finite number')
    return value


def _number(word: str) -> float:
    """Return a number, not a number for a word that is none."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def actuator_word(names: Sequence[str]) -> tuple[str, Callable[[str], int]]:
    """Return the argument that names an actuator, and what makes an index of it."""

    def index(word: str) -> int:
        if word not in names:
            raise ValueError(f'no actuator {word!r}; there are {", ".join(names)}')
        return names.index(word)

    return ACTUATOR, index
