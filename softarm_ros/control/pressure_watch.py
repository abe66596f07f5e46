"""Check that chambers hold the commanded pressure; a burst chamber or a torn hose does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.control.config import PressureWatchConfig
from softarm_ros.control.two_lags import TwoLags
from softarm_ros.geometry.arrays import Array


class PressureWatch:
    """
    Compares measured chamber pressures with those expected when the drives follow the command.

    It compares only while the arm may move: drives that are held follow no command.

    Parameters
    ----------
    config : PressureWatchConfig
        Limits.
    names : sequence of str
        Names of the chambers (m,), for messages.

    Attributes
    ----------
    largest_Pa : float
        Largest difference that lasted as long as `config.lasting_s`.

    """

    def __init__(self, config: PressureWatchConfig, names: Sequence[str]) -> None:
        self.config = config
        self.largest_Pa = 0.0
        self._names = tuple(names)
        self._command_Pa: Array | None = None
        self._expected = TwoLags(config.response_s)  # command after the response of the drives
        self._looked_s = -np.inf
        self._recent: list[tuple[float, Array]] = []
        self._problem: str | None = None

    def on_command(self, command_Pa: ArrayLike) -> None:
        """Take the commanded pressures (m,); ignore them if one is not finite."""
        values = np.array(command_Pa, dtype=float)
        if values.shape == (len(self._names),) and np.all(np.isfinite(values)):
            self._command_Pa = values

    def on_pressure(self, now_s: float, measured_Pa: ArrayLike, *, moving: bool) -> str | None:
        """Take measured pressures (m,); return what is wrong, with value and limit, or None."""
        measured = np.array(measured_Pa, dtype=float)
        if not moving or self._command_Pa is None or measured.shape != self._command_Pa.shape:
            self._expected.forget()
            self._problem = None
            self._recent.clear()
            return None
        period, self._looked_s = now_s - self._looked_s, now_s
        # At the start of a motion, drives begin from their present pressure.
        wanted = self._command_Pa if self._expected.began else measured
        self._judge(now_s, measured, self._expected.follow(wanted, period))
        return self._problem

    def _judge(self, now_s: float, measured: Array, expected: Array) -> None:
        recent, lasting = self._recent, self.config.lasting_s
        recent.append((now_s, np.abs(measured - expected)))
        while len(recent) > 1 and recent[1][0] <= now_s - lasting + 1e-9:
            recent.pop(0)
        if now_s - recent[0][0] < lasting - 1e-9:
            return
        # Least error of each chamber over the last `lasting_s`.
        least = np.min([error for _, error in recent], axis=0)
        i = int(np.argmax(least))
        self.largest_Pa = max(self.largest_Pa, float(least[i]))
        if least[i] > self.config.max_error_Pa and self._problem is None:
            self._problem = (
                f'{self._names[i]} does not hold its pressure: {1e-3 * measured[i]:.1f} kPa '
                f'measured, {1e-3 * expected[i]:.1f} kPa expected, for '
                f'{1e3 * lasting:.0f} ms (limit {1e-3 * self.config.max_error_Pa:g} kPa off)'
            )
