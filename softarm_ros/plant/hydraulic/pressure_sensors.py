"""Pressure sensors with noise, offset and resolution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.hydraulic.config import PressureSensorConfig

Array = NDArray[np.float64]


class PressureSensors:
    """
    Sensors of all chambers, read together.

    Parameters
    ----------
    config
        Noise, offset, resolution.
    count
        Of sensors.
    seed
        Of noise and offsets, each with a stream of its own.

    """

    def __init__(self, config: PressureSensorConfig, count: int, seed: int) -> None:
        self.config = config
        # Streams of the pose sensor have the same seed but other spawn keys.
        offsets, noise = (
            np.random.default_rng(s) for s in np.random.SeedSequence((seed, 1)).spawn(2)
        )
        self._offset = config.offset_Pa * offsets.standard_normal(count)
        self._noise = noise
        self.signal = np.zeros(count)
        self.reading = np.zeros(count)

    def sample(self, pressure_Pa: Array) -> None:
        """Take a reading (m,) [Pa]; `signal` is the same before the converter."""
        noise = self.config.noise_Pa * self._noise.standard_normal(len(pressure_Pa))
        step = self.config.step_Pa
        self.signal = pressure_Pa + self._offset + noise
        self.reading = step * np.round(self.signal / step)
