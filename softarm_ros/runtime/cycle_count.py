"""Count the cycles that a loop has run in motion, and the missed ones."""

from __future__ import annotations

import math

from softarm_ros.runtime.loop import Phase

MISSED = 1.5  # periods; a longer gap between two cycles counts as one missed cycle


class CycleCount:
    """Counts the cycles of a loop while the arm is driven."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self.cycles = self.missed = 0

    def add(self, gap_s: float, phase: Phase) -> bool:
        """Count a cycle after a gap [s] (infinite: first one); return whether it counts."""
        if not phase.drives:
            return False
        self.cycles += 1
        self.missed += int(math.isfinite(gap_s) and gap_s > MISSED * self._period_s)
        return True
