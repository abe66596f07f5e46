"""
Reads an NDI tracker by the library scikit-surgerynditracker, in a process of its own.

The library keeps the interpreter to itself while it waits for the device, five seconds where none
answers; a node must not stand still meanwhile. `python -m ... PORT` writes a JSON object a line to
its standard output: `frame`, `time_s` (monotonic), `tools` (handle, quality, then w, x, y, z [-]
and x, y, z [mm], null for a coil that is not seen), or `unread` for a reply that cannot be used,
or `idle` while the device answers and counts no frames, or `error`, why it ends. It ends when
nobody reads, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import sys
import time
from typing import Any

_ORDINARY = (0, 0)  # SCHED_OTHER
_EVERY_POSE, _VOUCHED_POSES = ':0801', ':0001'  # reply options of BX and TX
POLL_S = 0.004  # between two questions while there is no new frame
IDLE_S = 0.5  # without a new frame, until that is said
GIVE_UP = 3  # replies that cannot be read, one after the other


def main(port: str) -> int:
    """Track until the reader is gone (0), or the device is (1)."""
    priority = _priority()
    # A node's real-time priority is not for a library that loads for a second.
    _set_priority(_ORDINARY)
    # What the library prints must not be taken for frames.
    with os.fdopen(os.dup(1), 'w', buffering=1) as out:
        os.dup2(2, 1)
        try:
            return _track(port, out, priority)
        except BrokenPipeError:
            return 0
        except (OSError, ValueError) as error:
            _write(out, {'error': ' '.join(str(error).split())[:300]})
            return 1


def _track(port: str, out: Any, priority: tuple[int, int]) -> int:
    _claim(port)
    from sksurgerynditracker.nditracker import NDITracker

    tracker = NDITracker({'tracker type': 'aurora', 'serial port': port, 'use quaternions': True})
    # The library asks for poses that the device does not vouch for too: of coils outside its
    # measurement volume, centimetres off, with a mark that the library does not hand on.
    tracker._capture_string = tracker._capture_string.replace(_EVERY_POSE, _VOUCHED_POSES)
    tracker.start_tracking()
    _set_priority(priority)
    last, failures, heard_s = None, 0, time.monotonic()
    while True:
        try:
            frame, tools = frame_of(tracker)
            failures = 0
        except OSError as error:
            failures += 1
            if failures >= GIVE_UP:
                raise
            _write(out, {'unread': str(error)})
            continue
        now = time.monotonic()
        if frame == last:
            if now - heard_s > IDLE_S:
                _write(out, {'idle': frame})
                heard_s = now
            time.sleep(POLL_S)
            continue
        last, heard_s = frame, now
        _write(out, {'frame': frame, 'time_s': now, 'tools': tools})


def _claim(port: str) -> None:
    """Lock a port for this process; the library itself only says that it cannot connect."""
    port_fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        fcntl.flock(port_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(port_fd)
        raise ValueError('in use by another program') from None


def frame_of(tracker: Any) -> tuple[int, list[list[float | None]]]:
    """Ask for a frame; return its number, and of each coil handle, quality and pose."""
    handles, _, frames, poses, qualities = tracker.get_frame()
    frame = max((int(number) for number in frames if number == number), default=0)
    tools = [
        [handle, _number(quality), *map(_number, pose.ravel())]
        for handle, quality, pose in zip(handles, qualities, poses)
    ]
    return frame, tools


def _priority() -> tuple[int, int]:
    """Return policy and priority of this process."""
    try:
        return os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    except (AttributeError, OSError):
        return _ORDINARY


def _set_priority(priority: tuple[int, int]) -> None:
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, priority[0], os.sched_param(priority[1]))


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _write(out: Any, line: dict[str, object]) -> None:
    out.write(json.dumps(line) + '\n')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
