"""Parallel runs end with the process that started them."""

import os
import signal
import subprocess
import sys

import pytest

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
