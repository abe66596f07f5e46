"""A run of cable_arm with its stepper board emulated is held against the simulation."""

import os
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from rich.console import Console

from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.tools.run_command import RunOptions

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]


def test_a_circle_is_followed_as_well_as_in_simulation(circle):
    try:
        built('steppers')
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    from softarm_ros.tools.topic_run import run_topics

    path = circle(speed=0.04, laps=1)
    simulated = run_direct(load_rig('cable_arm'), path).error()
    options = RunOptions(trajectory=path, backend='emulated')
    with Path(os.devnull).open('w') as nowhere:
        record = run_topics(load_rig('cable_arm'), options, Console(file=nowhere), lambda: False)
    assert record.completed, record.events
    emulated = record.error()
    print(f'mean error: {1e3 * emulated.mean:.2f} mm, simulated {1e3 * simulated.mean:.2f} mm')
    assert emulated.mean < 1.2 * simulated.mean
    board = record.devices['steppers']
    assert int(board['frames_sent']) > 500
    assert record.devices['emulator']['jumps'] == '0 0 0 0 0 0'
