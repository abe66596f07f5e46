"""
Settings of all tests: ROS domain, repeatable property tests, priority and garbage collection.

Tests of packet timing get real-time priority. Objects that exist before the first test are
excluded from garbage collection. Property tests draw the same examples every time;
SOFTARM_RANDOM_TESTS=1 draws new ones.
"""

import atexit
import gc
import os

import pytest
from hypothesis import settings
from ros_domain import own_domain

# Set before rclpy is imported anywhere: it isolates tests from other ROS graphs, and from tests in
# other processes.
os.environ['ROS_DOMAIN_ID'] = str(own_domain())

# No deadlines: the time an example takes depends on how busy the computer is.
settings.register_profile('repeatable', derandomize=True, deadline=None)
settings.register_profile('random', deadline=None)
fresh = os.environ.get('SOFTARM_RANDOM_TESTS', '0') != '0'
settings.load_profile('random' if fresh else 'repeatable')

_LOOK_AFTER = 20_000  # new objects before a collection; Python's default is 700


def pytest_collection_finish(session):
    """Freeze existing objects: garbage collection took a tenth of the tests' processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_LOOK_AFTER, *gc.get_threshold()[1:])
    atexit.register(gc.unfreeze)  # otherwise compiled modules report frozen objects as leaks


@pytest.fixture(autouse=True)
def prioritised(request):
    """Give tests marked `packets` the real-time priority of a sensor node, if permitted."""
    if request.node.get_closest_marker('packets') is None:
        yield
        return
    from softarm_ros.rigs.graph import REAL_TIME_PRIORITY
    from softarm_ros.runtime.scheduling import drop_priority, raise_priority

    raise_priority(REAL_TIME_PRIORITY)
    yield
    drop_priority()
