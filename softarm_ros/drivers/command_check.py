"""Check the shape and range of a command before a driver takes it; limit and check rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array

CATCH_UP = 1.5  # factor on the largest rate, to catch up with a late command
_LONGEST_STEP_S = 0.05  # longest time the rate limit counts: a pause is not made up for


def check_rate(field: str, rate_hz: float, event: str, command_timeout_s: float) -> None:
    """Raise ValueError if a driver would notice stale commands later than in one period."""
    if rate_hz * command_timeout_s < 1.0:
        raise ValueError(
            f'{field} = {rate_hz:g}: expected at least {1.0 / command_timeout_s:g}, one {event} '
            f'within command_timeout_s = {command_timeout_s:g}'
        )


def approach(target: Array, wanted: Array, max_rate: Array, elapsed_s: float) -> Array:
    """Return the next target (m,): as near to `wanted` as the time since the last one allows."""
    most = CATCH_UP * max_rate * min(elapsed_s, _LONGEST_STEP_S)
    return np.clip(wanted, target - most, target + most)


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
    Check a command and return a copy as an array (m,).

    Parameters
    ----------
    command : (m,)
        Command to check.
    names : sequence of str
        Names of the actuators, in the same order.
    low, high : (m,) or float
        Ends of the range.
    unit : str
        Unit of the values, for messages.
    slack : (m,) or float
        Rounding error by which a value may exceed the range.

    Raises
    ------
    ValueError
        If the command has the wrong shape, is not finite or is beyond the range. The message
        names the actuator, the value and the range.

    """
    values = np.array(command, dtype=np.float64)
    if values.shape != (len(names),):
        raise ValueError(f'command has shape {values.shape}; expected ({len(names)},)')
    numbers = values.tolist()  # compared one by one: faster than six short arrays together
    lows, highs, slacks = (_each(end, len(numbers)) for end in (low, high, slack))
    for name, value, least, most, beyond in zip(names, numbers, lows, highs, slacks):
        if not math.isfinite(value):
            raise ValueError(f'{name} = {value}: expected a finite number of {unit}')
        if not least - beyond <= value <= most + beyond:
            raise ValueError(
                f'{name} = {value:.6g} {unit} outside [{least:.6g}, {most:.6g}] {unit}'
            )
    return values


def _each(end: ArrayLike, count: int) -> list[float]:
    """Return the numbers of an array, or one number `count` times."""
    numbers: float | list[float] = np.asarray(end, dtype=np.float64).tolist()
    return numbers if isinstance(numbers, list) else [numbers] * count
