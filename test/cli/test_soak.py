"""Counts of `softarm soak` from summaries of real runs, its load and its refused options."""

import io
import os
import select
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from rich.console import Console

from softarm_ros.cli import soak as soaking
from softarm_ros.cli.beginning import beginning
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.consoles import TABLE_WIDTH
from softarm_ros.cli.run_command import EXIT_INTERRUPTED
from softarm_ros.cli.soak import SoakOptions, SoakRow, soak, soak_table
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct

RIG = 'cable_arm_single'


@pytest.fixture(scope='module')
def records(tmp_path_factory):
    rig = load_rig(RIG)
    path = beginning(rig, 0.01, tmp_path_factory.mktemp('soak'))
    return [run_direct(rig, path, laps=1, seed=seed) for seed in (0, 1, 2)]


def printed(row, options):
    text = io.StringIO()
    Console(file=text, width=TABLE_WIDTH).print(soak_table([row], options))
    return text.getvalue()


def test_beginning_has_the_requested_length_and_the_start_of_the_path(records):
    path = records[0].path
    length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    assert length == pytest.approx(0.01, rel=0.01)
    # It starts at the start of the whole path.
    one_cycle = iter((False, True)).__next__
    whole = run_direct(load_rig(RIG), None, laps=1, seed=0, should_stop=one_cycle).path
    np.testing.assert_allclose(path[0], whole[0], atol=1e-6)


def test_soak_row_compares_median_errors_and_counts_every_run(records):
    runs = [record.summary() for record in records]
    means = tuple(record.error().mean for record in records)
    row = SoakRow(RIG, tuple(runs), means)
    assert row.completed == 3
    assert row.error_ratio == pytest.approx(1.0)
    assert SoakRow(RIG, tuple(runs), tuple(0.5 * m for m in means)).error_ratio == pytest.approx(2)
    text = printed(row, SoakOptions(starts=3))
    assert '3/3' in text
    assert '1.00: ' in text
    assert f'0/{sum(run["loop"]["cycles"] for run in runs)}' in text


def test_a_killed_run_counts_as_not_completed(records):
    row = SoakRow(RIG, (records[0].summary(), {'completed': False, 'why': 'killed'}), (0.001,))
    assert row.completed == 1
    assert '1/2' in printed(row, SoakOptions(starts=2))
    nothing = SoakRow(RIG, ({'completed': False, 'why': 'killed'},), (0.001,))
    assert np.isnan(nothing.error_ratio)
    assert '0/1' in printed(nothing, SoakOptions(starts=1))


def test_busy_loops_end_when_their_parent_is_killed():
    program = (
        'import subprocess, time\n'
        'from softarm_ros.cli import soak\n'
        'started = []\n'
        'class Noted(subprocess.Popen):\n'
        '    def __init__(self, *args):\n'
        '        super().__init__(*args)\n'
        '        started.append(str(self.pid))\n'
        'soak.subprocess.Popen = Noted\n'
        'with soak.busy_loops(2):\n'
        '    print(*started, flush=True)\n'
        '    time.sleep(60.0)\n'
    )
    with subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE) as parent:
        handles = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        parent.send_signal(signal.SIGKILL)
    assert len(handles) == 2
    for handle in handles:
        ready, _, _ = select.select([handle], [], [], 20.0)  # readable once it has ended
        assert ready
        os.close(handle)


@pytest.mark.ros
@pytest.mark.graphs
@pytest.mark.timeout(180)
def test_a_request_to_stop_ends_the_present_run_in_order_and_keeps_those_before_it(monkeypatch):
    pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
    runs = []

    class Noted(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            runs.append(self)

    def second_has_nodes():
        return len(runs) > 1 and (
            runs[1].poll() is not None or bool(psutil.Process(runs[1].pid).children())
        )

    monkeypatch.setattr(soaking.subprocess, 'Popen', Noted)
    options = SoakOptions(3, rate=20.0)
    (row,) = soak([RIG, RIG], (), options, Console(quiet=True), second_has_nodes)
    assert [run.returncode for run in runs] == [0, EXIT_INTERRUPTED]
    assert (row.completed, len(row.runs)) == (1, 1)


@pytest.mark.parametrize(
    ('options', 'why'),
    [
        (SoakOptions(1, backend='hardware'), '--backend hardware: expected sim or emulated'),
        (SoakOptions(1, rate=float('nan')), '--rate nan: expected 0.05 to 50 times real time'),
    ],
)
def test_soak_refuses_the_hardware_backend_and_an_invalid_rate(options, why):
    with pytest.raises(UsageError, match=why):
        soak([RIG], (), options, Console(quiet=True), lambda: False)
