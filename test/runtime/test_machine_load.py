import sys

import pytest

from softarm_ros.runtime import machine_load
from softarm_ros.runtime.machine_load import MachineLoad

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith('linux'), reason='the counters are those of Linux'
)


def test_processor_load_is_the_share_of_time_neither_idle_nor_waiting(tmp_path, monkeypatch):
    counters = tmp_path / 'stat'
    monkeypatch.setattr(machine_load, '_STAT', counters)
    #                     user nice system idle iowait irq softirq steal guest
    counters.write_text('cpu  500 10 200 3000 90 5 5 0 400 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n')
    load = MachineLoad()
    counters.write_text('cpu  504 10 201 3010 94 5 5 0 404 0\n')
    assert load.percent() is None  # the interval is too short
    counters.write_text('cpu  520 15 220 3050 100 7 6 2 420 0\n')
    assert load.percent() == pytest.approx(100.0 * 50.0 / 110.0)
    counters.write_text('cpu  520 15 220 3150 100 7 6 2 420 0\n')
    assert load.percent() == 0.0


def test_processor_counters_of_this_computer_are_read():
    busy, total = machine_load._busy_and_all()
    assert 0 < busy < total


def test_processor_load_is_none_without_counters(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_load, '_STAT', tmp_path / 'missing')
    assert MachineLoad().percent() is None
