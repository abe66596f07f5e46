"""Conversion and checks of arrays that users pass in."""

from __future__ import annotations

import math
import reprlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


def real_array(value: ArrayLike, what: str) -> Array:
    """
    Return a contiguous, writable copy as real numbers; masked elements become NaN.

    Raises
    ------
    ValueError
        If the value is no array of real numbers; names `what`.

    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return np.array(value, order='C')
    try:
        given = np.asanyarray(value)
        if not np.iscomplexobj(given):
            if isinstance(given, np.ma.MaskedArray):
                given = np.ma.filled(given.astype(np.float64), np.nan)
            return np.array(given, dtype=np.float64, order='C')
    except (TypeError, ValueError):
        raise ValueError(f'{what} = {reprlib.repr(value)}: expected real numbers') from None
    raise ValueError(f'{what} is complex: expected real numbers')


def real_rows(value: ArrayLike, what: str, columns: int) -> Array:
    """
    Return a copy (n, columns) as by `real_array`.

    Raises
    ------
    ValueError
        As `real_array`, and for another shape.

    """
    rows = real_array(value, what)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise ValueError(f'{what} have shape {rows.shape}; expected (n, {columns})')
    return rows


def all_finite(values: Array) -> bool:
    """Return whether all of a few numbers (n,) are finite; for few, numpy takes longer."""
    return all(map(math.isfinite, values.tolist()))


def finite_array(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """
    Return a contiguous, writable copy of the given shape, as the kernels require.

    Raises
    ------
    ValueError
        If the shape differs or an element is not finite; names `what`.

    """
    array = real_array(value, what)
    if array.shape != shape:
        raise ValueError(f'{what} has shape {array.shape}, expected {shape}')
    if not np.isfinite(array).all():
        raise ValueError(f'{what} = {array.tolist()} is not finite')
    return array
