"""Check that the measured configuration stays within its tolerance of the commanded one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.control.goals.arrival import Arrival, ArrivalWatch
from softarm_ros.control.goals.reference_history import ReferenceHistory
from softarm_ros.control.goals.tolerance import Tolerance
from softarm_ros.geometry.arrays import Array

SILENT_S = 1.0  # after this long without a measurement, the configuration is unknown


@dataclass(frozen=True)
class Deviation:
    """Configurations (dof,) at the time of a measurement [s]: commanded, and measured."""

    stamp_s: float
    commanded: Array
    measured: Array

    @property
    def error(self) -> Array:
        """Commanded less measured configuration (dof,)."""
        return np.asarray(self.commanded - self.measured)


class ToleranceWatch:
    """
    Compares each measured configuration with the command at the same time.

    Parameters
    ----------
    names : sequence of str
        Names of the coordinates.
    timeout_s : float
        Time-out for being within the tolerance, for goals without their own.

    Attributes
    ----------
    deviation : Deviation, optional
        At the newest measurement.

    """

    def __init__(self, names: Sequence[str], timeout_s: float) -> None:
        self._names, self._timeout_s = tuple(names), timeout_s
        self._past = ReferenceHistory()
        self.deviation: Deviation | None = None
        self._asked: Tolerance | None = None
        self._arrival = ArrivalWatch(1.0, timeout_s)

    def command(self, now_s: float, configuration: Array) -> None:
        """Take the present command (dof,)."""
        self._past.add(now_s, configuration)

    def measure(self, stamp_s: float, configuration: Array | None) -> None:
        """Take the configuration (dof,) measured at a time; ignore None and non-finite ones."""
        if configuration is None or not np.all(np.isfinite(configuration)):
            return
        commanded = self._past.at(stamp_s)
        if commanded is not None:
            self.deviation = Deviation(stamp_s, commanded, configuration)

    def refusal(self, asked: Tolerance | None, now_s: float) -> str:
        """Return why a tolerance cannot be checked, or '' if it can."""
        if asked is None or not asked.asks or self._age_s(now_s) <= SILENT_S:
            return ''
        fields = [f for f in ('path', 'goal') if np.any(np.isfinite(getattr(asked, f)))]
        names = ' and '.join(f'{field}_tolerance' for field in fields)
        return f'{names}: the configuration of this arm is not measured; expected 0 or -1'

    def begin(self, asked: Tolerance | None) -> None:
        """Watch the tolerance of a goal from now on."""
        self._asked = asked
        given = None if asked is None else asked.time_s
        self._arrival = ArrivalWatch(1.0, self._timeout_s if given is None else given)

    def strayed(self, now_s: float) -> str:
        """Return a text if a coordinate leaves its tolerance during the motion, else ''."""
        if self._asked is None or not np.any(np.isfinite(self._asked.path)):
            return ''
        return self._beyond('path_tolerance', self._asked.path, now_s)

    def arrived(self, now_s: float) -> tuple[Arrival, str]:
        """Return whether the goal is reached, and why not; call while the reference rests."""
        if self._asked is None or not np.any(np.isfinite(self._asked.goal)):
            return Arrival.SETTLED, ''
        far = np.inf
        if self.deviation is not None and self._age_s(now_s) <= SILENT_S:
            far = float(np.max(np.abs(self.deviation.error) / self._asked.goal))
        arrival = self._arrival.update(now_s, far)
        missed = arrival is Arrival.MISSED
        words = self._beyond('goal_tolerance', self._asked.goal, now_s) if missed else ''
        # It may be back within the tolerance now without having settled there.
        return arrival, words or ('goal_tolerance: not kept for long enough' if missed else '')

    def _age_s(self, now_s: float) -> float:
        return np.inf if self.deviation is None else now_s - self.deviation.stamp_s

    def _beyond(self, field: str, most: Array, now_s: float) -> str:
        if self.deviation is None or self._age_s(now_s) > SILENT_S:
            return f'{field}: the configuration is not measured any more'
        away = np.abs(self.deviation.error)
        i = int(np.argmax(away / most))
        if away[i] <= most[i]:
            return ''
        return (
            f'{field}: {self._names[i]} is measured at {self.deviation.measured[i]:.6g} and '
            f'commanded to {self.deviation.commanded[i]:.6g}, {away[i]:.4g} apart; tolerance '
            f'{most[i]:.4g}'
        )
