"""The viewer of a run and the run of a viewer end with the process that started them."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('viser', reason='needs viser')
pytest.importorskip('rclpy', reason='needs ROS')

ROOT = Path(__file__).parents[3]

VIEWER_OF_RUN = """
import time
from softarm_ros.cli.viewer.process import viewer_process
from softarm_ros.rigs.loader import load_rig
with viewer_process(load_rig('cable_arm')):
    time.sleep(120)
"""

RUN_OF_VIEWER = """
import time
import viser
from softarm_ros.cli.viewer.runs import RunControls
from softarm_ros.rigs.loader import load_rig
server = viser.ViserServer(host='127.0.0.1', port=8272, verbose=False)
controls = RunControls(server.gui, load_rig('cable_arm'), print)
controls._asked.put('run')
controls.update(heard=False)
print(controls._process.pid, flush=True)
time.sleep(120)
"""


@pytest.fixture
def started(tmp_path):
    """Return a function that runs a script in its own process until the test ends."""
    processes = []

    def start(text):
        script = tmp_path / 'script.py'
        script.write_text(text)
        environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
        process = subprocess.Popen(
            [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_viewer_of_a_killed_run_ends(started):
    run = started(VIEWER_OF_RUN)
    assert any('http://' in line for line in iter(run.stdout.readline, ''))
    run.kill()
    run.communicate(timeout=20.0)  # the viewer holds the same output until it ends


@pytest.mark.skipif(not hasattr(os, 'pidfd_open'), reason='needs Linux')
def test_run_of_a_killed_viewer_ends(started):
    viewer = started(RUN_OF_VIEWER)
    pid = next(int(line) for line in iter(viewer.stdout.readline, '') if line.strip().isdigit())
    ended = select.poll()
    ended.register(os.pidfd_open(pid))
    viewer.kill()
    assert ended.poll(20_000)
