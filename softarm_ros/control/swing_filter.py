"""
Notch filter that keeps feedback from exciting the swing of an arm.

At the frequency of its swing, a lightly damped arm answers feedback late and amplified. A notch
there, common in the control of flexible structures, removes that part of the error, so that the
swing does not limit the gain.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, Positive
from softarm_ros.geometry.kernels import kernel

PASSED_DAMPING = 0.7  # damping of the poles that replace those of the swing
# Factors by which the actual swing may differ from the stated one, for `largest_gain`.
FREQUENCIES = (0.8, 0.9, 1.0, 1.1, 1.2)
DAMPINGS = (0.5, 1.0, 2.0)
_RATES = 8001  # number of frequencies evaluated


class SwingConfig(ConfigBlock):
    """Swing of an arm after it is pushed and released."""

    frequency_hz: Positive = Field(le=1e4, description='swings per second')
    damping: float = Field(
        gt=0.0,
        lt=PASSED_DAMPING,
        description='share of critical damping: logarithmic decrement over 2 pi',
    )

    @property
    def rate_rad_s(self) -> float:
        """Undamped angular frequency [rad/s]."""
        return 2.0 * np.pi * self.frequency_hz / np.sqrt(1.0 - self.damping**2)


class SwingFilter:
    """
    Notch (s^2 + 2 z w s + w^2) / (s^2 + 2 p w s + w^2), z of the swing, p = `PASSED_DAMPING`.

    Stepped by the trapezoidal rule, so that periods may vary. A constant passes unchanged.
    """

    def __init__(self, config: SwingConfig) -> None:
        rate = config.rate_rad_s
        self._dynamics = np.array([[0.0, 1.0], [-(rate**2), -2.0 * PASSED_DAMPING * rate]])
        self._input = np.array([[0.0], [1.0]])
        self._taken = np.array([[0.0, 2.0 * (PASSED_DAMPING - config.damping) * rate]])
        self.reset()
        none = np.zeros(1)  # loads the compiled step now, rather than in motion
        _stepped(np.zeros((2, 1)), none, none, 1.0, self._dynamics, self._input)

    def reset(self) -> None:
        """Forget the past: treat the next value as if it had been constant before."""
        self._state: Array | None = None
        self._last = np.zeros(0)

    def __call__(self, value: Array, period_s: float) -> Array:
        """Filter a value (n,) that arrives `period_s` [s] after the previous one."""
        state = self._state
        if state is None:
            state = _solved(self._dynamics, -self._input) * value
        elif period_s > 0.0:
            state = _stepped(state, self._last, value, period_s, self._dynamics, self._input)
        self._state, self._last = state, value
        return np.asarray(value - (self._taken @ state)[0])


@kernel
def _stepped(
    state: Array, last: Array, value: Array, period_s: float, dynamics: Array, entry: Array
) -> Array:
    """
    Return the state (2, n) after a period by the trapezoidal rule.

    `last`, `value` (n,): input before and now; `dynamics` (2, 2) and `entry` (2, 1).
    """
    half = 0.5 * period_s * dynamics
    driven = half @ state + period_s * entry * (0.5 * (last + value))
    # In rows, as before: for another order, the kernel would be compiled again, in mid-motion.
    return np.ascontiguousarray(np.linalg.solve(np.eye(2) - half, state + driven))


def _solved(matrix: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def largest_gain(swing: SwingConfig, delay_s: float) -> float:
    """
    Return the gain [1/s] of proportional feedback at which the loop oscillates.

    The arm is an integrator with a swing, measured `delay_s` [s] late, with feedback through
    `SwingFilter`. The result is the least gain over all swings with a frequency up to 20 % off and
    a damping of half to twice the stated one (Nyquist).
    """
    rate = swing.rate_rad_s
    slowest, fastest = sorted((rate, 1.0 / delay_s))
    s = 1j * np.geomspace(0.05 * slowest, 20.0 * fastest, _RATES)
    notch = s**2 + 2.0 * swing.damping * rate * s + rate**2
    passed = notch / (s**2 + 2.0 * PASSED_DAMPING * rate * s + rate**2)
    least = np.inf
    for other in (share * rate for share in FREQUENCIES):
        for damping in (share * swing.damping for share in DAMPINGS):
            arm = other**2 / (s**2 + 2.0 * damping * other * s + other**2)
            loop = passed * arm * np.exp(-s * delay_s) / s
            crossed = (loop.imag[1:] * loop.imag[:-1] <= 0.0) & (loop.real[1:] < 0.0)
            # With a delay, the loop always crosses the negative real axis.
            least = min(least, 1.0 / np.abs(loop[1:][crossed]).max())
    return float(least)
