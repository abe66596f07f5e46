"""The benchmark of the minimum-energy models runs and compares equals."""

from softarm_reproduction.bench_minimum_energy import rows


def test_rows_are_measured_beside_a_reference():
    measured = rows(repeats=1)
    assert len(measured) == 3
    assert all(row.compiled_us > 0.0 and row.reference_us > 0.0 for row in measured)
    assert measured[0].bar_us == 3000.0
