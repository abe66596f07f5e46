"""The benchmark agrees with its references, and prints its measurements."""

import pytest

from softarm_reproduction import bench, bench_cable_arm
from softarm_reproduction.bench_rows import BenchRow
from softarm_ros.cli.cli_errors import UsageError


@pytest.fixture(scope='module')
def rows():
    return bench.run_bench(['cable_arm'], repeats=3)


def test_cable_arm_rows_have_the_bars_3_20_and_1000_microseconds(rows):
    assert {row.bar_us for row in rows if row.bar_us} == {3.0, 20.0, 1000.0}


def test_compiled_kernels_are_ten_times_faster_than_numpy(rows):
    assert all(row.ratio > 10.0 for row in rows if row.bar_us and row.bar_us < 100.0)


def test_verdict_follows_the_bar():
    assert BenchRow('x', 2.0, 9.0, 'numpy', bar_us=3.0).verdict == 'pass'
    assert BenchRow('x', 4.0, 9.0, 'numpy', bar_us=3.0).verdict == 'short'
    assert BenchRow('x', 4.0, 9.0, 'numpy').verdict == ''


def test_result_that_differs_from_the_reference_raises(monkeypatch):
    monkeypatch.setattr(bench_cable_arm, 'numpy_damped_step', lambda bend, target: bend)
    with pytest.raises(AssertionError, match='differ by'):
        bench.run_bench(['cable_arm'], repeats=1)


def test_main_prints_the_table(capsys, monkeypatch, rows):
    monkeypatch.setattr(bench, 'run_bench', lambda topics, repeats: rows)
    bench.main(['cable_arm'])
    out = capsys.readouterr().out
    for row in rows:
        assert row.name[:12] in out and row.verdict in out


def test_unknown_topic_is_named():
    with pytest.raises(UsageError, match="no benchmark 'kosserat'; there are cable_arm"):
        bench.run_bench(['kosserat'])
