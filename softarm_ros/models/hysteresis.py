"""
Hysteresis and lag of actuators, as a part of an arm's model.

Under commands u (from -1 to 1 over their ranges), an arm takes the shape that its statics give for

    h(u) = u - sum_i w_i (u - P_i u) - s (u - L u),    w_i >= 0, s >= 0, sum w_i + s < 1,

where P_i is a play of half width r_i and L a first-order lag: an operator of Prandtl and
Ishlinskii (Visintin 1994; Kuhnen 2003) with creep. After a reversal the slope of h is
1 - sum w_i - s; it is 1 once all plays have been crossed and the lag follows. At a command held
for long L u = u. h is continuous and increasing, so it has an inverse.

The features `play` and `lag` of a residual have the same states; here they act on actuators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.command_features import command_features


@dataclass(frozen=True)
class Hysteresis:
    """
    The operator h of all actuators.

    Attributes
    ----------
    widths : (k,)
        Half widths r of the plays, in half ranges.
    lag_s : float
        Time constant of the lag [s].
    weights : (k + 1, m)
        Weights w of the plays and, in the last row, s of the lag, for each actuator.
    middle, half : (m,)
        Middle and half width of the range of each actuator.

    """

    widths: tuple[float, ...]
    lag_s: float
    weights: Array
    middle: Array
    half: Array

    @property
    def features(self) -> tuple[str, ...]:
        """The plays and the lag, as features of commands."""
        return (*(f'play {width!r}' for width in self.widths), f'lag {self.lag_s!r}')

    def remembered(self, commands: Array, time_s: Array | None) -> Array:
        """
        Return the features (n, (k + 1) m) of commands (n, m), in SI units and in time order.

        They do not depend on the weights.
        """
        return command_features(
            self.features, self._inside(commands), time_s, self._rest, (0,) * len(self.half)
        )

    def lacking(self, remembered: Array) -> Array:
        """Return u - h(u) (..., m) in SI units from features (..., (k + 1) m)."""
        count = len(self.widths) + 1
        parts = remembered.reshape(*remembered.shape[:-1], count, len(self.half))
        signs = np.where(np.arange(count) < count - 1, 1.0, -1.0)  # a lag is L u - u
        return np.asarray(self.half * np.einsum('k,km,...km->...m', signs, self.weights, parts))

    def begun(self, command: Array) -> Array:
        """Return the states (k + 1, m) just after a step from rest to a command (m,), SI units."""
        return self.stepped(np.tile(self._rest, (len(self.widths) + 1, 1)), command, 0.0)

    def stepped(self, states: Array, command: Array, elapsed_s: float) -> Array:
        """
        Return the states (k + 1, m) after a command (m,) in SI units was in effect for a time [s].

        The rows are the outputs of the plays and, last, of the lag, as in `remembered`.
        """
        share = -math.expm1(-elapsed_s / self.lag_s)
        return _stepped(states, command, self.middle, self.half, self._radii, share)

    def lacking_now(self, states: Array, command: Array) -> Array:
        """Return u - h(u) (m,) in SI units at a command (m,) with its states (k + 1, m)."""
        return _lacking(states, command, self.middle, self.half, self.weights)

    @cached_property
    def _radii(self) -> Array:
        return np.array(self.widths)

    @property
    def _rest(self) -> Array:
        return np.clip(-self.middle / self.half, -1.0, 1.0)

    def _inside(self, command: Array) -> Array:
        return np.asarray((command - self.middle) / self.half)


@kernel
def _stepped(
    states: Array, command: Array, middle: Array, half: Array, radii: Array, share: float
) -> Array:
    count, m = states.shape
    after = np.empty((count, m))
    for j in range(m):
        u = (command[j] - middle[j]) / half[j]
        for i in range(count - 1):
            after[i, j] = min(max(states[i, j], u - radii[i]), u + radii[i])
        after[count - 1, j] = states[count - 1, j] + share * (u - states[count - 1, j])
    return after


@kernel
def _lacking(states: Array, command: Array, middle: Array, half: Array, weights: Array) -> Array:
    count, m = states.shape
    found = np.zeros(m)
    for j in range(m):
        u = (command[j] - middle[j]) / half[j]
        for i in range(count):
            found[j] += half[j] * weights[i, j] * (u - states[i, j])
    return found
