"""A motion capture server that streams a scene to its clients."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from softarm_ros.drivers.polling import PollingThread
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.plant.mocap import PoseMeasurement

LOCALHOST = '127.0.0.1'
OWN_FAULTS = ('corrupt', 'die', 'mute')
_WAIT_S = 0.05
ClientT = TypeVar('ClientT')


class SceneServer(ABC, Generic[ClientT]):
    """
    Serves clients on one listening socket and one socket per client; an `EmulatedSensor`.

    Its own faults, in addition to those of the scene: `corrupt` (bits of sent data are flipped),
    `die` (it closes all sockets), `mute` (it keeps its sockets open and sends nothing).

    Parameters
    ----------
    name
        Name of the protocol, for reports.
    scene
        Scene to stream.

    """

    def __init__(self, name: str, scene: TrackedScene) -> None:
        self.scene = scene
        self._name = name
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, ClientT] = {}
        self._door: socket.socket | None = None
        self._port = 0
        self._sent = 0
        self._thread = PollingThread(f'{name} server', self._serve, lambda error: None)

    # -- the protocol

    @abstractmethod
    def listen(self, port: int) -> socket.socket:
        """Return the socket that clients connect to, at this port; any free one for 0."""

    @abstractmethod
    def welcome(self, door: socket.socket) -> None:
        """Accept a client that has contacted the listening socket."""

    @abstractmethod
    def hear(self, sock: socket.socket, data: bytes) -> None:
        """Process data of a client."""

    @abstractmethod
    def stream(self, scene: Scene) -> None:
        """Send a scene to all clients that want it; not called while the server is mute."""

    # -- an emulated sensor

    def start(self) -> dict[str, object]:
        """See `EmulatedSensor`."""
        self._listen()
        self._thread.start()
        return {'host': LOCALHOST, 'port': self._port}

    def deliver(self, measured: Sequence[PoseMeasurement], now_s: float) -> None:
        """See `EmulatedSensor`."""
        for scene in self.scene.passing(measured, now_s):
            if not self.scene.faults & {'die', 'mute'}:
                self.stream(scene)
                self._sent += 1

    def inject(self, fault: str) -> str:
        """See `EmulatedSensor`."""
        return self.scene.inject(fault)

    def report(self) -> dict[str, str]:
        """See `EmulatedSensor`."""
        return {
            f'{self._name}_clients': str(len(self._clients)),
            f'{self._name}_frames': str(self._sent),
            f'{self._name}_fault': self.scene.told_faults(),
        }

    def close(self) -> None:
        """See `EmulatedSensor`."""
        self._thread.close()
        self._hang_up()

    # -- for derived classes

    def admit(self, sock: socket.socket, client: ClientT, greeting: bytes) -> None:
        """Greet a connected client, and receive its data from now on."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(sock, greeting)  # before any frame
        with self._lock:
            self._clients[sock] = client

    def send(self, sock: socket.socket, data: bytes) -> None:
        """Send data to a client; a closed connection is noticed on the next read."""
        with contextlib.suppress(OSError), self._lock:
            sock.sendall(data)

    # -- parts

    def _listen(self) -> None:
        self._door = self.listen(self._port)
        self._port = self._door.getsockname()[1]

    def _hang_up(self) -> None:
        with self._lock:
            clients, self._clients = self._clients, {}
            door, self._door = self._door, None
        for sock in (*clients, *([door] if door is not None else [])):
            sock.close()

    def _serve(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            if 'die' in self.scene.faults:
                self._hang_up()
                thread.ending.wait(_WAIT_S)
                continue
            if self._door is None:
                self._listen()
            assert self._door is not None
            readable, _, _ = select.select([self._door, *self._clients], [], [], _WAIT_S)
            for sock in readable:
                if sock is self._door:
                    self.welcome(sock)
                else:
                    self._receive(sock)

    def _receive(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(65_536)
        except OSError:
            data = b''
        if data and sock in self._clients:
            self.hear(sock, data)
            return
        with self._lock:
            self._clients.pop(sock, None)
        sock.close()
