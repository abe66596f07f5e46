"""Compensation of the play (dead zone) between the signal of a regulator and its pressure."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, NonNegative


class PlayCompensationConfig(ConfigBlock):
    """Width of the play (dead zone) that the driver assumes for every regulator; 0: none."""

    play_Pa: NonNegative = 0.0
    band_Pa: NonNegative = 0.0  # smaller changes back are not a reversal


class PlayCompensation:
    """
    Adds half of the play in the direction in which each target last moved.

    Parameters
    ----------
    config
        Configuration, the same for all regulators.
    count
        Number of regulators, m.

    """

    def __init__(self, config: PlayCompensationConfig, count: int) -> None:
        self.config = config
        self._extreme = np.zeros(count)  # extreme of the target since its last reversal
        self._heading = np.zeros(count)

    def signal(self, target_Pa: ArrayLike) -> Array:
        """
        Return the signals (m,) [Pa], at least 0, that bring pressures to targets (m,) [Pa gauge].

        A target of zero or less shuts the regulator: its signal is 0.
        """
        c = self.config
        target = np.asarray(target_Pa, dtype=float)
        up = target > self._extreme + np.where(self._heading < 0.0, c.band_Pa, 0.0)
        down = target < self._extreme - np.where(self._heading > 0.0, c.band_Pa, 0.0)
        self._heading = np.where(up, 1.0, np.where(down, -1.0, self._heading))
        self._extreme = np.where(up | down, target, self._extreme)
        signal = np.maximum(target + 0.5 * c.play_Pa * self._heading, 0.0)
        return np.where(target > 0.0, signal, 0.0)
