"""Consoles for results. An output that ends does not interrupt a command that moves an arm."""

from __future__ import annotations

import errno
import signal
import sys
from typing import IO, Any, cast

from rich.console import Console

from softarm_ros.cli.stop_request import StopRequest

TABLE_WIDTH = 130  # of output to a file
# The reader of a pipe has ended (`| tee` gets Ctrl-C, too), or the terminal is closed.
_ENDED = frozenset({errno.EPIPE, errno.EIO})


class LastingOutput:
    """
    Text stream that drops what it cannot write while a `StopRequest` is in force.

    Otherwise an error from a progress line would end a run without its record. If the reader has
    ended, the command is asked to stop; a full disk under a log does not stop the arm.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, or drop it."""
        try:
            return self._stream.write(text)
        except OSError as error:
            _drop(error)
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, or leave it."""
        try:
            self._stream.flush()
        except OSError as error:
            _drop(error)


def _drop(error: OSError) -> None:
    request = signal.getsignal(signal.SIGINT)
    if not isinstance(request, StopRequest):
        raise error
    if error.errno in _ENDED:
        request.on_output_ended()


def lasting(stream: IO[str]) -> IO[str]:
    """Return a stream as a `LastingOutput`."""
    return cast(IO[str], LastingOutput(stream))


def echo(text: str) -> None:
    """Print a line to stdout as a `LastingOutput`, for commands that lead a running arm."""
    print(text, file=lasting(sys.stdout), flush=True)


def stdout_console() -> Console:
    """Return the console for results."""
    return Console(file=lasting(sys.stdout), soft_wrap=True)


def table_console() -> Console:
    """Return the console for wide tables; output to a file keeps `TABLE_WIDTH`."""
    console = stdout_console()
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    return console
