"""Parallel runs end with the process that started them."""

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
