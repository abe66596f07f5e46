"""When work is due."""

import pytest

from softarm_ros.clock import Rhythm


def test_work_is_due_at_once_and_then_once_a_period():
    rhythm = Rhythm(0.01)
    assert rhythm.due_s == 0.0
    assert rhythm.turn(100.0) == 0.0
    assert rhythm.due_s == pytest.approx(100.01)


def test_late_work_keeps_to_the_beat_and_missed_periods_are_dropped():
    rhythm = Rhythm(0.01)
    rhythm.turn(100.0)
    assert rhythm.turn(100.014) == pytest.approx(0.004)
    assert rhythm.due_s == pytest.approx(100.02)
    assert rhythm.turn(100.075) == pytest.approx(0.055)
    assert rhythm.due_s == pytest.approx(100.075)
