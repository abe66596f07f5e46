"""A VRPN server, as a client on the network sees it: asked by UDP, it connects and streams."""

from __future__ import annotations

import contextlib
import math
import select
import socket
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence

from softarm_ros.drivers.polling import PollingThread
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.perception.config import UNITS_M
from softarm_ros.perception.vrpn.config import VrpnConfig
from softarm_ros.plant.mocap import PoseMeasurement

LOCALHOST = '127.0.0.1'
WAIT_S = 0.05
OWN_FAULTS = ('corrupt', 'die', 'mute')
GREETING = b'vrpn: ver. 07.35  0' + 5 * b'\0'
TYPES = ('vrpn_Base ping_message', 'vrpn_Base pong_message', 'vrpn_Tracker Pos_Quat')
PING, PONG, POSE = range(3)
A_SENDER, A_TYPE = -1, -2


class VrpnServer:
    """
    Streams the bodies of a scene as trackers to every client that asks; an `EmulatedSensor`.

    Its own faults beside those of the scene: `corrupt` (bits of messages are turned over), `die`
    (it closes all connections and hears nobody), `mute` (it keeps them and says nothing).
    """

    def __init__(self, scene: TrackedScene, unit_m: float = 1.0) -> None:
        self.scene = scene
        self._unit_m = unit_m
        self._asked: socket.socket | None = None
        self._port = 0
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, Client] = {}
        self._sent = 0
        self._now_s = 0.0  # on the device's clock, of the newest frame
        self._thread = PollingThread('vrpn server', self._serve, lambda error: None)

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
            'vrpn_clients': str(len(self._clients)),
            'vrpn_frames': str(self._sent),
            'vrpn_fault': self.scene.fault or 'none',
        }

    def close(self) -> None:
        """See `EmulatedSensor`."""
        self._thread.close()
        self._hang_up()

    # -- protocol

    def _listen(self) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((LOCALHOST, self._port))
        self._asked, self._port = sock, sock.getsockname()[1]

    def _hang_up(self) -> None:
        with self._lock:
            clients, self._clients = self._clients, {}
            asked, self._asked = self._asked, None
        for sock in (*clients, *([asked] if asked is not None else [])):
            sock.close()

    def _serve(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            if self.scene.fault == 'die':
                self._hang_up()
                thread.ending.wait(WAIT_S)
                continue
            if self._asked is None:
                self._listen()
            asked = self._asked
            assert asked is not None
            readable, _, _ = select.select([asked, *self._clients], [], [], WAIT_S)
            for sock in readable:
                if sock is asked:
                    self._call_back(asked.recv(256))
                else:
                    self._hear(sock)

    def _call_back(self, asked: bytes) -> None:
        """Connect to the client that names its address and port."""
        host, _, port = asked.rstrip(b'\0').decode().partition(' ')
        if any(client.at == (host, int(port)) for client in self._clients.values()):
            return  # it asks again while it is being connected
        try:
            sock = socket.create_connection((host, int(port)), 0.5)
        except OSError:
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(GREETING + names_of({}))
        with self._lock:
            self._clients[sock] = Client((host, int(port)))

    def _hear(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(65_536)
        except OSError:
            data = b''
        client = self._clients.get(sock)
        if not data or client is None:
            with self._lock:
                self._clients.pop(sock, None)
            sock.close()
            return
        for sender in client.pings(data):
            if sender in client.announced.values() and self.scene.fault != 'mute':
                self._send(sock, _message(self._now_s, sender, PONG, b''))

    def _send(self, sock: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError), self._lock:
            sock.sendall(data)

    def _stream(self, scene: Scene) -> None:
        self._now_s = scene.sent_s
        if self.scene.fault in ('die', 'mute'):
            return
        with self._lock:
            clients = dict(self._clients)
        for sock, client in clients.items():
            seen = {name: pose for name, pose in scene.bodies.items() if pose is not None}
            data = client.announce(seen)
            data += poses_of(seen, client.announced, scene.sent_s, self._unit_m)
            self._send(sock, self.scene.garbled(data))
        self._sent += 1


class Client:
    """What was said to a client at an address, and what it says."""

    def __init__(self, at: tuple[str, int]) -> None:
        self.at = at
        self.announced: dict[str, int] = {}
        self._heard = bytearray()
        self._skip = len(GREETING)
        self._ping: int | None = None
        self._senders: dict[int, str] = {}

    def announce(self, names: Iterable[str]) -> bytes:
        """Return what tells the client the numbers of senders that it does not know yet."""
        new = [name for name in names if name not in self.announced]
        for name in new:
            self.announced[name] = len(self.announced)
        return b''.join(_name(A_SENDER, self.announced[name], name) for name in new)

    def pings(self, data: bytes) -> list[int]:
        """Return which of our senders the client asks for a sign of life."""
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


def names_of(senders: Mapping[str, int]) -> bytes:
    """Return the messages that announce our types, and senders with their numbers."""
    types = b''.join(_name(A_TYPE, i, name) for i, name in enumerate(TYPES))
    return types + b''.join(_name(A_SENDER, i, name) for name, i in senders.items())


def poses_of(
    bodies: Mapping[str, Array], senders: Mapping[str, int], time_s: float, unit_m: float = 1.0
) -> bytes:
    """Return the messages of poses (4, 4) of bodies, sent at a time [s] of the device."""
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
    """Return the server, not started."""
    scene = TrackedScene(config, sections, seed, OWN_FAULTS)
    return VrpnServer(scene, UNITS_M[config.unit])
