"""The benchmark rows of hydraulics and hydrodynamics agree with their references."""

from softarm_reproduction.bench_hydraulics import rows


def test_rows_are_measured_and_agree():
    for row in rows(3):
        assert row.compiled_us > 0.0
        assert row.reference_us > 0.0
        assert row.verdict in ('pass', 'short')
