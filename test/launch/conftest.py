"""Settings for launch_testing, which leaves open sockets to the garbage collector."""

import pytest


def pytest_collection_modifyitems(items):
    """Ignore only the warning about the unclosed event loop, which pytest makes an error."""
    before = r'ignore:[\s\S]*'
    loop = r'(unclosed event loop|unclosed <socket\.socket fd=\d+, family=(1|AddressFamily'
    ours = r'\.AF_UNIX))[\s\S]*:pytest.PytestUnraisableExceptionWarning'
    for item in items:
        if item.fspath.basename == 'test_arm_launch.py':
            item.add_marker(pytest.mark.filterwarnings(before + loop + ours))
            item.add_marker(pytest.mark.timeout(600))
