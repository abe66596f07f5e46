"""Swing of an arm towards the posture at which its actuation would hold it."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array

_AT_ONCE_RAD = 100.0  # largest phase of a swing in one period: it has died away by then


class SwungActuation:
    """
    Filters an actuation as a mass on a spring follows the place where it is held.

    A static model says where the tip would rest under an actuation. The tip arrives later, by the
    arm's swing, and overshoots. If the model is almost linear over the change within a swing, its
    answer to the filtered actuation is the position of the tip.

    Parameters
    ----------
    dampings : (k,)
        Damping ratios below 1; the actuation is filtered with each.

    """

    def __init__(self, dampings: Array) -> None:
        self._dampings = np.asarray(dampings, dtype=float)[:, None]
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next actuation is taken as at rest."""
        self._stamp_s = -np.inf
        self._held: Array | None = None
        self.value = self._rate = np.zeros((len(self._dampings), 0))

    def take(self, stamp_s: float, actuation: Array, natural_rad_s: float) -> None:
        """
        Take an actuation (m,) that holds from now on; `value` (k, m) is the filtered one.

        Parameters
        ----------
        stamp_s : float
            Time [s].
        actuation : (m,)
            In any unit.
        natural_rad_s : float
            Undamped angular frequency of the arm's swing [rad/s].

        """
        if self._held is None:
            self.value = np.repeat(actuation[None], len(self._dampings), axis=0)
            self._rate = np.zeros(self.value.shape)
        elif stamp_s > self._stamp_s:
            period = stamp_s - self._stamp_s
            self._swing(self._held, period, min(natural_rad_s, _AT_ONCE_RAD / period))
        self._stamp_s, self._held = stamp_s, actuation.copy()

    def _swing(self, held: Array, period_s: float, w: float) -> None:
        """Advance by a period [s] in which an actuation (m,) was held."""
        z, off = self._dampings, self.value - held
        slow = w * np.sqrt(1.0 - z * z)
        fades = np.exp(-z * w * period_s)
        cos, sin = np.cos(slow * period_s), np.sin(slow * period_s) / slow
        self.value = held + fades * (off * cos + (self._rate + z * w * off) * sin)
        self._rate = fades * (self._rate * cos - (z * w * self._rate + w * w * off) * sin)
