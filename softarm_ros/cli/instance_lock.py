"""Lock that allows one run of a rig per ROS domain on this machine, free of races."""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softarm_ros.runtime.run_files import ros_domain, run_path


class AlreadyRunningError(ValueError):
    """The rig is already running, or being recorded, in this ROS domain."""

    def __init__(self, rig: str, how: str, rig_is: str = 'running') -> None:
        super().__init__(
            f'rig {rig} is already {rig_is} in ROS domain {ros_domain()} ({how}); end that first. '
            'Another arm of this rig needs another ROS_DOMAIN_ID, or a rig file with another name'
        )


@contextmanager
def instance_lock(rig: str) -> Iterator[None]:
    """
    Hold the lock of a rig in this ROS domain; the system releases it even if the process crashes.

    Raises
    ------
    AlreadyRunningError
        If another process holds it.

    """
    path = run_path(rig, 'lock')
    with path.open('a+', encoding='utf-8', errors='backslashreplace') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            raise AlreadyRunningError(rig, f'process {holder}') from None
        file.truncate(0)
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
        file.write(f'{os.getpid()}: {command}')
        file.flush()
        yield
        file.truncate(0)
