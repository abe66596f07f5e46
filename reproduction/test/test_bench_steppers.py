"""The benchmark of the stepper driver measures plausible times with a running board."""

import pytest

from softarm_reproduction import bench_steppers

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.skipif(bool(bench_steppers.missing()), reason=bench_steppers.missing()),
]


def test_command_takes_at_least_2_ms_over_line_and_board():
    for row in bench_steppers.rows(1):
        assert 2e3 < row.compiled_us < 1e6, row
        assert 2e3 < row.reference_us < 1e6, row


def test_sustained_commands_arrive_and_are_executed():
    found = bench_steppers.endure(2.0)
    assert found.lossless, '\n'.join(found.lines())
    assert 100 < found.commands <= 201
    assert found.frames_sent > 100
    assert found.states > 100
    assert any(found.steps_executed)
