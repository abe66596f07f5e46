"""Qualisys Track Manager, as a client on the network sees it: the RT protocol over TCP."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np

from softarm_ros.drivers.polling import PollingThread
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.perception.qtm.config import QtmConfig
from softarm_ros.plant.mocap import PoseMeasurement

LOCALHOST = '127.0.0.1'
WAIT_S = 0.05
OWN_FAULTS = ('corrupt', 'die', 'mute')
ERROR, COMMAND, XML, DATA = 0, 1, 2, 3
_3D, _6D_RESIDUAL = 1, 11
_MM = 1000.0


class QtmServer:
    """
    Streams the bodies of a scene to every client that asked; an `EmulatedSensor`.

    Its own faults beside those of the scene: `corrupt` (bits of frames are turned over), `die` (it
    closes all connections and takes none), `mute` (it keeps them and says nothing).
    """

    def __init__(self, scene: TrackedScene) -> None:
        self.scene = scene
        self._listening: socket.socket | None = None
        self._port = 0
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, bytearray] = {}
        self._streaming: set[socket.socket] = set()
        self._names: list[str] = []
        self._sent = 0
        self._thread = PollingThread('qtm server', self._serve, lambda error: None)

    # -- as an emulated sensor

    def start(self) -> dict[str, object]:
        """See `EmulatedSensor`."""
        self._listen()
        self._thread.start()
        return {'host': LOCALHOST, 'port': self._port}

    def deliver(self, measured: Sequence[PoseMeasurement], now_s: float) -> None:
        """See `EmulatedSensor`."""
        for scene in self.scene.passing(measured, now_s):
            self._stream(scene)

    def inject(self, fault: str) -> str:
        """See `EmulatedSensor`."""
        return self.scene.inject(fault)

    def report(self) -> dict[str, str]:
        """See `EmulatedSensor`."""
        return {
            'qtm_clients': str(len(self._streaming)),
            'qtm_frames': str(self._sent),
            'qtm_fault': self.scene.fault or 'none',
        }

    def close(self) -> None:
        """See `EmulatedSensor`."""
        self._thread.close()
        self._hang_up()

    # -- protocol

    def _listen(self) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((LOCALHOST, self._port))
        sock.listen()
        self._listening, self._port = sock, sock.getsockname()[1]

    def _hang_up(self) -> None:
        with self._lock:
            clients, self._clients, self._streaming = self._clients, {}, set()
            listening, self._listening = self._listening, None
        for sock in (*clients, *([listening] if listening is not None else [])):
            sock.close()

    def _serve(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            if self.scene.fault == 'die':
                self._hang_up()
                thread.ending.wait(WAIT_S)
                continue
            if self._listening is None:
                self._listen()
            listening = self._listening
            assert listening is not None
            readable, _, _ = select.select([listening, *self._clients], [], [], WAIT_S)
            for sock in readable:
                if sock is listening:
                    client, _ = listening.accept()
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    with self._lock:
                        self._clients[client] = bytearray()
                    self._send(client, _packet(COMMAND, b'QTM RT Interface connected\0'))
                else:
                    self._hear(sock)

    def _hear(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(65_536)
        except OSError:
            data = b''
        if not data:
            self._forget(sock)
            return
        heard = self._clients[sock]
        heard += data
        while len(heard) >= 8:
            size, kind = struct.unpack_from('<II', heard)
            if len(heard) < size:
                return
            text = bytes(heard[8:size]).rstrip(b'\0').decode()
            del heard[:size]
            if kind == COMMAND and self.scene.fault != 'mute':
                self._obey(sock, text)

    def _obey(self, sock: socket.socket, text: str) -> None:
        word, _, rest = text.partition(' ')
        if word.lower() == 'version':
            self._send(sock, _packet(COMMAND, f'Version set to {rest}\0'.encode()))
        elif word.lower() == 'getparameters':
            self._names = self.scene.names
            self._send(sock, _packet(XML, parameters(self._names, self.scene.points) + b'\0'))
        elif word.lower() == 'streamframes':
            with self._lock:
                self._streaming.add(sock)
        else:
            self._send(sock, _packet(ERROR, b'Parse error\0'))

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._clients.pop(sock, None)
            self._streaming.discard(sock)
        sock.close()

    def _send(self, sock: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError), self._lock:
            sock.sendall(data)

    def _stream(self, scene: Scene) -> None:
        if self.scene.fault in ('die', 'mute'):
            return
        with self._lock:
            clients = list(self._streaming)
        names = list(scene.bodies)
        if names != self._names and self._names:
            self._names = names
            for sock in clients:
                self._send(sock, _packet(6, bytes((11,))))  # event: settings have changed
        content = self.scene.garbled(frame(scene))
        for sock in clients:
            self._send(sock, _packet(DATA, content))
        self._sent += 1


def parameters(bodies: Sequence[str], points: Sequence[str]) -> bytes:
    """Return the settings of bodies and labels, as far as a client looks at them."""
    labels = ''.join(f'<Label><Name>{escape(n)}</Name></Label>' for n in points)
    named = ''.join(
        f'<Body><Name>{escape(n)}</Name><Enabled>true</Enabled></Body>' for n in bodies
    )
    return (
        '<?xml version="1.0"?><QTM_Parameters_Ver_1.23>'
        f'<The_3D><Labels>{len(points)}</Labels>{labels}</The_3D>'
        f'<The_6D>{named}</The_6D></QTM_Parameters_Ver_1.23>'
    ).encode()


def frame(scene: Scene) -> bytes:
    """Return the content of a data packet with components 3D and 6D with residuals."""
    unseen = np.full((4, 4), np.nan)
    bodies = b''.join(
        struct.pack(
            '<3f9ff',
            *(_MM * pose[:3, 3]),
            *pose[:3, :3].T.ravel(),  # column by column
            0.2,
        )
        for pose in (unseen if p is None else p for p in scene.bodies.values())
    )
    points = b''.join(struct.pack('<3f', *(_MM * where)) for where in scene.points.values())
    components = [
        (_3D, struct.pack('<Ihh', len(scene.points), 0, 0) + points),
        (_6D_RESIDUAL, struct.pack('<ihh', len(scene.bodies), 0, 0) + bodies),
    ]
    content = struct.pack('<qII', round(1e6 * scene.exposed_s), scene.number, len(components))
    for kind, component in components:
        content += struct.pack('<II', 8 + len(component), kind) + component
    return content


def _packet(kind: int, content: bytes) -> bytes:
    return struct.pack('<II', 8 + len(content), kind) + content


def build(config: QtmConfig, sections: Sequence[str], seed: int) -> QtmServer:
    """Return the server, not started."""
    return QtmServer(TrackedScene(config, sections, seed, OWN_FAULTS))
