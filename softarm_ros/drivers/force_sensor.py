"""Forces and torques from six gauge voltages."""

from __future__ import annotations

import numpy as np

from softarm_ros.drivers.daq_config import ForceSensorConfig
from softarm_ros.geometry.arrays import Array

AXES = ('Fx', 'Fy', 'Fz', 'Tx', 'Ty', 'Tz')
_UNITS = ('N', 'N', 'N', 'N m', 'N m', 'N m')
_SATURATED = 0.995  # share of the input range


class ForceSensor:
    """One sensor with its calibration and its bias, which a tare replaces."""

    def __init__(self, config: ForceSensorConfig) -> None:
        self.config = config
        self._matrix = np.array(config.calibration)
        self._bias = np.array(config.bias_V)
        self._limits = np.array(config.limits)
        self._sum = np.zeros(6)
        self._summed = 0
        self._wanted = 0

    @property
    def bias_V(self) -> Array:
        """Voltages without load (6,)."""
        return self._bias.copy()

    @property
    def taring(self) -> bool:
        """Whether a bias is being measured."""
        return self._wanted > 0

    def tare(self, samples: int) -> None:
        """Take the mean of the next samples as bias; the sensor must not be loaded meanwhile."""
        self._sum, self._summed, self._wanted = np.zeros(6), 0, samples

    def wrench(self, volts: Array) -> Array:
        """Return forces [N] and torques [N m] (6, k) for gauge voltages (6, k)."""
        if self._wanted > 0:
            self._sum = self._sum + volts.sum(axis=1)
            self._summed += volts.shape[1]
            if self._summed >= self._wanted:
                self._bias, self._wanted = self._sum / self._summed, 0
        wrench: Array = self._matrix @ (volts - self._bias[:, None])
        return wrench

    def overload(self, volts: Array, wrench: Array) -> str | None:
        """Return a text if a load exceeds the rating or an input is saturated; else None."""
        low, high = _SATURATED * self.config.min_V, _SATURATED * self.config.max_V
        saturated = (volts.max(axis=1) <= low) | (volts.min(axis=1) >= high)
        if saturated.any():
            i = int(saturated.argmax())
            return f'{self.config.channels[i]} saturated at {volts[i, -1]:.3g} V'
        mean = wrench.mean(axis=1)
        beyond = np.abs(mean) > self._limits
        if beyond.any():
            i = int(beyond.argmax())
            limit = self._limits[i]
            return f'{AXES[i]} = {mean[i]:.4g} {_UNITS[i]} beyond {limit:.4g} {_UNITS[i]}'
        return None
