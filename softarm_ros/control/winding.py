"""Winding of the pretension: from rest to rest, and from rest again after every stop."""

from __future__ import annotations

from softarm_ros.control.minimum_jerk import blend
from softarm_ros.control.pretension import Pretension


class Winding:
    """
    The pretension wound so far.

    Parameters
    ----------
    pretension : Pretension
        Its amount and limits.

    """

    def __init__(self, pretension: Pretension) -> None:
        self.pretension = pretension
        self.stand_at(0.0)

    @property
    def wound(self) -> float:
        """The pretension wound [m]."""
        return self._from + (self.pretension.amount - self._from) * blend(self._share)

    @property
    def done(self) -> bool:
        """Whether all of the pretension is wound."""
        return self._share >= 1.0

    def advance(self, period_s: float) -> None:
        """Wind for a time [s]."""
        self._elapsed_s += period_s

    def stop(self) -> None:
        """Stand at what is wound: the rest is wound from rest."""
        if not self.done:
            self.stand_at(self.wound)

    def stand_at(self, wound_m: float) -> None:
        """Take a length [m], up to the pretension, as wound, and the cables as at rest."""
        self._from = wound_m
        self._duration_s = self.pretension.duration_s(self.pretension.amount - wound_m)
        self._elapsed_s = 0.0

    @property
    def _share(self) -> float:
        """Share of the duration that has passed."""
        return self._elapsed_s / self._duration_s if self._elapsed_s < self._duration_s else 1.0
