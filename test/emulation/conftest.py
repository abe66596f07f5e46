"""Tests that wait for wall-clock times run again where the machine was busy."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
TIMED = (
    'test_modbus_drive.py',
    'test_daq_service.py',
    'test_emulated_cable_arm.py',
    'test_emulated_pneumatic_arm.py',
)


def pytest_collection_modifyitems(config, items):
    if not config.pluginmanager.hasplugin('rerunfailures'):
        return
    for item in items:
        if item.path.parent == HERE and item.path.name in TIMED:
            item.add_marker(pytest.mark.flaky(reruns=4, reruns_delay=1))
