"""
Settings of all tests: a ROS domain of their own, and repeatable property tests.

Property tests draw the same examples every time; SOFTARM_RANDOM_TESTS=1 draws new ones.
"""

import os

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
