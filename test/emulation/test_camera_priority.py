"""Tested in a separate process: the test runner must not keep a raised priority."""

import subprocess
import sys

import pytest

PROGRAM = """
import os
import psutil
from softarm_ros.emulation.stereo_camera_process import CameraProcess
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import sensor_config
from softarm_ros.runtime.scheduling import raise_priority

rig = load_rig('pneumatic_arm')
refused = raise_priority(7)
cameras = CameraProcess(sensor_config(rig, 'stereo_cameras'), rig.section_names, seed=1)
cameras.start()
(process,) = psutil.Process().children()
threads = [one.id for one in process.threads()]
print(refused or sorted({(os.sched_getscheduler(t), os.sched_getparam(t).sched_priority)
                         for t in threads}))
print(os.SCHED_FIFO)
cameras.close()
"""


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='SCHED_FIFO is Linux')
def test_emulated_cameras_draw_at_the_priority_of_the_emulator():
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    found, fifo = done.stdout.splitlines()
    if 'ulimit -r' in found:
        pytest.skip(found)
    assert found == f'[({fifo}, 7)]'
