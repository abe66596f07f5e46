"""Limits of actuators, and the error that names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softarm_ros.control.bound_kernels import lies_within, rate_bounds
from softarm_ros.geometry.arrays import Array

_ROUNDING = 1e-8  # rounding error, as a share of an actuator's range
_NEAR = 1e-3  # a limit counts as reached within this share of the range or speed


class LimitError(ValueError):
    """A command lies outside an actuator's range."""

    def __init__(self, name: str, value: float, low: float, high: float, unit: str) -> None:
        super().__init__(f'{name} = {value:.6g} {unit} outside [{low:.6g}, {high:.6g}] {unit}')
        self.name, self.value, self.low, self.high, self.unit = name, value, low, high, unit


@dataclass(frozen=True)
class ActuatorLimits:
    """
    Limits of all actuators of an arm, each array (m,), in the actuators' SI unit.

    `effort_unit` is the unit of the effort that the actuators report beside their position.

    Attributes
    ----------
    position_min, position_max : (m,)
        Range of the command.
    max_speed, max_acceleration : (m,)
        Largest magnitude of its first and second time derivative.

    """

    names: tuple[str, ...]
    unit: str
    position_min: Array
    position_max: Array
    max_speed: Array
    max_acceleration: Array
    effort_unit: str = 'N'

    @cached_property
    def rounding(self) -> Array:
        """Amount (m,) by which rounding may take a command out of its range."""
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
        command = np.array(values, dtype=float)  # a copy: the kernels take no views of arrays
        if command.shape != (len(self.names),):
            raise ValueError(
                f'command has shape {command.shape}; expected ({len(self.names)},) '
                f'for {", ".join(self.names)}'
            )
        if self.hold(command):
            return command
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
        return lies_within(command, self.position_min, self.position_max, self.rounding)

    def reached(self, command: Array, rate: Array) -> list[str]:
        """Return a text for each limit that a command (m,) and its rate (m,) have reached."""
        near = _NEAR * (self.position_max - self.position_min)
        found = []
        for i, name in enumerate(self.names):
            for end in (self.position_min[i], self.position_max[i]):
                if abs(command[i] - end) <= near[i]:
                    found.append(f'{name} at {end:.4g} {self.unit}')
            if abs(rate[i]) >= (1.0 - _NEAR) * self.max_speed[i]:
                found.append(f'{name} at {self.max_speed[i]:.4g} {self.unit}/s')
        return found

    def rate_bounds(self, command: Array, rate: Array, period_s: float) -> tuple[Array, Array]:
        """
        Return bounds (m,) on the next rate of change that respect every limit.

        They follow from the largest speed, from the acceleration relative to the present `rate`,
        and from braking before the end of the range (`fastest_towards`). If acceleration and range
        contradict each other, the range wins.
        """
        low, high = rate_bounds(
            command,
            rate,
            period_s,
            self.position_min,
            self.position_max,
            self.max_speed,
            self.max_acceleration,
        )
        return low, high
