"""Arguments that arrive as text, of a launch file: read strictly, refused by name."""

from __future__ import annotations

import math

from softarm_ros.rigs.errors import RigError

_YES, _NO = ('true', 'yes', 'on', '1'), ('false', 'no', 'off', '0')


def switch(name: str, text: str) -> bool:
    """Return a yes or no; raises RigError that names the argument, its value and what is meant."""
    value = text.strip().lower()
    if value in _YES or value in _NO:
        return value in _YES
    raise _refused(name, text, 'true or false')


def whole(name: str, text: str) -> int:
    """Return a whole number; raises RigError that names the argument and its value."""
    try:
        return int(text)
    except ValueError:
        raise _refused(name, text, 'a whole number') from None


def number(name: str, text: str) -> float:
    """Return a finite number; raises RigError that names the argument and its value."""
    try:
        value = float(text)
    except ValueError:
        raise _refused(name, text, 'a number') from None
    if not math.isfinite(value):
        raise _refused(name, text, 'a finite number')
    return value


def _refused(name: str, text: str, expected: str) -> RigError:
    return RigError('', f'{name}:={text}: expected {expected}')
