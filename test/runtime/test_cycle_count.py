"""A gap between cycles counts as missed only in motion, and the first cycle has none."""

import math

from softarm_ros.runtime.cycle_count import CycleCount
from softarm_ros.runtime.loop import Phase


def test_only_gaps_in_motion_count_as_missed():
    count = CycleCount(0.01)
    assert count.add(math.inf, Phase.APPROACH)
    assert count.add(0.0149, Phase.TRACK) and count.add(0.0151, Phase.SETTLE)
    for phase in (Phase.IDLE, Phase.HELD, Phase.DONE):
        assert not count.add(1.0, phase)
    assert (count.cycles, count.missed) == (3, 1)
