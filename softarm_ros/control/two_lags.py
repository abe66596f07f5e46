"""Response of an arm or a drive to a command, modelled as two first-order lags."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array


class TwoLags:
    """Filters values (n,) by two lags of half of `response_s` [s] each; 0: no lag."""

    def __init__(self, response_s: float) -> None:
        self._lag_s = 0.5 * response_s
        self._values: Array | None = None  # after the first lag, and after both (2, n)

    def forget(self) -> None:
        """Start afresh: the next value passes without lag."""
        self._values = None

    @property
    def began(self) -> bool:
        """Whether a value was taken since the start."""
        return self._values is not None

    def follow(self, values: Array, period_s: float) -> Array:
        """Return the response (n,) after the values (n,) were held for a period [s]."""
        if self._values is None or self._lag_s == 0.0:
            self._values = np.array([values, values])
        else:
            share = -np.expm1(-period_s / self._lag_s)
            self._values[0] += share * (values - self._values[0])
            self._values[1] += share * (self._values[0] - self._values[1])
        return self._values[1].copy()
