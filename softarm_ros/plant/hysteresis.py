"""
Hysteresis and creep of soft actuators, for simulated plants.

Prandtl-Ishlinskii: a sum of stop operators (input less play operators), rate independent.
Kelvin-Voigt: a chain of retarded elements, linear creep, stepped exactly. Both are deterministic
and independent of the step size for inputs that are monotone, or linear in time, within a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive
from softarm_ros.geometry.kernels import kernel


class HysteresisConfig(ConfigBlock):
    """
    Prandtl-Ishlinskii element of three parameters: output = elastic part + stops.

    On the first loading the output is `stiffness` x while all stops stick. The stops then yield
    one after the other, at equal intervals up to `saturation`, and the stiffness decreases in
    equal steps to `stiffness` (1 - `lost_share`): a virgin curve of straight pieces on a parabola.
    """

    stiffness: Positive = Field(description='output per input while all stops stick')
    lost_share: float = Field(
        ge=0.0,
        lt=1.0,
        description='share of the stiffness that is lost once all stops have yielded',
    )
    saturation: Positive = Field(description='input at which the last stop yields')
    stops: int = Field(default=8, ge=1, le=1000)


class CreepConfig(ConfigBlock):
    """Kelvin-Voigt chain: creep of `shares` of the elastic output with the given lags."""

    shares: tuple[NonNegative, ...]
    lags_s: tuple[Positive, ...]

    @model_validator(mode='after')
    def _pairs(self) -> CreepConfig:
        if len(self.shares) != len(self.lags_s):
            raise ValueError(f'{len(self.shares)} shares but {len(self.lags_s)} lags_s')
        return self


@dataclass(frozen=True)
class HysteresisStep:
    """Result of a step of input: output, and work and loss in units of input times output."""

    output: float
    work: float
    dissipated: float


class PrandtlIshlinskii:
    """
    Rate-independent hysteresis: stops in parallel with a spring.

    Stop i of weight w_i holds its deflection s_i in -r_i..r_i and yields there; the output is
    w_0 x + sum of w_i s_i. With positive weights, loops close, larger loops wipe out nested ones,
    equal ones are congruent, and no cycle gains energy.

    Parameters
    ----------
    config
        Three parameters and the number of stops.
    """

    def __init__(self, config: HysteresisConfig) -> None:
        self.config = config
        count = config.stops
        self.thresholds = config.saturation * (np.arange(count) + 1.0) / count
        self.weights = np.full(count, config.stiffness * config.lost_share / count)
        self.elastic = config.stiffness * (1.0 - config.lost_share)
        self.reset()

    def reset(self, position: float = 0.0) -> None:
        """Restart at an input, without memory: every stop unstrained."""
        _require_finite(position, 'position')
        self._input = float(position)
        self._origin = float(position)
        self._stops = np.zeros(self.config.stops)

    @property
    def output(self) -> float:
        """Output at the present input."""
        return self.elastic * (self._input - self._origin) + float(self.weights @ self._stops)

    @property
    def stored(self) -> float:
        """Energy stored in spring and stops."""
        stretch = self._input - self._origin
        stops = float(self.weights @ (self._stops * self._stops))
        return 0.5 * (self.elastic * stretch * stretch + stops)

    def step(self, position: float) -> HysteresisStep:
        """Move the input to a position, monotonically; the work is exact for such a move."""
        _require_finite(position, 'position')
        stored = self.stored
        dissipated = move_stops(position - self._input, self.thresholds, self.weights, self._stops)
        self._input = float(position)
        return HysteresisStep(self.output, self.stored - stored + dissipated, dissipated)

    def follow(self, positions: ArrayLike) -> Array:
        """Return the outputs (m,) along inputs (m,), each reached monotonically."""
        path = np.array(positions, dtype=np.float64)
        if path.ndim != 1 or not np.isfinite(path).all():
            raise ValueError(f'positions of shape {path.shape}: expected finite numbers in a row')
        outputs = np.empty(path.size)
        _follow(
            path, self._input, self._origin, self.elastic, self.thresholds, self.weights,
            self._stops, outputs,
        )  # fmt: skip
        if path.size:
            self._input = float(path[-1])
        return outputs

    def virgin(self, position: float) -> float:
        """Return the closed form of the first loading from rest to an input."""
        held = np.minimum(abs(position), self.thresholds)
        return self.elastic * position + math.copysign(float(self.weights @ held), position)

    def loop_area(self, amplitude: float) -> float:
        """Return the energy lost in a cycle of an amplitude, in closed form: sum 4 w r (A - r)."""
        _require_finite(amplitude, 'amplitude')
        slip = np.maximum(0.0, abs(amplitude) - self.thresholds)
        return 4.0 * float(self.weights @ (self.thresholds * slip))


class KelvinVoigtCreep:
    """
    Linear creep: x = u + sum of share_i e_i, lag_i e_i' + e_i = u.

    Stepped exactly for an input that is linear in time within a step, so the step size does not
    matter; memory is one number per element.
    """

    def __init__(self, config: CreepConfig) -> None:
        self.config = config
        self._shares = np.array(config.shares, dtype=np.float64)
        self._lags = np.array(config.lags_s, dtype=np.float64)
        self.reset()

    def reset(self, value: float = 0.0) -> None:
        """Restart as after a long time at an input."""
        _require_finite(value, 'value')
        self._input = float(value)
        self._elements = np.full(self._shares.size, float(value))

    @property
    def output(self) -> float:
        """Output at the present input and time."""
        return self._input + float(self._shares @ self._elements)

    def step(self, value: float, dt: float) -> float:
        """
        Return the output after `dt` > 0 [s] in which the input moved linearly to `value`.

        For a sudden change, call `jump` first.
        """
        _require_finite(value, 'value')
        if not (math.isfinite(dt) and dt > 0.0):
            raise ValueError(f'dt = {dt}: must be positive')
        decay = np.exp(-dt / self._lags)
        slope = (value - self._input) / dt
        # Particular solution u - lag u', plus the decay of the initial difference from it.
        start = self._elements - (self._input - self._lags * slope)
        self._elements = start * decay + (value - self._lags * slope)
        self._input = float(value)
        return self.output

    def jump(self, value: float) -> float:
        """Return the output right after a sudden change of the input, before any creep."""
        _require_finite(value, 'value')
        self._input = float(value)
        return self.output

    def settled(self, value: float) -> float:
        """Return the output after a long time at an input."""
        return float(value * (1.0 + self._shares.sum()))


@kernel(allocates=False)
def move_stops(move: float, thresholds: Array, weights: Array, stops: Array) -> float:
    """Move every stop by `move`, in place; return the energy lost in those that yield."""
    lost = 0.0
    for i in range(stops.size):
        free = stops[i] + move
        held = min(max(free, -thresholds[i]), thresholds[i])
        lost += weights[i] * thresholds[i] * abs(free - held)
        stops[i] = held
    return lost


@kernel
def _follow(
    path: Array,
    start: float,
    origin: float,
    elastic: float,
    thresholds: Array,
    weights: Array,
    stops: Array,
    outputs: Array,
) -> None:
    """Write the outputs along a path, and move `stops` to its end."""
    before = start
    for k in range(path.size):
        move_stops(path[k] - before, thresholds, weights, stops)
        before = path[k]
        outputs[k] = elastic * (before - origin)
        for i in range(stops.size):
            outputs[k] += weights[i] * stops[i]


def _require_finite(value: float, what: str) -> None:
    if not math.isfinite(value):
        raise ValueError(f'{what} = {value}: must be finite')
