"""A ROS domain that no other test process of this computer uses."""

import fcntl
import os
import tempfile
from functools import cache
from pathlib import Path

DOMAINS = range(40, 100)  # of Linux's 0 to 101; ports above may be taken by any program
_held = []


@cache
def own_domain():
    """Return a free domain; this process keeps it until it ends, however it ends."""
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
