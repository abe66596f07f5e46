"""The benchmark of the minimum-energy models compares equal results."""

from dataclasses import replace

import numpy as np
import pytest

from softarm_reproduction import bench_minimum_energy


def test_compiled_models_are_ten_times_faster_than_least_squares_of_the_paper():
    """By about 100 times on a quiet computer; the factor of ten leaves room for a busy one."""
    held, cold, muscles, rod = bench_minimum_energy.rows(repeats=3)
    assert held.bar_us == 3000.0
    assert min(held.ratio, cold.ratio, muscles.ratio) > 10.0
    assert rod.ratio > 0.5  # against a backbone of similar accuracy: about 2


def test_shape_that_differs_from_the_reference_raises(monkeypatch):
    solve = bench_minimum_energy.solve_least_squares

    def off_by_two_millimetres(*arguments, **settings):
        found = solve(*arguments, **settings)
        return replace(found, positions=found.positions + np.array([0.002, 0.0, 0.0]))

    monkeypatch.setattr(bench_minimum_energy, 'solve_least_squares', off_by_two_millimetres)
    with pytest.raises(AssertionError, match='minimum energy'):
        bench_minimum_energy.rows(repeats=1)
