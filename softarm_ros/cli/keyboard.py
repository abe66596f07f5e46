"""Keys of the terminal, read as they are pressed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.teleop import Typing

END_OF_INPUT = '\x04'  # Ctrl-D


@contextlib.contextmanager
def typed_keys(*, required: bool) -> Iterator[Callable[[], str]]:
    """
    Yield a function that returns the keys pressed since its last call, without waiting.

    The end of the input is Ctrl-D, unless no keyboard is `required` and the input is no terminal.
    """
    descriptor = sys.stdin.fileno()
    terminal = os.isatty(descriptor)
    ended, typing = False, Typing()

    def read() -> str:
        nonlocal ended
        typed = ''
        while not ended and select.select([descriptor], [], [], 0.0)[0]:
            data = _piece(descriptor)
            if not data:
                ended = True
                return typing.letters(typed) + (END_OF_INPUT if required or terminal else '')
            typed += data.decode(errors='replace')
        return typing.letters(typed)

    with _without_enter(descriptor) if terminal else contextlib.nullcontext():
        yield read


def _piece(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 64)
    except OSError:  # the terminal is closed
        return b''


@contextlib.contextmanager
def _without_enter(descriptor: int) -> Iterator[None]:
    """Make a terminal pass on each key at once, and again after Ctrl-Z and `fg`."""
    try:
        import termios
        import tty
    except ImportError as error:
        raise UsageError(f'keys are read from a terminal of Linux or macOS ({error})') from None

    def resume(*_: object) -> None:
        # A shell sets its own mode when it suspends a command. Errors: closed, or in background.
        with contextlib.suppress(termios.error):
            tty.setcbreak(descriptor)

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    previous = signal.signal(signal.SIGCONT, resume)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, previous)
        with contextlib.suppress(termios.error):  # the terminal is closed
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
