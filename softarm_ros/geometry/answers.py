"""What a part answers: whether it is an array as it has to be, and how to tell what it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_LONGEST = 200  # letters


def has_floats(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a value is an array of this shape, of float64 as kernels are compiled for."""
    return type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape


def has_finite_floats(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether it is so, and all of them finite."""
    # The product with itself: one call for what is looked at several times a step.
    return has_floats(value, shape) and math.isfinite(np.vdot(value, value))


def misfit(whose: str, name: str, value: Any, expected: str) -> str:
    """Return what was answered in place of so many numbers."""
    return f'{whose} returned {name} {described(value)}; expected {expected} numbers, float64'


def described(value: Any) -> str:
    """Return an answer in words: values of an array, its type where that is not float64."""
    if isinstance(value, np.ndarray):
        kind = '' if value.dtype == np.float64 else f' ({value.dtype})'
        text = f'{value.tolist()}{kind}'
    else:
        text = f'{value!r} ({type(value).__name__})' if value is not None else 'None'
    return text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'


def numbers(shape: tuple[int, ...]) -> str:
    """Return how many numbers an array of a shape has: '3 x 2'."""
    return ' x '.join(map(str, shape))
