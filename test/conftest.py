"""Property tests draw the same examples every time; SOFTARM_RANDOM_TESTS=1 draws new ones."""

import os

from hypothesis import settings

settings.register_profile('repeatable', derandomize=True)
if os.environ.get('SOFTARM_RANDOM_TESTS', '0') == '0':
    settings.load_profile('repeatable')
