"""Emulate a VRPN server for clients on the network: asked by UDP, it connects and streams."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence

from softarm_ros.emulation.scene_server import LOCALHOST, OWN_FAULTS, SceneServer
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.perception.config import UNITS_M
from softarm_ros.perception.vrpn.config import VrpnConfig

GREETING = b'vrpn: ver. 07.35  0' + 5 * b'\0'
TYPES = ('vrpn_Base ping_message', 'vrpn_Base pong_message', 'vrpn_Tracker Pos_Quat')
PING, PONG, POSE = range(3)
A_SENDER, A_TYPE = -1, -2


class Client:
    """One client: its address, the senders announced to it, and its messages."""

    def __init__(self, at: tuple[str, int]) -> None:
        self.at = at
        self.announced: dict[str, int] = {}
        self._heard = bytearray()
        self._skip = len(GREETING)
        self._ping: int | None = None
        self._senders: dict[int, str] = {}

    def announce(self, names: Iterable[str]) -> bytes:
        """Return the messages that tell the client the numbers of senders new to it."""
        new = [name for name in names if name not in self.announced]
        for name in new:
            self.announced[name] = len(self.announced)
        return b''.join(_name(A_SENDER, self.announced[name], name) for name in new)

    def pings(self, data: bytes) -> list[int]:
        """Return the numbers of our senders that the client pings."""
        self._heard += data
        asked = []
        if self._skip:
            if len(self._heard) < self._skip:
                return []
            del self._heard[: self._skip]
            self._skip = 0
        while len(self._heard) >= 24:
            length, _, _, sender, kind, _ = struct.unpack_from('>6i', self._heard)
            end = length + -length % 8
            if len(self._heard) < end:
                break
            text = bytes(self._heard[28:length]).rstrip(b'\0').decode('ascii', 'replace')
            if kind == A_TYPE and text == TYPES[PING]:
                self._ping = sender
            elif kind == A_SENDER:
                self._senders[sender] = text
            elif kind == self._ping and self._senders.get(sender) in self.announced:
                asked.append(self.announced[self._senders[sender]])
            del self._heard[:end]
        return asked


class VrpnServer(SceneServer[Client]):
    """Streams the bodies of a scene as trackers to every client that asks."""

    def __init__(self, scene: TrackedScene, unit_m: float = 1.0) -> None:
        super().__init__('vrpn', scene)
        self._unit_m = unit_m
        self._now_s = 0.0  # device time of the newest frame

    def listen(self, port: int) -> socket.socket:
        """See `SceneServer`."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((LOCALHOST, port))
        return sock

    def welcome(self, door: socket.socket) -> None:
        """Connect to the client that sent its address and port."""
        host, _, port = door.recv(256).rstrip(b'\0').decode().partition(' ')
        if any(client.at == (host, int(port)) for client in self._clients.values()):
            return  # a repeated request
        try:
            sock = socket.create_connection((host, int(port)), 0.5)
        except OSError:
            return
        self.admit(sock, Client((host, int(port))), GREETING + names_of({}))

    def hear(self, sock: socket.socket, data: bytes) -> None:
        """See `SceneServer`."""
        client = self._clients[sock]
        for sender in client.pings(data):
            if sender in client.announced.values() and 'mute' not in self.scene.faults:
                self.send(sock, _message(self._now_s, sender, PONG, b''))

    def stream(self, scene: Scene) -> None:
        """See `SceneServer`."""
        self._now_s = scene.sent_s
        with self._lock:
            clients = dict(self._clients)
        for sock, client in clients.items():
            seen = {name: pose for name, pose in scene.bodies.items() if pose is not None}
            data = client.announce(seen)
            data += poses_of(seen, client.announced, scene.sent_s, self._unit_m)
            self.send(sock, self.scene.garbled(data))


def names_of(senders: Mapping[str, int]) -> bytes:
    """Return the messages that announce our types, and the senders with their numbers."""
    types = b''.join(_name(A_TYPE, i, name) for i, name in enumerate(TYPES))
    return types + b''.join(_name(A_SENDER, i, name) for name, i in senders.items())


def poses_of(
    bodies: Mapping[str, Array], senders: Mapping[str, int], time_s: float, unit_m: float = 1.0
) -> bytes:
    """Return the pose messages (4, 4) of bodies, sent at a device time [s]."""
    data = b''
    for name, pose in bodies.items():
        numbers = (*(pose[:3, 3] / unit_m), *quaternion_from_matrix(pose[:3, :3]))
        data += _message(time_s, senders[name], POSE, struct.pack('>2i7d', 0, 0, *numbers))
    return data


def _message(time_s: float, sender: int, kind: int, content: bytes) -> bytes:
    seconds = math.floor(time_s)
    microseconds = min(int(1e6 * (time_s - seconds)), 999_999)
    header = struct.pack('>6i', 24 + len(content), seconds, microseconds, sender, kind, 0)
    return header + content + bytes(-len(content) % 8)


def _name(kind: int, number: int, name: str) -> bytes:
    text = name.encode() + b'\0'
    return _message(0.0, number, kind, struct.pack('>i', len(text)) + text)


def build(config: VrpnConfig, sections: Sequence[str], seed: int) -> VrpnServer:
    """Return the server, not yet started."""
    scene = TrackedScene(config, sections, seed, OWN_FAULTS)
    return VrpnServer(scene, UNITS_M[config.unit])
