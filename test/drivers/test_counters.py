"""Percentiles of latencies against numpy's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.drivers.counters import LatencyRecord


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.integers(1, 2500), st.integers(0, 2**32 - 1))
def test_percentiles_of_the_latest_latencies_are_those_of_numpy(count, seed):
    latencies = np.random.default_rng(seed).exponential(0.01, count)
    record = LatencyRecord()
    for latency in latencies:
        record.add(latency)
    found, kept = record.summary(), latencies[-2048:]
    assert [found.p50_s, found.p99_s] == np.percentile(kept, (50, 99)).tolist()
    assert (found.max_s, found.count) == (kept.max(), count)


def test_percentiles_are_unknown_without_latencies():
    found = LatencyRecord().summary()
    assert np.isnan([found.p50_s, found.p99_s, found.max_s]).all()
    assert found.count == 0
