"""Simulated time in step with the wall clock, and slips when it cannot keep up."""

import numpy as np
import pytest

from softarm_ros.emulation.wall_times import WallTimes

STEP_S = 0.002


def test_jitter_and_short_stalls_cause_no_slip():
    wall, now = WallTimes(), 50.0
    rng = np.random.default_rng(1)
    for i in range(2000):
        due = 50.0 + i * STEP_S
        stall = 0.08 if 700 <= i < 740 else 0.0  # forty steps are then made up at once
        now = max(now, due + stall + rng.uniform(0.0, 0.001))
        assert wall.of(i * STEP_S, now) == pytest.approx(due, abs=1.1e-3)
    assert wall.slips == 0


def test_dropped_time_is_adopted_within_half_a_second():
    wall = WallTimes()
    for i in range(1000):
        wall.of(i * STEP_S, 10.0 + i * STEP_S)
    lost = 0.13
    for i in range(1000, 1250):
        found = wall.of(i * STEP_S, 10.0 + lost + i * STEP_S)
    assert found == pytest.approx(10.0 + lost + 1249 * STEP_S, abs=1e-9)
    assert wall.slips == 1
