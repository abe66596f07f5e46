"""Runs in one process: tracking, and exact repetition."""

import numpy as np

from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct

RIG = load_rig('cable_arm')


def test_closed_loop_tracks_and_repeats_exactly_for_a_seed():
    first = run_direct(RIG, 'line_small', seed=4)
    error = first.error()
    assert first.completed
    assert 1e-4 < error.mean < 3e-3  # an error of zero would be as wrong as a large one
    second = run_direct(RIG, 'line_small', seed=4)
    np.testing.assert_array_equal(first.samples.tip, second.samples.tip)
    other = run_direct(RIG, 'line_small', seed=5)
    assert not np.array_equal(first.samples.tip, other.samples.tip, equal_nan=True)
