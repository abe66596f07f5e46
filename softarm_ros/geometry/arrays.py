"""Arrays from users, checked where they enter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


def finite_array(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """
    Return a contiguous, writable copy of the right shape, the only kind kernels compile for.

    Raises
    ------
    ValueError
        For another shape or a value that is not finite; names `what`.

    """
    array = np.array(value, dtype=np.float64, order='C')
    if array.shape != shape:
        raise ValueError(f'{what} has shape {array.shape}, expected {shape}')
    if not np.isfinite(array).all():
        raise ValueError(f'{what} = {array.tolist()} is not finite')
    return array
