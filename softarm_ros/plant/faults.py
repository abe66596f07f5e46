"""Faults of a simulated arm, injected as lines of text such as `cable snap proximal_1`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ACTUATOR = 'ACTUATOR'  # placeholder for an actuator's name in the usage of a fault


@dataclass(frozen=True)
class InjectedFault:
    """Arguments of a fault, as placeholder and parser, and the function that causes it."""

    arguments: tuple[tuple[str, Callable[[str], Any]], ...]
    work: Callable[..., None]


Faults = Mapping[str, InjectedFault]


def inject(faults: Faults, line: str) -> str:
    """
    Inject the fault that a line describes; return the line.

    Raises
    ------
    ValueError
        If the fault is unknown or an argument is invalid; the message lists the known faults.

    """
    words = line.split()
    fault = faults.get(' '.join(words[:2]))
    given = words[2:]
    if fault is None or len(given) != len(fault.arguments):
        raise ValueError(f'no such fault {line!r}; known: {"; ".join(usage(faults))}')
    fault.work(*(kind(word) for (_, kind), word in zip(fault.arguments, given)))
    return ' '.join(words)


def usage(faults: Faults) -> list[str]:
    """Return the syntax of each fault."""
    return [
        ' '.join((name, *(argument for argument, _ in fault.arguments)))
        for name, fault in faults.items()
    ]


def kilograms(word: str) -> float:
    """Return a mass [kg]; raise ValueError if it is negative or not finite."""
    value = _number(word)
    if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f'{word} kg: expected a finite number of at least 0')
    return value


def millimetres(word: str) -> float:
    """Return a length [mm]; raise ValueError if it is not finite."""
    return _length(word, 'mm')


def metres(word: str) -> float:
    """Return a length [m]; raise ValueError if it is not finite."""
    return _length(word, 'm')


def probability(word: str) -> float:
    """Return a probability; raise ValueError unless it is 0 to 1."""
    value = _number(word)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f'{word}: expected a probability of 0 to 1')
    return value


def milliseconds(word: str) -> float:
    """Return a time [s]; raise ValueError unless it is 0 to 60000 ms."""
    value = _number(word)
    if not 0.0 <= value <= 60_000.0:
        raise ValueError(f'{word} ms: expected 0 to 60000')
    return 1e-3 * value


def _length(word: str, unit: str) -> float:
    value = _number(word)
    if not math.isfinite(value):
        raise ValueError(f'{word} {unit}: expected a finite number')
    return value


def _number(word: str) -> float:
    """Return a number, or NaN if the word is no number."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def actuator_word(names: Sequence[str]) -> tuple[str, Callable[[str], int]]:
    """Return the argument for an actuator's name, and the function that returns its index."""

    def index(word: str) -> int:
        if word not in names:
            raise ValueError(f'no actuator {word!r}; there are {", ".join(names)}')
        return names.index(word)

    return ACTUATOR, index
