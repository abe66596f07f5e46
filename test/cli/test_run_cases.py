"""Parallel runs end with the process that started them."""

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.run_cases import _ended_early

RUNS = """
import multiprocessing, threading
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.rigs.loader import load_rig

def tell():
    while not (found := multiprocessing.active_children()):
        pass
    print(*(process.pid for process in found), flush=True)

if __name__ == '__main__':
    threading.Thread(target=tell, daemon=True).start()
    rig = load_rig('cable_arm')
    run_cases([RunCase(rig, 'circle', 'cable_statics', False, 900, seed) for seed in (0, 1)])
"""


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
def test_runs_end_with_the_process_that_started_them(tmp_path, number):
    script = tmp_path / 'runs.py'
    script.write_text(RUNS)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        # The runs have inherited the pipe: its end is theirs.
        process.communicate(timeout=120)


def test_a_killed_process_of_runs_ends_them_all_with_the_reason(tmp_path):
    script = tmp_path / 'runs.py'
    script.write_text(RUNS)
    command = [sys.executable, str(script)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        os.kill(int(process.stdout.readline().split()[0]), signal.SIGKILL)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.splitlines()[-1].endswith(
        'UsageError: a process that simulated runs was killed, perhaps for lack of memory'
    )
    assert 'BrokenProcessPool' not in said


@pytest.mark.parametrize(
    ('number', 'said'),
    [(signal.SIGKILL, (UsageError, 'was killed')), (0, (ValueError, 'bad value'))],
)
def test_a_kill_while_another_process_starts_is_told_as_such(number, said):
    """The pool closes its pipes under the process that starts; the error is that of the pipes."""
    error, text = said
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as pool,
        pytest.raises(error, match=text),
        _ended_early(pool),
    ):
        os.kill(pool.submit(os.getpid).result(), number)
        if number:
            with pytest.raises(BrokenProcessPool):
                pool.submit(signal.pause).result()
        raise ValueError('bad value(s) in fds_to_keep')
