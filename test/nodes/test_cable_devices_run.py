"""A run of cable_arm with its stepper board emulated is held against the simulation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

import softarm_ros
from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
DOMAIN = '135'


def test_a_circle_is_followed_as_well_as_in_simulation(circle, tmp_path):
    try:
        built('steppers')
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    path, out = circle(speed=0.04, laps=1), tmp_path / 'out.json'
    simulated = run_direct(load_rig('cable_arm'), path).error().mean
    done = subprocess.run(
        [sys.executable, '-m', 'softarm_ros.tools.cli', 'run', 'cable_arm', '--backend',
         'emulated', '--trajectory', path, '--json', str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(Path(softarm_ros.__file__).parents[1]),
             'ROS_DOMAIN_ID': DOMAIN},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    record = json.loads(out.read_text())
    emulated = record['tracking_error_m']['mean']
    print(f'mean error: {1e3 * emulated:.2f} mm, simulated {1e3 * simulated:.2f} mm')
    assert emulated < 1.2 * simulated
    assert record['devices']['emulator']['jumps'] == '0 0 0 0 0 0'
    assert record['devices']['steppers']['board_write_errors'] == '0'
