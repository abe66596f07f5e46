"""The benchmark rows of hydraulics and hydrodynamics agree with their references."""

import pytest

from softarm_reproduction import bench_hydraulics


def test_coupled_and_morison_rows_are_faster_than_their_references_and_the_rod_is_no_slower():
    _, coupled, morison, rod = bench_hydraulics.rows(3)
    # The first row is compared for its result only: numpy of six numbers is fast by itself.
    assert coupled.ratio > 3.0
    assert morison.ratio > 3.0
    # As fast as statics of five segments, whose tip is still 0.5 mm from that of a rod.
    assert rod.ratio > 0.7


def test_result_that_differs_from_the_reference_raises(monkeypatch):
    monkeypatch.setattr(bench_hydraulics, 'axes_step_into', lambda *arguments: None)
    with pytest.raises(AssertionError, match='hydraulic axes'):
        bench_hydraulics.rows(1)
