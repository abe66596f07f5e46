"""
Settings of all tests: a ROS domain of their own, who runs beside whom, repeatable property tests.

Property tests draw the same examples every time; SOFTARM_RANDOM_TESTS=1 draws new ones.
"""

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


def pytest_collection_modifyitems(items):
    """
    Deal tests out to processes by file; those on the computer's clock to one process, and first.

    One whole arm at a time leaves the other processors to all other tests.
    """

    def on_the_clock(item):
        return item.get_closest_marker('wall_clock') is not None

    for item in items:
        file = item.nodeid.partition('::')[0]
        item.add_marker(pytest.mark.xdist_group('wall_clock' if on_the_clock(item) else file))
    items.sort(key=on_the_clock, reverse=True)
