"""Limits of the configuration itself, in addition to those of the actuators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.bound_kernels import (
    brought_within,
    configuration_holds,
    configuration_rows,
)
from softarm_ros.geometry.arrays import Array

_ROUNDING = 1e-8  # rounding error, as a share of a coordinate's range or a largest bending
_NEAR = 1e-3  # a limit counts as reached within this share of the range or the largest bending


@dataclass(frozen=True)
class ConfigurationLimits:
    """
    Ranges of the coordinates and largest bendings of a configuration.

    Attributes
    ----------
    lower, upper : (dof,)
        Range of each coordinate, in its unit; infinite if it has no limits.
    bends : (k, 2) of int
        Index pairs of the coordinates that form a bending vector (b_x, b_y).
    max_bending_rad : (k,)
        Largest norm of each bending vector.

    """

    lower: Array
    upper: Array
    bends: NDArray[np.int64]
    max_bending_rad: Array

    @staticmethod
    def of_bending(max_bending_rad: Array) -> ConfigurationLimits:
        """Return the limits of a configuration of one bending vector per section."""
        limits = np.asarray(max_bending_rad, dtype=float)
        dof = 2 * len(limits)
        return ConfigurationLimits(
            np.full(dof, -np.inf), np.full(dof, np.inf), np.arange(dof).reshape(-1, 2), limits
        )

    @staticmethod
    def of_range(lower: Array, upper: Array) -> ConfigurationLimits:
        """Return the limits of a configuration with a separate range for each coordinate."""
        return ConfigurationLimits(
            np.asarray(lower, dtype=float),
            np.asarray(upper, dtype=float),
            np.zeros((0, 2), dtype=np.int64),
            np.zeros(0),
        )

    @cached_property
    def _range(self) -> Array:
        """Width (dof,) of each coordinate's range; 0 if it is infinite."""
        width = self.upper - self.lower
        return np.where(np.isfinite(width), width, 0.0)

    @cached_property
    def _rounding(self) -> Array:
        """Amount (dof,) by which rounding may take a coordinate out of its range."""
        return _ROUNDING * self._range

    @cached_property
    def _longest_rad(self) -> Array:
        """Largest norm (k,) [rad] of each bending vector, rounding included."""
        return self.max_bending_rad * (1.0 + _ROUNDING)

    def check(self, configuration: Array, names: Sequence[str]) -> None:
        """
        Raise an error if a configuration has the wrong shape, is not finite or exceeds a limit.

        Raises
        ------
        ValueError
            If so; the message names the coordinate (from `names`), its value and its limit.

        """
        # A copy: the kernels are not compiled for views of arrays.
        configuration = np.array(configuration, dtype=float)
        if configuration.shape != self.lower.shape:
            raise ValueError(
                f'configuration has shape {configuration.shape}; expected {self.lower.shape} '
                f'for {", ".join(names)}'
            )
        slack, longest = self._rounding, self._longest_rad
        if configuration_holds(configuration, self.lower, self.upper, slack, self.bends, longest):
            return
        for name, value in zip(names, configuration):
            if not np.isfinite(value):
                raise ValueError(f'{name} = {value}: expected a finite number')
        outside = (configuration < self.lower - slack) | (configuration > self.upper + slack)
        for i in map(int, np.flatnonzero(outside)):
            low, high = self.lower[i], self.upper[i]
            raise ValueError(
                f'{names[i]} = {configuration[i]:.6g} outside [{low:.6g}, {high:.6g}]'
            )
        for pair, limit, most in zip(self.bends, self.max_bending_rad, longest):
            size = float(np.hypot(*configuration[pair]))
            if size > most:
                x, y = (names[i] for i in pair)
                raise ValueError(
                    f'({x}, {y}) bends by {np.degrees(size):.6g} deg; '
                    f'expected at most {np.degrees(limit):.6g} deg'
                )

    def reached(self, configuration: Array, names: Sequence[str]) -> list[str]:
        """Return a text for each limit that a configuration (dof,) has reached."""
        near = _NEAR * self._range
        found = [
            f'{name} at {end:.4g}'
            for i, name in enumerate(names)
            for end in (self.lower[i], self.upper[i])
            if abs(configuration[i] - end) <= near[i]
        ]
        for pair, limit in zip(self.bends, self.max_bending_rad):
            if np.hypot(*configuration[pair]) >= (1.0 - _NEAR) * limit:
                x, y = (names[i] for i in pair)
                found.append(f'({x}, {y}) at {np.degrees(limit):.4g} deg')
        return found

    def velocity_bounds(self, configuration: Array, period_s: float) -> tuple[Array, Array, Array]:
        """
        Return rows (r, dof), low (r,), high (r,): low <= rows @ qdot <= high for one period.

        The norm of a bending vector is bounded along its present direction.
        """
        rows, low, high = configuration_rows(
            configuration, period_s, self.lower, self.upper, self.bends, self.max_bending_rad
        )
        return rows, low, high

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """
        Return n configurations (n, dof) drawn uniformly within the limits.

        Raises
        ------
        ValueError
            If a coordinate has no limits.

        """
        drawn = rng.uniform(size=(n, len(self.lower)))
        free = np.ones(len(self.lower), dtype=bool)
        for pair, limit in zip(self.bends, self.max_bending_rad):
            size = limit * np.sqrt(drawn[:, pair[0]])
            angle = 2.0 * np.pi * drawn[:, pair[1]]
            drawn[:, pair[0]], drawn[:, pair[1]] = size * np.cos(angle), size * np.sin(angle)
            free[pair] = False
        low, high = self.lower[free], self.upper[free]
        if not np.all(np.isfinite(high - low)):
            raise ValueError('no configurations can be drawn: a coordinate has no limits')
        drawn[:, free] = low + (high - low) * drawn[:, free]
        return drawn

    def use(self, configurations: Array) -> Array:
        """Return the largest share (n,) of a limit that each configuration (n, dof) uses."""
        share = np.zeros(len(configurations))
        for pair, limit in zip(self.bends, self.max_bending_rad):
            share = np.maximum(share, np.hypot(*configurations[:, pair].T) / limit)
        bounded = np.isfinite(self.lower) & np.isfinite(self.upper)
        if np.any(bounded):
            middle = 0.5 * (self.lower[bounded] + self.upper[bounded])
            half = 0.5 * (self.upper[bounded] - self.lower[bounded])
            away = np.abs(configurations[:, bounded] - middle) / half
            share = np.maximum(share, away.max(axis=1))
        return share

    def clipped(self, configuration: Array) -> Array:
        """Return the configuration (dof,) clipped to the limits."""
        inside: Array = brought_within(
            configuration, self.lower, self.upper, self.bends, self.max_bending_rad
        )
        return inside
