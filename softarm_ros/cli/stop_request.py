"""Requests to stop a command that moves an arm or computes for minutes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from softarm_ros.nodes.process import unless_ignored


class StopRequest:
    """Notes Ctrl-C, SIGTERM and the end of the terminal; a second Ctrl-C interrupts at once."""

    def __init__(self) -> None:
        self.asked = False
        self._interrupted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note a signal."""
        if number != signal.SIGHUP:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True
        self.asked = True

    def on_output_ended(self) -> None:
        """Note that nobody reads the output any more: nobody there can press Ctrl-C."""
        if unless_ignored(signal.SIGHUP):  # else go on without anybody
            self.asked = True


@contextmanager
def stop_on_signals(*more: signal.Signals) -> Iterator[Callable[[], bool]]:
    """
    Turn Ctrl-C, SIGTERM and a closed terminal into a flag, and end in order.

    `more` are signals to turn, too: SIGTSTP (Ctrl-Z) for commands whose arm moves in another
    process. It would go on, and the suspended command could not stop it.
    """
    request = StopRequest()
    signals = (signal.SIGINT, signal.SIGTERM, *unless_ignored(signal.SIGHUP, *more))
    previous = {number: signal.signal(number, request) for number in signals}
    try:
        yield lambda: request.asked
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
