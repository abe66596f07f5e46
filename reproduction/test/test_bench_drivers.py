"""The benchmark of the drivers measures something, with devices in processes of their own."""

import pytest

from softarm_reproduction import bench_drivers

pytestmark = pytest.mark.skipif(
    bool(bench_drivers.missing()), reason=f'not installed: {", ".join(bench_drivers.missing())}'
)


def test_commands_take_the_way_through_the_driver():
    rows = bench_drivers.rows(1)
    assert len({row.name for row in rows}) == len(rows) == 8
    for row in rows:
        # A request and an answer between two processes: not for nothing, and not by a time-out.
        assert 10.0 < row.compiled_us < 1e6, row
        assert 10.0 < row.reference_us < 1e6, row
