"""Requests to stop a command that moves an arm or computes for minutes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from softarm_ros.nodes.process import unless_ignored

_KEYS = {signal.SIGINT: 'Ctrl-C', signal.SIGTSTP: 'Ctrl-Z'}


class StopRequest:
    """
    Notes Ctrl-C, SIGTERM and the end of the terminal; a second Ctrl-C interrupts at once.

    Attributes
    ----------
    by :
        What asked first, in words; '' if nothing has.

    """

    def __init__(self) -> None:
        self.by = ''
        self._interrupted = False

    @property
    def asked(self) -> bool:
        """Whether anything has asked to stop."""
        return bool(self.by)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note a signal."""
        if number != signal.SIGHUP:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True
        known = signal.Signals(number)
        self.by = self.by or _KEYS.get(known, known.name)

    def on_output_ended(self) -> None:
        """Note that nobody reads the output any more: nobody there can press Ctrl-C."""
        if unless_ignored(signal.SIGHUP):  # else go on without anybody
            self.by = self.by or 'the end of the output'


@dataclass(frozen=True)
class Stopped:
    """Tells whether anything has asked to stop, and what."""

    _request: StopRequest

    def __call__(self) -> bool:
        """Return whether anything has asked to stop."""
        return self._request.asked

    @property
    def by(self) -> str:
        """What asked first, such as 'SIGTERM'; '' if nothing has."""
        return self._request.by


@contextmanager
def stop_on_signals(*more: signal.Signals) -> Iterator[Stopped]:
    """
    Turn Ctrl-C, SIGTERM and a closed terminal into a flag, and end in order.

    `more` are signals to turn, too: SIGTSTP (Ctrl-Z) for commands whose arm moves in another
    process. It would go on, and the suspended command could not stop it.
    """
    request = StopRequest()
    signals = (signal.SIGINT, signal.SIGTERM, *unless_ignored(signal.SIGHUP, *more))
    previous = {number: signal.signal(number, request) for number in signals}
    try:
        yield Stopped(request)
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
