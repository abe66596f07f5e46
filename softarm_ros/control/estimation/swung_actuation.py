"""What an arm makes of its actuation: it swings to where the actuation would hold it."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array

_AT_ONCE_RAD = 100.0  # of a swing within one period: the rest of it is nothing by then


class SwungActuation:
    """
    Lets an actuation be followed as a mass on a spring follows the place it is held at.

    A model of statics says where the tip would rest under an actuation. The tip is there later, by
    the arm's swing, and goes beyond. Where the model is close to linear over what changes within a
    swing, its answer to the actuation that has swung is where the tip is.

    Parameters
    ----------
    dampings : (k,)
        Damping ratios below 1, for each of which the actuation is followed.

    """

    def __init__(self, dampings: Array) -> None:
        self._dampings = np.asarray(dampings, dtype=float)[:, None]
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next actuation is one at rest."""
        self._stamp_s = -np.inf
        self._held: Array | None = None
        self.value = self._rate = np.zeros((len(self._dampings), 0))

    def take(self, stamp_s: float, actuation: Array, natural_rad_s: float) -> None:
        """
        Take an actuation (m,) that holds from now on; `value` (k, m) is what it has become.

        Parameters
        ----------
        stamp_s : float
            Time [s].
        actuation : (m,)
            In any unit.
        natural_rad_s : float
            How fast the arm swings, undamped [rad/s].

        """
        if self._held is None:
            self.value = np.repeat(actuation[None], len(self._dampings), axis=0)
            self._rate = np.zeros(self.value.shape)
        elif stamp_s > self._stamp_s:
            period = stamp_s - self._stamp_s
            self._swing(self._held, period, min(natural_rad_s, _AT_ONCE_RAD / period))
        self._stamp_s, self._held = stamp_s, actuation.copy()

    def _swing(self, held: Array, period_s: float, w: float) -> None:
        """Let a period [s] pass in which an actuation (m,) has held."""
        z, off = self._dampings, self.value - held
        slow = w * np.sqrt(1.0 - z * z)
        fades = np.exp(-z * w * period_s)
        cos, sin = np.cos(slow * period_s), np.sin(slow * period_s) / slow
        self.value = held + fades * (off * cos + (self._rate + z * w * off) * sin)
        self._rate = fades * (self._rate * cos - (z * w * self._rate + w * w * off) * sin)
