"""Sockets of a NatNet client, which repeats its requests and listens to a single sender."""

from __future__ import annotations

import select
import socket
import struct

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.perception.natnet.packets import (
    CONNECT,
    KEEP_ALIVE,
    REQUEST_MODEL,
    request,
)
from softarm_ros.perception.sensor import SensorError

ASK_S = 0.5  # between two requests
KEEP_ALIVE_S = 1.0  # Motive forgets a unicast client after some seconds
LARGEST = 65_536
Sender = tuple[str, int]


class Receiver:
    """
    UDP sockets for commands and, with multicast, for data.

    Data come from one address and port. While they arrive, data of any other sender are ignored.

    Attributes
    ----------
    before : (str, int), optional
        Sender of the stream until it fell silent and another took its place.

    """

    def __init__(self, config: NatNetConfig, clock: Clock = MONOTONIC) -> None:
        self._config = config
        self._clock = clock
        try:
            self._server = socket.gethostbyname(config.server)
        except OSError as error:
            raise SensorError(
                f'server = {config.server!r}: {error.strerror or error}; write its address'
            ) from error
        self._sockets = [self._socket(0)]
        if config.mode == 'multicast':
            try:
                self._sockets.append(self._group())
            except SensorError:
                self.close()
                raise
        self._next_question_s = 0.0
        self._next_keep_alive_s = 0.0
        self._sender: Sender | None = None
        self.before: Sender | None = None
        self._heard_s = 0.0

    def ask(self, message: int) -> None:
        """Send a request; errors are ignored, since missing answers show them."""
        try:
            self._sockets[0].sendto(request(message), (self._server, self._config.command_port))
        except OSError:
            return

    def keep_asking(self, *, server: bool, model: bool) -> None:
        """Repeat the requests for server and model if wanted, and send keep-alive messages."""
        now = self._clock.now_s()
        if now >= self._next_question_s and (server or model):
            self._next_question_s = now + ASK_S
            if server:
                self.ask(CONNECT)
            if model:
                self.ask(REQUEST_MODEL)
        if self._config.mode == 'unicast' and now >= self._next_keep_alive_s:
            self._next_keep_alive_s = now + KEEP_ALIVE_S
            self.ask(KEEP_ALIVE)

    def wait(self, timeout_s: float) -> list[tuple[bytes, Sender, float]]:
        """Return all packets with sender and time of arrival [s]; wait for the first."""
        readable, _, _ = select.select(self._sockets, [], [], max(timeout_s, 0.0))
        found: list[tuple[bytes, Sender, float]] = []
        for sock in readable:
            while len(found) < 1000:
                try:
                    data, sender = sock.recvfrom(LARGEST)
                except OSError:  # no more packets, or the server's port is closed (ICMP)
                    break
                found.append((data, sender[:2], self._clock.now_s()))
        return found

    def is_servers(self, sender: Sender) -> bool:
        """Return whether a sender is the configured server."""
        return sender[0] == self._server

    def is_stream(self, sender: Sender, now_s: float) -> bool:
        """Return whether a frame comes from the sender whose stream is read."""
        silent = now_s - self._heard_s > self._config.timeout_s
        if self.is_servers(sender) and (self._sender is None or silent):
            self.before = self._sender if sender != self._sender else None
            self._sender = sender
        if sender != self._sender:
            return False
        self._heard_s = now_s
        return True

    def close(self) -> None:
        """Close the sockets."""
        for sock in self._sockets:
            sock.close()

    def _socket(self, port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self._config.local if port == 0 else '', port))
        except OSError as error:
            sock.close()
            raise SensorError(
                f'local = {self._config.local!r}, port {port}: {error.strerror}; expected an '
                'address of this computer'
            ) from error
        sock.setblocking(False)
        return sock

    def _group(self) -> socket.socket:
        sock = self._socket(self._config.data_port)
        try:
            member = struct.pack(
                '4s4s',
                socket.inet_aton(self._config.multicast_group),
                socket.inet_aton(self._config.local),
            )
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        except OSError as error:
            sock.close()
            raise SensorError(
                f'multicast_group = {self._config.multicast_group!r}: {error.strerror or error}; '
                "expected a multicast address, and local: this computer's in that network"
            ) from error
        return sock
