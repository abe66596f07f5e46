"""Check that analogue sensors are connected, alive and within their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from softarm_ros.drivers.daq_config import AnalogInput
from softarm_ros.geometry.arrays import Array


class SensorWatch:
    """
    Checks every block of all inputs; the codes are `open`, `stuck` and `limit`.

    All inputs are checked together: a hundred times a second, one by one takes several times as
    long.

    Parameters
    ----------
    inputs
        Configurations of the n inputs.
    open_after_s
        An open circuit is a problem after this time.

    """

    def __init__(self, inputs: Sequence[AnalogInput], open_after_s: float) -> None:
        self._inputs = tuple(inputs)
        self._open_after_s = open_after_s
        # Lowest and highest voltage of a closed circuit, and limits of the values.
        self._low_V = _column([part.open_below_V for part in inputs], -np.inf)
        self._high_V = _column([part.open_above_V for part in inputs], np.inf)
        self._low = _column([part.low for part in inputs], -np.inf)[:, 0]
        self._high = _column([part.high for part in inputs], np.inf)[:, 0]
        self._stuck_after_s = _column([part.stuck_after_s for part in inputs], np.inf)[:, 0]
        self._scale = _column([part.scale for part in inputs], np.nan)
        self._zero = _column([part.zero for part in inputs], np.nan)
        self._open_s = np.zeros(len(inputs))
        self._still_s = np.zeros(len(inputs))
        self._last_V = np.full(len(inputs), np.nan)

    def values(self, volts: Array) -> Array:
        """
        Return the SI values (n, k) of voltages (n, k).

        Open-circuit samples are replaced by the mean of the sound ones. Otherwise, the mean of the
        block in which a wire breaks could pass all range checks, and a pressure loop would react
        to an apparent fall of pressure. If no sample of an input is sound, all are used, so that
        the range check rejects them.
        """
        sound = (volts >= self._low_V) & (volts <= self._high_V)
        if not sound.all():
            volts = volts.copy()
            for row, good in zip(volts, sound):
                if good.any():
                    row[~good] = row[good].mean()
        values: Array = self._scale * volts + self._zero
        return values

    def look(self, volts: Array, duration_s: float) -> Iterator[tuple[str, str, str]]:
        """Yield name, code and text of each problem in a block of volts (n, k)."""
        least, most = volts.min(axis=1), volts.max(axis=1)
        below, above = most < self._low_V[:, 0], least > self._high_V[:, 0]
        broken = below | above
        self._open_s = np.where(broken, self._open_s + duration_s, 0.0)
        # If a circuit may be open, the value cannot be checked against limits.
        still = (least == most) & (self._last_V == volts[:, 0])
        still_s = np.where(still, self._still_s + duration_s, 0.0)
        self._still_s = np.where(broken, self._still_s, still_s)
        self._last_V = np.where(broken, self._last_V, volts[:, -1])
        mean_V = volts.mean(axis=1)
        value = self._scale[:, 0] * mean_V + self._zero[:, 0]
        stuck = ~broken & (self._still_s >= self._stuck_after_s)
        beyond = ~broken & ((value < self._low) | (value > self._high))
        wrong = (broken & (self._open_s >= self._open_after_s)) | stuck | beyond
        for i in np.flatnonzero(wrong):
            part, unit = self._inputs[i], self._inputs[i].unit
            if broken[i]:
                limit = self._low_V[i, 0] if below[i] else self._high_V[i, 0]
                side = f'{"below" if below[i] else "above"} {limit:.4g} V'
                yield part.name, 'open', f'circuit: {mean_V[i]:.4g} V, {side}'
                continue
            if stuck[i]:
                text = f'exactly {volts[i, -1]:.6g} V for {self._still_s[i]:.2g} s'
                yield part.name, 'stuck', text
            if value[i] < self._low[i]:
                text = f'{value[i]:.4g} {unit} below {self._low[i]:.4g} {unit}'
                yield part.name, 'limit', text
            if value[i] > self._high[i]:
                text = f'{value[i]:.4g} {unit} above {self._high[i]:.4g} {unit}'
                yield part.name, 'limit', text


def _column(numbers: Sequence[float | None], without: float) -> Array:
    """Return numbers as a column (n, 1), with `without` in place of None."""
    return np.array([[without if x is None else x] for x in numbers]).reshape(-1, 1)
