"""A serial line as a pseudo-terminal behind a link, which can be unplugged and plugged in."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import threading
import tty
from collections.abc import Callable
from pathlib import Path

from softarm_ros.drivers.polling import PollingThread

_WAIT_S = 0.005


class PtyLine:
    """
    Passes a host's bytes to a device, and the device's answers to the host.

    Parameters
    ----------
    answer
        Takes bytes of the host and returns the device's answer.
    idle
        Called often while the line is idle.
    name
        Name of the thread.

    """

    def __init__(
        self, answer: Callable[[bytes], bytes], idle: Callable[[], object], name: str
    ) -> None:
        self._answer, self._idle = answer, idle
        self._link: Path | None = None
        self._lock = threading.Lock()
        self._master = self._slave = -1
        self._delay_s = 0.0
        # A real device has its own processor: it does not wait for the simulated arm.
        self._thread = PollingThread(name, self._run, self._on_failure, goes_first=True)
        self.failure = ''

    def start(self, link: Path) -> None:
        """Open the line, with its port at the link."""
        self._link = link
        self.plug()
        self._thread.start()

    def close(self) -> None:
        """Close the line; may be called twice."""
        self._thread.close()
        self.unplug()

    def plug(self) -> None:
        """Create the port and its link, if missing."""
        with self._lock:
            if self._master >= 0 or self._link is None:
                return
            self._master, self._slave = pty.openpty()
            tty.setraw(self._master)
            tty.setraw(self._slave)
            os.set_blocking(self._master, False)
            draft = self._link.with_suffix('.draft')
            draft.unlink(missing_ok=True)
            draft.symlink_to(os.ttyname(self._slave))
            draft.replace(self._link)

    def unplug(self) -> None:
        """Remove the port, also for programs that have it open."""
        with self._lock:
            for end in (self._master, self._slave):
                if end >= 0:
                    os.close(end)
            self._master = self._slave = -1
            if self._link is not None:
                self._link.unlink(missing_ok=True)

    def delay(self, seconds: float) -> None:
        """Delay answers by a time [s]."""
        self._delay_s = seconds

    def _on_failure(self, error: BaseException) -> None:
        self.failure = f'{type(error).__name__}: {error}'

    def _run(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            with self._lock:
                master = self._master
            if master < 0:
                self._idle()
                thread.ending.wait(_WAIT_S)
                continue
            try:
                readable, _, _ = select.select([master], [], [], _WAIT_S)
                data = os.read(master, 4096) if readable else b''
            except (OSError, ValueError):  # unplugged meanwhile
                continue
            if not data:
                self._idle()
                continue
            answer = self._answer(data)
            if self._delay_s:
                thread.ending.wait(self._delay_s)
            with contextlib.suppress(OSError):
                os.write(master, answer)
