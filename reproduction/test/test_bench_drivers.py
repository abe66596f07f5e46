"""The benchmark of the drivers measures something, with devices in processes of their own."""

import pytest

from softarm_reproduction import bench_drivers

pytestmark = pytest.mark.skipif(
    bool(bench_drivers.missing()), reason=f'not installed: {", ".join(bench_drivers.missing())}'
)


def test_rows():
    rows = bench_drivers.rows(1)
    assert len(rows) == 8
    assert len({row.name for row in rows}) == 8
    for p50, p99 in zip(rows[::2], rows[1::2]):
        assert 10.0 < p50.compiled_us <= p99.compiled_us
        assert 10.0 < p50.reference_us <= p99.reference_us
