"""Simulated time in pace with the wall clock."""

import pytest

from softarm_ros.runtime.pacing import Pacer


def test_pacer_follows_the_wall_clock_times_its_rate():
    pacer = Pacer(2.0)
    assert pacer.target(100.0, 5.0) == 5.0
    assert pacer.target(100.05, 5.0) == pytest.approx(5.1)
    assert pacer.target(100.20, 5.35) == pytest.approx(5.4)
    assert pacer.lost_s == 0.0


def test_pacer_drops_a_backlog_and_counts_it_as_lost():
    pacer = Pacer(1.0)
    pacer.target(0.0, 0.0)
    assert pacer.target(0.5, 0.0) == 0.0  # nothing to catch up
    assert pacer.lost_s == pytest.approx(0.5)
    assert pacer.target(0.51, 0.0) == pytest.approx(0.01)


def test_simulated_time_begins_with_the_first_target_and_loses_nothing_before():
    pacer = Pacer(1.0)
    assert not pacer.measure(50.0, 0.0)
    assert pacer.target(100.0, 0.0) == 0.0
    assert pacer.target(100.02, 0.0) == pytest.approx(0.02)
    assert pacer.lost_s == 0.0
    assert pacer.achieved == 1.0


def test_pacer_measures_the_speed_of_the_last_second():
    pacer = Pacer(4.0)
    assert not pacer.measure(0.0, 0.0)
    pacer.target(0.0, 0.0)
    assert not pacer.measure(0.5, 1.0)
    assert pacer.measure(1.0, 1.5)
    assert pacer.achieved == pytest.approx(1.5)
