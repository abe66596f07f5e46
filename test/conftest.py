"""
Settings of all tests: a ROS domain, repeatable property tests, priority for those on the clock,
and no search for garbage among what is there before the first test.

Property tests draw the same examples every time; SOFTARM_RANDOM_TESTS=1 draws new ones.
"""

import atexit
import gc
import os

import pytest
from hypothesis import settings
from ros_domain import own_domain

# Before rclpy is imported anywhere: tests neither hear nor disturb another ROS graph, nor the
# tests of another process.
os.environ['ROS_DOMAIN_ID'] = str(own_domain())

# No deadlines: how long an example takes says how busy the computer is.
settings.register_profile('repeatable', derandomize=True, deadline=None)
settings.register_profile('random', deadline=None)
fresh = os.environ.get('SOFTARM_RANDOM_TESTS', '0') != '0'
settings.load_profile('random' if fresh else 'repeatable')

_LOOK_AFTER = 20_000  # new objects; Python's 700


def pytest_collection_finish(session):
    """Leave out what stays: looking for garbage took a tenth of the processor time of tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_LOOK_AFTER, *gc.get_threshold()[1:])
    atexit.register(gc.unfreeze)  # or compiled modules take what stays for leaks, and say so


@pytest.fixture(autouse=True)
def prioritised(request):
    """Give both ends of a line of packets the priority that a sensor's node has, if permitted."""
    if request.node.get_closest_marker('packets') is None:
        yield
        return
    from softarm_ros.nodes.scheduling import drop_priority, raise_priority
    from softarm_ros.rigs.graph import REAL_TIME_PRIORITY

    raise_priority(REAL_TIME_PRIORITY)
    yield
    drop_priority()
