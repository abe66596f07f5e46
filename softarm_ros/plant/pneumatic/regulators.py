"""Simulated electropneumatic regulators: valve, tube, pressure sensor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.pneumatic.config import RegulatorConfig

Array = NDArray[np.float64]


class Regulators:
    """
    One regulator a chamber.

    The valve follows its signal with its own gain and offset, behind a play (dead zone); the
    chamber fills with a lag, at most as fast as the valve lets air through. The sensor is the
    valve's own and shares its gain and offset: a regulator believes that it is where it was told
    to be.

    Parameters
    ----------
    config
        One `gain` and `offset_Pa` a regulator.
    seed
        Of the sensors' noise.

    Attributes
    ----------
    pressure, measured, rate : (m,)
        True and measured gauge pressure [Pa] and the rate of the true one [Pa/s].

    """

    def __init__(self, config: RegulatorConfig, seed: int) -> None:
        self.config = config
        count = len(config.gain)
        self._gain, self._offset = np.array(config.gain), np.array(config.offset_Pa)
        self._step_Pa = config.span_Pa / 2**config.dac_bits
        self._signal = np.zeros(count)
        self._seat = np.zeros(count)  # what the valve holds, behind the play
        self._noise = np.random.default_rng(seed)
        self.pressure = np.zeros(count)
        self.rate = np.zeros(count)
        self.measured = np.zeros(count)

    def command(self, signal_Pa: Array) -> None:
        """Set the signals (m,) [Pa] through an analogue output, which rounds to its steps."""
        self.drive(np.round(signal_Pa / self._step_Pa) * self._step_Pa)

    def drive(self, signal_Pa: Array) -> None:
        """Set the signals (m,) [Pa] as they stand at the terminals of the regulators."""
        self._signal = np.clip(signal_Pa, 0.0, self.config.span_Pa)

    def hold(self) -> None:
        """Keep the pressures there are."""
        self._signal = np.maximum(self._read(self.pressure), 0.0)
        self._seat = self.pressure.copy()

    def advance(self, duration_s: float) -> Array:
        """Let time pass; return the true pressures (m,) [Pa] at its end."""
        open_ = self._signal > 0.0
        wanted = np.where(open_, np.maximum(self._gain * self._signal + self._offset, 0.0), 0.0)
        play = 0.5 * self.config.dead_zone_Pa
        self._seat = np.clip(self._seat, wanted - play, wanted + play)
        self._seat = np.where(open_, np.maximum(self._seat, 0.0), 0.0)
        before = self.pressure
        step = (self._seat - before) * -np.expm1(-duration_s / self.config.lag_s)
        most = self.config.max_rate_Pa_s * duration_s
        self.pressure = before + np.clip(step, -most, most)
        self.rate = (self.pressure - before) / duration_s
        noise = self.config.sensor_noise_Pa * self._noise.standard_normal(len(before))
        self.measured = self._read(self.pressure) + noise
        return self.pressure

    def _read(self, pressure: Array) -> Array:
        shut = pressure <= 0.0
        return np.where(shut, 0.0, (pressure - self._offset) / self._gain)
