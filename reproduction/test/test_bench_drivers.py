"""The benchmark of the drivers measures plausible times, with devices in their own processes."""

import pytest

from softarm_reproduction import bench_drivers

pytestmark = pytest.mark.skipif(
    bool(bench_drivers.missing()), reason=f'not installed: {", ".join(bench_drivers.missing())}'
)


def test_commands_through_the_drivers_take_plausible_times():
    rows = bench_drivers.rows(1)
    assert len({row.name for row in rows}) == len(rows) == 8
    for row in rows:
        # A request and an answer between two processes take time, but reach no time-out.
        assert 10.0 < row.compiled_us < 1e6, row
        assert 10.0 < row.reference_us < 1e6, row
