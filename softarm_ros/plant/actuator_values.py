"""Check of the values that callers give to the actuators of a simulated arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array, real_array


def as_actuation(
    values: ArrayLike, count: int, what: str, names: Sequence[str] | None = None
) -> Array:
    """
    Return actuator values as a new array (count,).

    Raises
    ------
    ValueError
        If the shape is wrong or a value is not finite, naming the actuator, or its index if no
        names are given.

    """
    array = real_array(values, what)
    if array.shape != (count,):
        raise ValueError(f'{what} has shape {array.shape}, expected ({count},)')
    finite = np.isfinite(array)
    if not finite.all():
        index = int(finite.argmin())
        which = f'{what}[{index}]' if names is None else f'{what} of {names[index]}'
        raise ValueError(f'{which} = {array[index]} is not finite')
    return array
