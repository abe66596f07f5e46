"""Reserves a ROS domain that no other test process of this computer uses."""

import fcntl
import os
import tempfile
from functools import cache
from pathlib import Path

DOMAINS = range(40, 100)  # Linux allows 0 to 101; other programs may use the ports of higher ones
_held = []


@cache
def own_domain():
    """Return a free domain; this process reserves it until it ends, in whatever way."""
    for domain in DOMAINS:
        path = Path(tempfile.gettempdir()) / f'softarm-{os.getuid()}-test-domain{domain}.lock'
        file = path.open('a')
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        _held.append(file)
        return domain
    raise RuntimeError(f'all ROS domains from {DOMAINS[0]} to {DOMAINS[-1]} are in use by tests')
