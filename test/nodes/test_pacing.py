import numpy as np
import pytest

from softarm_ros.nodes.pacing import Lockstep, Pacer
from softarm_ros.nodes.timing import DurationHistogram

MS = 1_000_000
PERIOD_S = 0.01


def test_pacer_follows_the_wall_clock_times_its_rate():
    pacer = Pacer(2.0, simulated_s=5.0, wall_s=100.0)
    assert pacer.target(100.05, 5.0) == pytest.approx(5.1)
    assert pacer.target(100.20, 5.35) == pytest.approx(5.4)
    assert pacer.lost_s == 0.0


def test_pacer_gives_up_a_backlog_and_says_so():
    pacer = Pacer(1.0, simulated_s=0.0, wall_s=0.0)
    assert pacer.target(0.5, 0.0) == 0.0  # nothing to catch up
    assert pacer.lost_s == pytest.approx(0.5)
    assert pacer.target(0.51, 0.0) == pytest.approx(0.01)


def test_pacer_measures_the_speed_of_the_last_second():
    pacer = Pacer(4.0, simulated_s=0.0, wall_s=0.0)
    assert not pacer.measure(0.5, 1.0)
    assert pacer.measure(1.0, 1.5)
    assert pacer.achieved == pytest.approx(1.5)


def test_nothing_waits_before_the_first_command():
    lockstep = Lockstep(PERIOD_S, patience_s=0.05)
    lockstep.on_pose(10 * MS, 0)
    assert not lockstep.must_wait(500 * MS, wall_s=0.0)


def test_a_pose_is_waited_for_until_its_own_answer_comes():
    lockstep = Lockstep(PERIOD_S, patience_s=0.05)
    lockstep.on_pose(10 * MS, 0 * MS)
    lockstep.on_command(11 * MS, 0 * MS)
    lockstep.on_pose(20 * MS, 10 * MS)
    assert not lockstep.must_wait(22 * MS, wall_s=0.0)
    assert lockstep.must_wait(23 * MS, wall_s=0.0)
    assert lockstep.for_answer
    lockstep.on_command(23 * MS, 0 * MS)  # a late answer to the pose before
    assert lockstep.must_wait(23 * MS, wall_s=0.001)
    assert lockstep.on_command(23 * MS, 10 * MS)
    assert not lockstep.must_wait(24 * MS, wall_s=0.002)


def test_a_timer_paced_loop_is_given_a_period_and_a_third():
    lockstep = Lockstep(PERIOD_S, patience_s=0.05)
    lockstep.on_pose(10 * MS, 0)
    lockstep.on_command(12 * MS, 11 * MS)  # computed at 11 ms, answers no pose
    assert not lockstep.must_wait(24 * MS, wall_s=0.0)
    assert lockstep.must_wait(25 * MS, wall_s=0.0)
    assert not lockstep.for_answer


def test_patience_ends():
    lockstep = Lockstep(PERIOD_S, patience_s=0.05)
    lockstep.on_command(0, 0)
    assert lockstep.must_wait(20 * MS, wall_s=1.0)
    assert lockstep.must_wait(20 * MS, wall_s=1.04)
    assert not lockstep.must_wait(20 * MS, wall_s=1.06)
    assert not lockstep.must_wait(22 * MS, wall_s=1.07)


@pytest.mark.parametrize('percent', [1, 50, 90, 99, 99.9])
def test_histogram_percentiles_agree_with_the_sorted_list(percent):
    durations = np.random.default_rng(3).lognormal(-1.0, 1.0, 20000)
    histogram = DurationHistogram()
    for duration in durations:
        histogram.add(duration)
    assert histogram.count == len(durations)
    assert histogram.max == durations.max()
    assert histogram.percentile(percent) == pytest.approx(
        np.percentile(durations, percent), rel=0.02
    )


def test_histogram_takes_anything():
    histogram = DurationHistogram()
    assert histogram.text() == ''
    assert np.isnan(histogram.percentile(50))
    for duration in (-1.0, 0.0, 1e9):
        histogram.add(duration)
    assert histogram.count == 3
    assert histogram.max == 1e9
