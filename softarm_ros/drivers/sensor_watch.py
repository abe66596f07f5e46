"""Whether an analogue sensor is connected, alive and within its limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softarm_ros.drivers.daq_config import AnalogInput
from softarm_ros.geometry.arrays import Array


class SensorWatch:
    """Looks at every block of one input; the codes are `open`, `stuck` and `limit`."""

    def __init__(self, config: AnalogInput, open_after_s: float) -> None:
        self._config = config
        self._open_after_s = open_after_s
        self._open_s = 0.0
        self._still_s = 0.0
        self._last_V = np.nan

    def believable(self, volts: Array) -> Array:
        """
        Return voltages (k,) in which an open circuit does not count beside sound samples.

        The block in which a wire breaks would else have a mean that no range check refuses: a
        pressure loop takes it for a pressure that fell, and acts on it. Where no sample is sound
        all stay as they are, for the range to refuse.
        """
        low, high = self._limits
        sound = (volts >= low) & (volts <= high)
        if sound.all() or not sound.any():
            return volts
        return np.where(sound, volts, volts[sound].mean())

    @property
    def _limits(self) -> tuple[float, float]:
        """Voltages between which the circuit is closed."""
        low, high = self._config.open_below_V, self._config.open_above_V
        return -np.inf if low is None else low, np.inf if high is None else high

    def look(self, volts: Array, duration_s: float) -> Iterator[tuple[str, str]]:
        """Yield the code and text of what is wrong with a block of voltages (k,)."""
        config = self._config
        low, high = self._limits
        below, above = bool((volts < low).all()), bool((volts > high).all())
        self._open_s = self._open_s + duration_s if below or above else 0.0
        if below or above:
            # While it may be open its value says nothing of limits.
            if self._open_s >= self._open_after_s:
                side = f'below {low:.4g} V' if below else f'above {high:.4g} V'
                yield 'open', f'open circuit: {volts.mean():.4g} V, {side}'
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
