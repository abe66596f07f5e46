"""
Property tests draw the same examples every time; SOFTARM_RANDOM_TESTS=1 draws new ones.

What times a running arm or board against the wall clock may be tried again where the machine was
busy, and says so (`-raR`); what is about the safety of the graph may not.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadlines: how long an example takes says how busy the computer is.
settings.register_profile('repeatable', derandomize=True, deadline=None)
settings.register_profile('random', deadline=None)
fresh = os.environ.get('SOFTARM_RANDOM_TESTS', '0') != '0'
settings.load_profile('random' if fresh else 'repeatable')

WALL_CLOCK = ('nodes', 'firmware', 'drivers', 'emulation')
SAFETY = ('test_safety.py', 'test_hold.py', 'test_heartbeat.py', 'test_untrusted_feedback.py')


def pytest_collection_modifyitems(config, items):
    if not config.pluginmanager.hasplugin('rerunfailures'):
        return
    here = Path(__file__).parent
    for item in items:
        name = item.path.name
        room = item.path.relative_to(here).parts[0] if here in item.path.parents else ''
        if room in WALL_CLOCK and name not in SAFETY:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1))
