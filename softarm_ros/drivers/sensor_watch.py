"""Check that analogue sensors are connected, alive and within their limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.drivers.daq_config import AnalogInput
from softarm_ros.geometry.arrays import Array


class SensorWatch:
    """
    Checks every block of all inputs; the codes are `open`, `stuck` and `limit`.

    A block has few inputs: after the reductions over its samples, plain comparisons take a
    fraction of the time of numpy's functions.

    Parameters
    ----------
    inputs
        Configurations of the n inputs.
    open_after_s
        An open circuit is a problem after this time.

    """

    def __init__(self, inputs: Sequence[AnalogInput], open_after_s: float) -> None:
        self._open_after_s = open_after_s
        self._checks = [_Check.of(part) for part in inputs]
        self._low_V = _column([check.low_V for check in self._checks])
        self._high_V = _column([check.high_V for check in self._checks])
        self._scale = _column([part.scale for part in inputs])
        self._zero = _column([part.zero for part in inputs])

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
        ends = volts.min(axis=1), volts.max(axis=1), volts[:, 0], volts[:, -1]
        columns = [column.tolist() for column in (*ends, volts.mean(axis=1))]
        for check, least, most, first_V, last_V, mean_V in zip(self._checks, *columns):
            below = most < check.low_V
            if below or least > check.high_V:
                # The value of a circuit that may be open cannot be checked against limits.
                check.open_s += duration_s
                if check.open_s >= self._open_after_s:
                    limit = check.low_V if below else check.high_V
                    side = f'{"below" if below else "above"} {limit:.4g} V'
                    yield check.name, 'open', f'circuit: {mean_V:.4g} V, {side}'
                continue
            check.open_s = 0.0
            still = least == most and check.last_V == first_V
            check.still_s = check.still_s + duration_s if still else 0.0
            check.last_V = last_V
            if check.still_s >= check.stuck_after_s:
                yield check.name, 'stuck', f'exactly {last_V:.6g} V for {check.still_s:.2g} s'
            value = check.scale * mean_V + check.zero
            if value < check.low:
                text = f'{value:.4g} {check.unit} below {check.low:.4g} {check.unit}'
                yield check.name, 'limit', text
            if value > check.high:
                text = f'{value:.4g} {check.unit} above {check.high:.4g} {check.unit}'
                yield check.name, 'limit', text


@dataclass
class _Check:
    """Limits of one input [V, SI], and what its blocks have shown until now."""

    name: str
    unit: str
    scale: float
    zero: float
    low_V: float  # of a closed circuit
    high_V: float
    low: float  # of the value
    high: float
    stuck_after_s: float
    open_s: float = 0.0
    still_s: float = 0.0
    last_V: float = math.nan

    @classmethod
    def of(cls, part: AnalogInput) -> _Check:
        low_V, high_V, low, high, stuck_after_s = (
            without if number is None else number
            for number, without in (
                (part.open_below_V, -math.inf),
                (part.open_above_V, math.inf),
                (part.low, -math.inf),
                (part.high, math.inf),
                (part.stuck_after_s, math.inf),
            )
        )
        return cls(
            part.name, part.unit, part.scale, part.zero, low_V, high_V, low, high, stuck_after_s
        )


def _column(numbers: Sequence[float]) -> Array:
    """Return numbers as a column (n, 1)."""
    return np.array(numbers, dtype=float).reshape(-1, 1)
