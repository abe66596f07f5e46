import sys
import time

import pytest

from softarm_ros.runtime.machine_load import MachineLoad

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith('linux'), reason='the counters are those of Linux'
)


def test_work_of_this_process_shows_as_use_of_the_processors():
    load = MachineLoad()
    end = time.monotonic() + 30.0
    while (percent := load.percent()) is None:
        assert time.monotonic() < end
    assert 0.0 < percent <= 100.0
