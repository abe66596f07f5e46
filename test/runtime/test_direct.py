"""Runs in one process: tracking, and exact repetition."""

import numpy as np

from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct

RIG = load_rig('cable_arm')
CYCLES = 800  # approach and part of the line


def tips_of_cycles(seed):
    """Return the measured tips (CYCLES, 3) [m] of the beginning of a run."""
    enough = iter([False] * CYCLES + [True]).__next__
    stopped = run_direct(RIG, 'line_small', seed=seed, should_stop=enough)
    assert not stopped.completed
    return stopped.samples.tip


def test_closed_loop_tracks_and_repeats_exactly_for_a_seed():
    first = run_direct(RIG, 'line_small', seed=4)
    error = first.error()
    assert first.completed
    assert 1e-4 < error.mean < 3e-3  # an error of zero would be as wrong as a large one
    first = first.samples.tip[:CYCLES]
    again, other = (tips_of_cycles(seed) for seed in (4, 5))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)


def test_a_run_that_is_interrupted_before_its_first_cycle_is_a_record_of_nothing():
    stopped = run_direct(RIG, 'line_small', should_stop=lambda: True)
    assert not stopped.completed
    assert stopped.error() is None
    assert stopped.timing.cycles == 0
    assert stopped.timing.compute_p50_ms is None
