"""The connection to a VRPN server, which connects by TCP on a request by UDP."""

from __future__ import annotations

import contextlib
import select
import socket

from softarm_ros.clock import Clock
from softarm_ros.perception.vrpn.packets import COOKIE

SILENT_S = 4.0  # silence after which the connection is dropped and requested again
ASK_S = 0.25
LONGEST_READ = 65_536


class Connection:
    """
    Asks a server until it connects, and reads its stream.

    A server answers a packet that names our address by connecting to it. Connections from other
    addresses are closed.

    Attributes
    ----------
    trouble : str
        Why the server could not be asked; '' if it could.

    Raises
    ------
    OSError
        If a socket cannot be opened.

    """

    def __init__(self, host: str, port: int, clock: Clock) -> None:
        self._server = (host, port)
        self._clock = clock
        self._listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stream: socket.socket | None = None
        self._asked_s = self._heard_s = -float('inf')
        self.trouble = ''
        try:
            self._listening.bind(('', 0))
            self._listening.listen(1)
            self._listening.setblocking(False)
        except OSError:
            self.close()
            raise

    @property
    def connected(self) -> bool:
        """Whether a server has connected."""
        return self._stream is not None

    def wait(self, timeout_s: float) -> tuple[bytes, float]:
        """Return received bytes and arrival time [s]; b'' after the time-out or without server."""
        if self._stream is None:
            self._ask()
            self._accept(timeout_s)
            return b'', self._clock.now_s()
        readable, _, _ = select.select([self._stream], [], [], timeout_s)
        arrived_s = self._clock.now_s()
        if not readable:
            # A server whose computer has lost power or network does not close the connection.
            if arrived_s - self._heard_s > SILENT_S:
                self.drop()
            return b'', arrived_s
        self._heard_s = arrived_s
        try:
            data = self._stream.recv(LONGEST_READ)
        except OSError:
            data = b''
        if not data:
            self.drop()
        return data, arrived_s

    def drop(self) -> None:
        """Close the connection; the server is asked again."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def close(self) -> None:
        """Close all sockets."""
        self.drop()
        self._listening.close()
        self._asking.close()

    def _ask(self) -> None:
        now = self._clock.now_s()
        if now - self._asked_s < ASK_S:
            return
        self._asked_s = now
        try:
            self._asking.connect(self._server)
            own = self._asking.getsockname()[0]
            self._asking.send(f'{own} {self._listening.getsockname()[1]}'.encode() + b'\0')
        except OSError as error:  # no route or host unknown: asked again later
            self.trouble = f'host = {self._server[0]!r}: {error.strerror or error}'
        else:
            self.trouble = ''

    def _accept(self, timeout_s: float) -> None:
        readable, _, _ = select.select([self._listening], [], [], timeout_s)
        if not readable:
            return
        with contextlib.suppress(OSError):
            stream, (address, _) = self._listening.accept()
            if address != self._asking.getpeername()[0]:
                stream.close()
                return
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream.sendall(COOKIE)
            self._stream, self._heard_s = stream, self._clock.now_s()
