"""Check that an analogue sensor is connected, alive and within its limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softarm_ros.drivers.daq_config import AnalogInput
from softarm_ros.geometry.arrays import Array


class SensorWatch:
    """Checks every block of one input; the codes are `open`, `stuck` and `limit`."""

    def __init__(self, config: AnalogInput, open_after_s: float) -> None:
        self._config = config
        self._open_after_s = open_after_s
        self._open_s = 0.0
        self._still_s = 0.0
        self._last_V = np.nan

    def believable(self, volts: Array) -> Array:
        """
        Return voltages (k,), with open-circuit samples replaced by the mean of the sound ones.

        Otherwise, the mean of the block in which a wire breaks could pass all range checks, and a
        pressure loop would react to an apparent fall of pressure. If no sample is sound, all are
        returned unchanged, so that the range check rejects them.
        """
        low, high = self._limits
        sound = (volts >= low) & (volts <= high)
        if sound.all() or not sound.any():
            return volts
        return np.where(sound, volts, volts[sound].mean())

    @property
    def _limits(self) -> tuple[float, float]:
        """Lowest and highest voltage of a closed circuit."""
        low, high = self._config.open_below_V, self._config.open_above_V
        return -np.inf if low is None else low, np.inf if high is None else high

    def look(self, volts: Array, duration_s: float) -> Iterator[tuple[str, str]]:
        """Yield code and text, read as one phrase, of each problem in a block of volts (k,)."""
        config = self._config
        low, high = self._limits
        below, above = bool((volts < low).all()), bool((volts > high).all())
        self._open_s = self._open_s + duration_s if below or above else 0.0
        if below or above:
            # If the circuit may be open, the value cannot be checked against limits.
            if self._open_s >= self._open_after_s:
                side = f'below {low:.4g} V' if below else f'above {high:.4g} V'
                yield 'open', f'circuit: {volts.mean():.4g} V, {side}'
            return
        still = volts.min() == volts.max() and (self._last_V in (volts[0],))
        self._still_s = self._still_s + duration_s if still else 0.0
        self._last_V = float(volts[-1])
        if config.stuck_after_s is not None and self._still_s >= config.stuck_after_s:
            yield 'stuck', f'exactly {volts[-1]:.6g} V for {self._still_s:.2g} s'
        value = float(config.value(volts.mean()))
        if config.low is not None and value < config.low:
            yield 'limit', f'{value:.4g} {config.unit} below {config.low:.4g} {config.unit}'
        if config.high is not None and value > config.high:
            yield 'limit', f'{value:.4g} {config.unit} above {config.high:.4g} {config.unit}'
