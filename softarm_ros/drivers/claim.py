"""Reserve a device for one program of a computer, if the device itself would obey several."""

from __future__ import annotations

import errno
import socket
import sys


class TakenError(RuntimeError):
    """Another program of this computer has claimed the name."""


def claim(name: str) -> socket.socket | None:
    """
    Return a socket that claims a name until it is closed or the process ends.

    None on systems other than Linux, or if the socket cannot be bound.

    Raises
    ------
    TakenError
        If the name is claimed already.

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
    """Return the address of a host, which may have several names; the name if not resolved."""
    try:
        return socket.gethostbyname(host)
    except OSError:
        return host
