"""Lock that allows one run of a rig per ROS domain on this machine, free of races."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from softarm_ros.runtime.run_files import ros_domain, run_path


class AlreadyRunningError(ValueError):
    """The rig is already running, or being recorded, in this ROS domain."""

    def __init__(self, rig: str, how: str, rig_is: str = 'running') -> None:
        super().__init__(f'rig {rig} is already {rig_is} in ROS domain {ros_domain()} ({how})')


@contextmanager
def instance_lock(rig: str) -> Iterator[None]:
    """
    Hold the lock of a rig in this ROS domain; the system releases it even if the process crashes.

    Raises
    ------
    AlreadyRunningError
        If another process holds it.

    """
    with run_path(rig, 'lock').open('a+') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            raise AlreadyRunningError(rig, f'process {holder}') from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
        file.truncate(0)
