"""Checks of counts that users pass in."""

from __future__ import annotations

import operator
import reprlib


def whole_number(value: object, what: str, expected: str) -> int:
    """
    Return a whole number, also one of numpy.

    Raises
    ------
    ValueError
        If the value is of another type, also a float such as 3.0; names `what` and `expected`.

    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f'{what} = {reprlib.repr(value)}: expected {expected}') from None
