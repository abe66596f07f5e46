"""
Settings of these tests: ROS domain, repeatable property tests and priority.

Tests of packet timing get real-time priority. Property tests draw the same examples every time;
SOFTARM_RANDOM_TESTS=1 draws new ones.
"""

import os
import signal

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


@pytest.fixture
def heard_hangup():
    """Let SIGHUP end processes as usual, also if these tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
