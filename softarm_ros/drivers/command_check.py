"""Whether a driver can take a command at all: its size, and what it may hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array


def checked_command(
    command: ArrayLike,
    names: Sequence[str],
    low: ArrayLike,
    high: ArrayLike,
    unit: str,
    *,
    slack: ArrayLike = 0.0,
) -> Array:
    """
    Return a command as an array (m,) of its own.

    Parameters
    ----------
    command : (m,)
        What is to be checked.
    names : sequence of str
        Of the actuators, in the same order.
    low, high : (m,) or float
        Ends of the range.
    unit : str
        Of the values, for messages.
    slack : (m,) or float
        What a value may be beyond them by rounding.

    Raises
    ------
    ValueError
        If the command has the wrong shape, is not finite or is beyond the range; names the
        actuator, the value and the range.

    """
    values = np.array(command, dtype=np.float64)
    if values.shape != (len(names),):
        raise ValueError(f'command has shape {values.shape}; expected ({len(names)},)')
    lows, highs, slacks = (np.broadcast_to(end, values.shape) for end in (low, high, slack))
    for name, value, least, most, beyond in zip(names, values, lows, highs, slacks):
        if not np.isfinite(value):
            raise ValueError(f'{name} = {value}: expected a finite number of {unit}')
        if not least - beyond <= value <= most + beyond:
            raise ValueError(
                f'{name} = {value:.6g} {unit} outside [{least:.6g}, {most:.6g}] {unit}'
            )
    return values
