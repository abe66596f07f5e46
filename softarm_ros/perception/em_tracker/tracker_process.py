"""
Read an NDI tracker with the library scikit-surgerynditracker, in a process of its own.

The library blocks the interpreter while it waits for the device, for five seconds if none answers;
this must not block a node. `python -m ... PORT` writes one JSON object per line to its standard
output: `frame`, `time_s` (monotonic), `tools` (handle, quality, then w, x, y, z [-] and x, y, z
[mm], null for a coil that is not seen); `unread` for a reply that cannot be used; `idle` while the
device answers without counting frames; `refused`, before the first frame, with the reason for each
coil that the device cannot initialise; `plugged` when a coil was plugged in, tracked only after
a restart; `error` with the reason why the process ends. It also ends when the reader is gone.
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
POLL_S = 0.004  # between two requests while there is no new frame
IDLE_S = 0.1  # time without a new frame before `idle` is written; below any `timeout_s`
GIVE_UP = 3  # consecutive unreadable replies
_PORT_OCCUPIED = 0x0040  # system status: some port handle has become occupied


def main(port: str) -> int:
    """Track until the reader is gone (return 0) or the device is (return 1)."""
    priority = _priority()
    # Loading the library takes a second, which must not run at the node's real-time priority.
    _set_priority(_ORDINARY)
    # Redirect output of the library, which must not be mistaken for frames.
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
    import ndicapy
    from sksurgerynditracker.nditracker import NDITracker

    refused: dict[int, str] = {}

    class Tracker(NDITracker):
        def _find_wired_ports(self) -> None:
            refused.update(_initialise(ndicapy, self._device, self._tool_descriptors))

    tracker = Tracker({'tracker type': 'aurora', 'serial port': port, 'use quaternions': True})
    # The library also asks for poses of coils outside the measurement volume. They are centimetres
    # off, and the library hides the status bit that marks them.
    tracker._capture_string = tracker._capture_string.replace(_EVERY_POSE, _VOUCHED_POSES)
    binary = tracker._capture_string.startswith('BX')
    status = ndicapy.ndiGetBXSystemStatus if binary else ndicapy.ndiGetTXSystemStatus
    tracker.start_tracking()
    _set_priority(priority)
    if refused:
        _write(out, {'refused': {f'{handle:02X}': why for handle, why in refused.items()}})
    last, failures, heard_s = None, 0, time.monotonic()
    occupied = True  # a bit that is set from the beginning is no news
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
        before, occupied = occupied, bool(int(status(tracker._device)) & _PORT_OCCUPIED)
        if occupied and not before:
            _write(out, {'plugged': frame})
        if frame == last:
            if now - heard_s > IDLE_S:
                _write(out, {'idle': frame})
                heard_s = now
            time.sleep(POLL_S)
            continue
        last, heard_s = frame, now
        _write(out, {'frame': frame, 'time_s': now, 'tools': tools})


def _claim(port: str) -> None:
    """Lock a port for this process; the library would only report that it cannot connect."""
    port_fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        fcntl.flock(port_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(port_fd)
        raise ValueError('in use by another program') from None


def _initialise(ndicapy: Any, device: Any, tools: list[dict[str, object]]) -> dict[int, str]:
    """
    Initialise all coils and append them to `tools`; return why others cannot be initialised.

    The library would track none if one of them fails. Coils may appear after others (two in a
    tool), so the device is asked until it lists no new one.
    """
    tried: set[int] = set()
    refused: dict[int, str] = {}
    while True:
        ndicapy.ndiCommand(device, 'PHSR:02')
        count = ndicapy.ndiGetPHSRNumberOfHandles(device)
        waiting = {ndicapy.ndiGetPHSRHandle(device, k) for k in range(count)} - tried
        if not waiting:
            return refused
        tried |= waiting
        for handle in sorted(waiting):
            try:
                ndicapy.ndiCommand(device, f'PINIT:{handle:02x}')
            except OSError as error:
                refused[handle] = str(error)
                continue
            name = bytes((handle,))
            tools.append({'description': 0, 'port handle': handle, 'c_str port handle': name})


def frame_of(tracker: Any) -> tuple[int, list[list[float | None]]]:
    """Request a frame; return its number, and handle, quality and pose of each coil."""
    handles, _, frames, poses, qualities = tracker.get_frame()
    frame = max((int(number) for number in frames if number == number), default=0)
    tools = [
        [handle, _number(quality), *map(_number, pose.ravel())]
        for handle, quality, pose in zip(handles, qualities, poses)
    ]
    return frame, tools


def _priority() -> tuple[int, int]:
    """Return scheduling policy and priority of this process."""
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
