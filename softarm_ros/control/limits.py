"""Limits of actuators and the error that names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array

_ROUNDING = 1e-8  # of an actuator's range


class LimitError(ValueError):
    """A command lies outside what an actuator may do."""

    def __init__(self, name: str, value: float, low: float, high: float, unit: str) -> None:
        super().__init__(f'{name} = {value:.6g} {unit} outside [{low:.6g}, {high:.6g}] {unit}')
        self.name, self.value, self.low, self.high, self.unit = name, value, low, high, unit


@dataclass(frozen=True)
class ActuatorLimits:
    """
    Limits of all actuators of an arm, each array (m,), in the actuators' SI unit.

    `effort_unit` is that of the effort which the actuators report beside their position.

    Attributes
    ----------
    position_min, position_max : (m,)
        Range of the command.
    max_speed, max_acceleration : (m,)
        Bounds of its first and second derivative.

    """

    names: tuple[str, ...]
    unit: str
    position_min: Array
    position_max: Array
    max_speed: Array
    max_acceleration: Array
    effort_unit: str = 'N'

    @property
    def rounding(self) -> Array:
        """Amount (m,) by which rounding of sums may take a command out of its range."""
        return _ROUNDING * (self.position_max - self.position_min)

    def check(self, values: Sequence[float] | Array) -> Array:
        """
        Return the command as an array (m,).

        Raises
        ------
        ValueError
            If the number of values is wrong or one is not finite.
        LimitError
            If a value lies outside its range.

        """
        command = np.asarray(values, dtype=float)
        if command.shape != (len(self.names),):
            raise ValueError(
                f'command has shape {command.shape}; expected ({len(self.names)},) '
                f'for {", ".join(self.names)}'
            )
        for name, value, low, high, tolerance in zip(
            self.names, command, self.position_min, self.position_max, self.rounding
        ):
            if not np.isfinite(value):
                raise ValueError(f'{name} = {value}: expected a finite number of {self.unit}')
            if not low - tolerance <= value <= high + tolerance:
                raise LimitError(name, float(value), float(low), float(high), self.unit)
        return command

    def hold(self, command: Array) -> bool:
        """Return whether a command (m,) lies within its range."""
        slack = self.rounding
        return bool(
            np.all(command >= self.position_min - slack)
            and np.all(command <= self.position_max + slack)
        )

    def rate_bounds(self, command: Array, rate: Array, period_s: float) -> tuple[Array, Array]:
        """
        Return (m,) bounds on the next rate of change that keep every limit reachable.

        Speed, acceleration from the present `rate`, and braking before the end of the range
        (`fastest_towards`). Where acceleration and range contradict, the range wins.
        """
        room_up = np.maximum(self.position_max - command, 0.0)
        room_down = np.maximum(command - self.position_min, 0.0)
        brake = self.max_acceleration
        up = np.minimum(self.max_speed, fastest_towards(room_up, brake, period_s))
        down = np.minimum(self.max_speed, fastest_towards(room_down, brake, period_s))
        change = self.max_acceleration * period_s
        high = np.minimum(up, rate + change)
        low = np.maximum(-down, rate - change)
        crossed = low > high
        if np.any(crossed):
            low = np.where(crossed, np.clip(rate, -down, up), low)
            high = np.where(crossed, low, high)
        return low, high


def fastest_towards(room: Array, brake: Array, period_s: float) -> Array:
    """
    Return the largest speeds (n,) from which braking in whole periods stays within room (n,).

    Of n periods, each slower by `brake` times the period than the one before, the way is
    n v T - brake T^2 n (n - 1) / 2; the last of them may be slower by less.
    """
    step = brake * period_s**2
    periods = np.maximum(np.ceil(0.5 * (np.sqrt(1.0 + 8.0 * room / step) - 1.0)), 1.0)
    return np.asarray((room / periods + 0.5 * step * (periods - 1.0)) / period_s)
