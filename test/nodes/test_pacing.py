import numpy as np
import pytest

from softarm_ros.nodes.pacing import Lockstep, control_tick
from softarm_ros.nodes.timing import DurationHistogram, Lateness

MS = 1_000_000


def test_lockstep_does_not_wait_before_the_first_command():
    lockstep = Lockstep(patience_s=1.0)
    lockstep.on_tick(10 * MS)
    assert not lockstep.must_wait(wall_s=0.0)


def test_lockstep_waits_for_the_command_that_answers_the_current_period():
    lockstep = Lockstep(patience_s=1.0)
    lockstep.on_tick(10 * MS)
    lockstep.on_command(10 * MS)
    lockstep.on_pose(12 * MS)
    lockstep.on_tick(20 * MS)
    assert lockstep.must_wait(wall_s=0.0)
    assert not lockstep.on_command(10 * MS)  # late, from the period before
    assert lockstep.must_wait(wall_s=0.1)
    assert lockstep.on_command(12 * MS)
    assert not lockstep.must_wait(wall_s=0.2)
    lockstep.on_tick(30 * MS)  # without a pose: answered with its own time
    assert lockstep.must_wait(wall_s=0.3)
    assert lockstep.on_command(30 * MS)


def test_command_on_a_pose_used_one_period_late_answers_that_period():
    lockstep = Lockstep(patience_s=1.0)
    lockstep.on_pose(8 * MS)
    lockstep.on_tick(10 * MS)
    lockstep.on_command(10 * MS)  # the pose had not reached the loop
    lockstep.on_tick(20 * MS)
    assert lockstep.must_wait(wall_s=0.0)
    assert lockstep.on_command(8 * MS)
    lockstep.on_pose(27 * MS)
    lockstep.on_tick(30 * MS)
    assert not lockstep.on_command(8 * MS)  # only once
    assert lockstep.on_command(27 * MS)


def test_command_sent_before_lockstep_began_does_not_answer_a_later_pose():
    lockstep = Lockstep(patience_s=1.0)
    for now in (30, 40, 50, 60, 70):
        lockstep.on_pose((now - 30) * MS)
        lockstep.on_tick(now * MS)
    lockstep.on_command(40 * MS)  # of the period at 40 ms, or of the pose at 40 ms?
    lockstep.on_tick(80 * MS)
    assert lockstep.must_wait(wall_s=0.0)
    assert lockstep.on_command(40 * MS)  # of the pose


def waits_until(lockstep, wall_s, end_s):
    """Poll every 10 ms; return the time at which waiting ends, at most `end_s`."""
    while wall_s < end_s and lockstep.must_wait(wall_s):
        wall_s += 0.01
    return wall_s


def test_lockstep_waits_no_longer_than_its_patience_until_the_next_command():
    lockstep = Lockstep(patience_s=1.0)
    lockstep.on_tick(0)
    lockstep.on_command(0)
    lockstep.on_tick(10 * MS)
    assert waits_until(lockstep, 5.0, 9.0) == pytest.approx(6.0, abs=0.03)
    lockstep.on_tick(20 * MS)
    assert not lockstep.must_wait(wall_s=6.2)
    lockstep.on_command(20 * MS)
    lockstep.on_tick(30 * MS)
    assert lockstep.must_wait(wall_s=6.3)


def test_pause_of_the_plant_process_does_not_use_up_patience():
    lockstep = Lockstep(patience_s=1.0)
    lockstep.on_tick(0)
    lockstep.on_command(0)
    lockstep.on_tick(10 * MS)
    assert waits_until(lockstep, 5.0, 5.5) == pytest.approx(5.5, abs=0.02)
    # The process was paused, and with it the tracker in the same process.
    assert lockstep.must_wait(wall_s=9.0)
    assert waits_until(lockstep, 9.0, 20.0) == pytest.approx(9.5, abs=0.05)


def test_control_tick_counts_each_period_once_on_the_steps_of_the_plant():
    period = round(1e9 / 60.0)  # no multiple of the plant's steps
    ticks = [control_tick(round(1e9 * 0.002 * i), period) for i in range(500)]
    changes = [i for i in range(1, 500) if ticks[i] != ticks[i - 1]]
    assert all(ticks[i] == ticks[i - 1] + 1 for i in changes)
    assert len(changes) == 59
    assert control_tick(9_999_999, 10 * MS) == 1  # a rounded time stamp loses no period


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


def test_histogram_handles_no_data_and_extreme_durations():
    histogram = DurationHistogram()
    assert histogram.text() == ''
    assert np.isnan(histogram.percentile(50))
    for duration in (-1.0, 0.0, 1e9):
        histogram.add(duration)
    assert histogram.count == 3
    assert histogram.max == 1e9


def test_lateness_drops_old_values_but_keeps_the_longest_pause():
    lateness = Lateness()
    lateness.note(10.0, 0.2)
    lateness.note(10.5, 0.1)
    assert lateness.recent_s(10.9) == 0.2
    assert lateness.recent_s(11.5) == 0.2  # from the window before
    lateness.note(11.6, 0.05)
    assert lateness.recent_s(12.6) == 0.05
    assert lateness.recent_s(20.0) == 0.0
    assert lateness.values(20.0) == {'late_ms': '0', 'longest_pause_ms': '200'}
