"""Emulate Qualisys Track Manager for clients on the network: the RT protocol over TCP."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np

from softarm_ros.emulation.scene_server import LOCALHOST, OWN_FAULTS, SceneServer
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.perception.qtm.config import QtmConfig

ERROR, COMMAND, XML, DATA = 0, 1, 2, 3
_3D, _6D_RESIDUAL = 1, 11
_MM = 1000.0


class Client:
    """Bytes of a client that are not yet processed, and whether it wants frames."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.streaming = False


class QtmServer(SceneServer[Client]):
    """Streams the bodies of a scene to every client that requests frames."""

    def __init__(self, scene: TrackedScene) -> None:
        super().__init__('qtm', scene)
        self._names: list[str] = []

    def listen(self, port: int) -> socket.socket:
        """See `SceneServer`."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((LOCALHOST, port))
        sock.listen()
        return sock

    def welcome(self, door: socket.socket) -> None:
        """See `SceneServer`."""
        sock, _ = door.accept()
        self.admit(sock, Client(), _packet(COMMAND, b'QTM RT Interface connected\0'))

    def hear(self, sock: socket.socket, data: bytes) -> None:
        """See `SceneServer`."""
        heard = self._clients[sock].heard
        heard += data
        while len(heard) >= 8:
            size, kind = struct.unpack_from('<II', heard)
            if len(heard) < size:
                return
            text = bytes(heard[8:size]).rstrip(b'\0').decode()
            del heard[:size]
            if kind == COMMAND and 'mute' not in self.scene.faults:
                self._obey(sock, text)

    def stream(self, scene: Scene) -> None:
        """See `SceneServer`."""
        with self._lock:
            clients = [sock for sock, client in self._clients.items() if client.streaming]
        names = list(scene.bodies)
        if names != self._names and self._names:
            self._names = names
            for sock in clients:
                self.send(sock, _packet(6, bytes((11,))))  # event: settings have changed
        content = self.scene.garbled(frame(scene))
        for sock in clients:
            self.send(sock, _packet(DATA, content))

    def _obey(self, sock: socket.socket, text: str) -> None:
        word, _, rest = text.partition(' ')
        if word.lower() == 'version':
            self.send(sock, _packet(COMMAND, f'Version set to {rest}\0'.encode()))
        elif word.lower() == 'getparameters':
            self._names = self.scene.names
            self.send(sock, _packet(XML, parameters(self._names, self.scene.points) + b'\0'))
        elif word.lower() == 'streamframes':
            self._clients[sock].streaming = True
        else:
            self.send(sock, _packet(ERROR, b'Parse error\0'))


def parameters(bodies: Sequence[str], points: Sequence[str]) -> bytes:
    """Return the settings of bodies and labels that clients read."""
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
    """Return the content of a data packet with the components 3D and 6D with residuals."""
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
    """Return the server, not yet started."""
    return QtmServer(TrackedScene(config, sections, seed, OWN_FAULTS))
