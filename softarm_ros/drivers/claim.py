"""One program of a computer at a device that itself would obey several."""

from __future__ import annotations

import errno
import socket
import sys


class TakenError(RuntimeError):
    """Another program of this computer has it."""


def claim(name: str) -> socket.socket | None:
    """
    Return what marks a name as taken until it is closed, or the process ends; None but on Linux.

    Raises
    ------
    TakenError
        If it is taken already.

    """
    if not sys.platform.startswith('linux'):
        return None
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mark.bind(f'\0softarm-{name}')  # an abstract address, without a file
    except OSError as error:
        mark.close()
        if error.errno == errno.EADDRINUSE:
            raise TakenError(name) from error
        return None
    return mark


def address_of(host: str) -> str:
    """Return the address of a host, which may have several names; the name if it has none."""
    try:
        return socket.gethostbyname(host)
    except OSError:
        return host
