"""Pressure sensors with noise, offset and resolution."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.hydraulic.config import PressureSensorConfig
from softarm_ros.plant.hydraulic.drive_kernels import read_gauge
from softarm_ros.plant.hydraulic.layout import Gauges


class PressureSensors:
    """
    Sensors of all chambers, read together.

    Parameters
    ----------
    config
        Noise, offset, resolution.
    count
        Number of sensors.
    seed
        Seed of noise and offsets, each with its own stream.

    Attributes
    ----------
    gauges
        Arrays of the kernels.

    """

    def __init__(self, config: PressureSensorConfig, count: int, seed: int) -> None:
        # The streams of the pose sensor have the same seed but other spawn keys.
        offsets, noise = (
            np.random.default_rng(s) for s in np.random.SeedSequence((seed, 1)).spawn(2)
        )
        self._noise = noise
        self.gauges = Gauges(
            config.offset_Pa * offsets.standard_normal(count),
            np.zeros(count),
            np.zeros(count),
            config.noise_Pa,
            config.step_Pa,
        )

    @property
    def reading(self) -> Array:
        """Readings (m,) [Pa], after the converter."""
        return self.gauges.reading.copy()

    @property
    def signal(self) -> Array:
        """Signals of the sensors (m,) [Pa], before the converter."""
        return self.gauges.signal.copy()

    def deviates(self, readings: int) -> Array:
        """Return the noise (readings, m) of the next readings, in standard deviations."""
        return self._noise.standard_normal((readings, len(self.gauges.offset)))

    def sample(self, pressure_Pa: Array) -> None:
        """Take a reading (m,) [Pa]."""
        deviates = self.deviates(1)[0]
        for i, pressure in enumerate(pressure_Pa):
            read_gauge(self.gauges, i, float(pressure), float(deviates[i]))
