"""Tests that wait for wall-clock times run again where the machine was busy."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
TIMED = (
    'test_servo.py',
    'test_servo_line.py',
    'test_pressure_servo.py',
    'test_daq.py',
    'test_gripper.py',
    'test_cable_steppers.py',
)


def pytest_collection_modifyitems(config, items):
    if not config.pluginmanager.hasplugin('rerunfailures'):
        return
    for item in items:
        if item.path.parent == HERE and item.path.name in TIMED:
            item.add_marker(pytest.mark.flaky(reruns=4, reruns_delay=1))
