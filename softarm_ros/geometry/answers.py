"""Checks of arrays that parts return, and their description in error messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_LONGEST = 200  # characters


def has_floats(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a value is a float64 array of this shape, as the kernels require."""
    return type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape


def has_finite_floats(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a value is a float64 array of this shape with finite elements only."""
    # A product with itself takes a single call; this check runs several times per step.
    return has_floats(value, shape) and math.isfinite(np.vdot(value, value))


def misfit(whose: str, name: str, value: Any, expected: str) -> str:
    """Return the error text for a wrong value that a part returned."""
    return f'{whose} returned {name} {described(value)}; expected {expected} numbers, float64'


def described(value: Any) -> str:
    """Return a value as text: the elements of an array, and its type if not float64."""
    if isinstance(value, np.ndarray):
        kind = '' if value.dtype == np.float64 else f' ({value.dtype})'
        text = f'{value.tolist()}{kind}'
    else:
        text = f'{value!r} ({type(value).__name__})' if value is not None else 'None'
    return text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'


def numbers(shape: tuple[int, ...]) -> str:
    """Return the size of an array as text, such as '3 x 2'."""
    return ' x '.join(map(str, shape))
