"""The benchmark of the stepper driver measures something against a running board."""

import pytest

from softarm_reproduction import bench_steppers

pytestmark = [
    pytest.mark.skipif(bool(bench_steppers.missing()), reason=bench_steppers.missing()),
]


def test_rows():
    p50, p99 = bench_steppers.rows(1)
    assert 2e3 < p50.compiled_us <= p99.compiled_us  # a motor cannot move in no time
    assert 2e3 < p50.reference_us <= p99.reference_us


def test_sustained_commands_arrive_and_are_executed():
    found = bench_steppers.endure(2.0)
    assert found.lossless, '\n'.join(found.lines())
    assert 100 < found.commands <= 201
    assert found.frames_sent > 100
    assert found.states > 100
    assert any(found.steps_executed)
