"""Property tests draw the same examples every time; SOFTARM_RANDOM_TESTS=1 draws new ones."""

import os

from hypothesis import settings

# No deadlines: how long an example takes says how busy the computer is.
settings.register_profile('repeatable', derandomize=True, deadline=None)
settings.register_profile('random', deadline=None)
fresh = os.environ.get('SOFTARM_RANDOM_TESTS', '0') != '0'
settings.load_profile('random' if fresh else 'repeatable')
