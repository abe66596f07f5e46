"""The benchmark of the dynamics: cost against a dense solution, and accuracy."""

import numpy as np

from softarm_reproduction import bench_dynamics


def test_rows_have_bars_and_references():
    """The first row has the bar and the reference, or states that there is none."""
    rows = bench_dynamics.rows(1)
    assert rows[0].bar_us == 1e4
    assert np.isnan(rows[0].reference_us) == ('not installed' in rows[0].reference)
    # Linear against cubic cost.
    assert rows[2].ratio > rows[1].ratio > 1.0


def test_timed_tolerance_gives_an_accuracy_of_half_a_millimetre():
    """The bar requires this accuracy."""
    exact = bench_dynamics.motion(80, 1e-7)
    tips = bench_dynamics.motion(20, bench_dynamics.TOLERANCE)
    assert np.linalg.norm(tips - exact, axis=1).max() < 5e-4
