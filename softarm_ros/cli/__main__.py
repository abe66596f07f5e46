"""Starts `softarm`, also as `python -m softarm_ros.cli`."""

from __future__ import annotations

import signal
import sys
from types import FrameType


class _Interrupts:
    """Raises KeyboardInterrupt at a signal, and notes it: compiled modules may replace it."""

    def __init__(self) -> None:
        self.noted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.noted = True
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)  # a second one ends even a compiler at once
        raise KeyboardInterrupt


def main() -> None:
    """
    Import and run the command line; until then Ctrl-C ends the process without a traceback.

    SIGTERM and a closed terminal end a command in order, as Ctrl-C does.
    """
    # A shell that starts a job in the background has the signal ignored, which stays so.
    catches = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if catches:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from softarm_ros.cli.main import main as run

    interrupts = _Interrupts()
    if catches:
        signal.signal(signal.SIGINT, interrupts)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupts)
    try:
        run()
    except KeyboardInterrupt:  # before or after a command, which handles it
        sys.exit(128 + signal.SIGINT)
    except ImportError:  # from a compiled module that was being imported
        if not interrupts.noted:
            raise
        sys.exit(128 + signal.SIGINT)


if __name__ == '__main__':
    main()
