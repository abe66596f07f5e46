"""Simulated electropneumatic regulators: valve, tube, pressure sensor."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.pneumatic.config import RegulatorConfig
from softarm_ros.plant.pneumatic.layout import Valves
from softarm_ros.plant.pneumatic.valve_kernels import advance_valves, sensed


class Regulators:
    """
    One regulator for each chamber.

    The valve follows its signal with its own gain and offset, after a play (dead zone); the
    chamber fills with a lag, limited by the flow of the valve. The sensor is the valve's own and
    has the same gain and offset, so a regulator always measures the pressure it was commanded.

    Parameters
    ----------
    config
        One `gain` and `offset_Pa` for each regulator.
    seed
        Seed of the sensors' noise.

    Attributes
    ----------
    valves
        Arrays of the kernels, with true and measured gauge pressures.

    """

    def __init__(self, config: RegulatorConfig, seed: int) -> None:
        self.config = config
        count = len(config.gain)
        self.valves = Valves(
            np.array(config.gain),
            np.array(config.offset_Pa),
            config.dead_zone_Pa,
            config.lag_s,
            config.max_rate_Pa_s,
            *(np.zeros(count) for _ in range(5)),
        )
        self._step_Pa = config.span_Pa / 2**config.dac_bits
        self._noise = np.random.default_rng(seed)

    def command(self, signal_Pa: Array) -> None:
        """Set the signals (m,) [Pa] through an analogue output, which rounds to its steps."""
        self.drive(np.round(signal_Pa / self._step_Pa) * self._step_Pa)

    def drive(self, signal_Pa: Array) -> None:
        """Set the signals (m,) [Pa] at the terminals of the regulators."""
        self.valves.signal[:] = np.clip(signal_Pa, 0.0, self.config.span_Pa)

    def hold(self) -> None:
        """Keep the present pressures."""
        v = self.valves
        for i, pressure in enumerate(v.pressure):
            v.signal[i] = max(sensed(v, i, pressure), 0.0)
        v.seat[:] = v.pressure

    def noise(self, steps: int) -> Array:
        """Return the sensors' noise (steps, m) [Pa] of the next steps."""
        deviates = self._noise.standard_normal((steps, len(self.valves.gain)))
        return np.asarray(self.config.sensor_noise_Pa * deviates)

    def advance(self, duration_s: float) -> None:
        """Advance by a duration [s]."""
        advance_valves(self.valves, self.noise(1)[0], duration_s)
