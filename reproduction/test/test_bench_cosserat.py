"""Benchmark of the Cosserat rod: rows, accuracy table, growth of the cost."""

import numpy as np

from softarm_reproduction.bench_cosserat import accuracy_report, growth, rows


def test_rows_have_their_bars_and_beat_the_reference():
    """`rows` raises if a tip differs from the reference by more than a micrometre."""
    found = rows(3)
    assert [row.bar_us for row in found] == [250.0, 150.0, None, None]
    for row in found[:3]:
        assert row.ratio > 3.0


def test_accuracy_report_solves_all_cases():
    lines = accuracy_report().splitlines()
    assert '20 of 20 solved' in lines
    assert all(float(line.split()[-1]) < 1.0 for line in lines[1:21])


def test_cost_grows_linearly():
    """16 times the size takes less than 32 times as long on a busy machine, not 256 times."""
    curves = growth(5)
    for points in curves:
        x, y = np.array(points).T
        assert y[-1] / y[0] < 2.0 * x[-1] / x[0], points
