"""Emulate Motive for clients on the network: a NatNet server on 127.0.0.1, unicast."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Sequence

import numpy as np

from softarm_ros.clock import MONOTONIC
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.emulation import natnet_packets as packets
from softarm_ros.emulation.natnet_packets import SentBody, SentMarker, Version
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import quaternion_from_matrix, rotation_x
from softarm_ros.perception.natnet.config import FEWEST_MARKERS, NatNetConfig
from softarm_ros.perception.natnet.packets import CONNECT, KEEP_ALIVE, REQUEST_MODEL
from softarm_ros.plant.mocap import PoseMeasurement

LOCALHOST = '127.0.0.1'
TICKS_PER_S = 10_000_000  # of Windows' performance counter
FORGET_S = 5.0  # after the last keep-alive of a client
WAIT_S = 0.05
OWN_FAULTS = ('second', 'corrupt', 'die')
Z_TO_Y_UP = pose(rotation_x(np.radians(-90.0)), np.zeros(3))


class NatNetServer:
    """
    Streams the bodies of a scene to every client that has connected; an `EmulatedSensor`.

    Its own faults, in addition to those of the scene: `second` (another sender on the network
    sends the same bodies at other positions), `corrupt` (bits of packets are flipped), `die` (it
    neither answers nor sends).

    Parameters
    ----------
    config
        Configuration of the driver that will read it.
    scene
        Scene to stream.
    version
        Version of the stream.

    """

    def __init__(
        self, config: NatNetConfig, scene: TrackedScene, version: Version = (4, 1)
    ) -> None:
        self._config = config
        self.scene = scene
        self.version = version
        self._socket: socket.socket | None = None
        self._second: socket.socket | None = None
        self._clients: dict[tuple[str, int], float] = {}
        self._names: list[str] = []
        self._markers = {point.name: config.emulated_marker(point.name) for point in config.points}
        of_bodies = [number for body, number in self._markers.values() if body]
        self._markers_per_body = max([FEWEST_MARKERS, *of_bodies])
        self._sent = 0
        self._thread = PollingThread('natnet server', self._answer, lambda error: None)

    # -- as an emulated sensor

    def start(self) -> dict[str, object]:
        """See `EmulatedSensor`."""
        self._socket = self._opened()
        self._thread.start()
        return {
            'server': LOCALHOST,
            'local': LOCALHOST,
            'mode': 'unicast',
            'command_port': self._socket.getsockname()[1],
        }

    def deliver(self, measured: Sequence[PoseMeasurement], now_s: float) -> None:
        """See `EmulatedSensor`."""
        for scene in self.scene.passing(measured, now_s):
            self._send(scene)

    def inject(self, fault: str) -> str:
        """See `EmulatedSensor`."""
        return self.scene.inject(fault)

    def report(self) -> dict[str, str]:
        """See `EmulatedSensor`."""
        return {
            'natnet_clients': str(len(self._clients)),
            'natnet_frames': str(self._sent),
            'natnet_fault': self.scene.told_faults(),
        }

    def close(self) -> None:
        """See `EmulatedSensor`."""
        self._thread.close()
        for sock in (self._socket, self._second):
            if sock is not None:
                sock.close()
        self._socket = self._second = None

    # -- protocol

    def _opened(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((LOCALHOST, 0))
        sock.setblocking(False)
        return sock

    def _answer(self, thread: PollingThread) -> None:
        """Answer requests of clients until the thread is to end."""
        while not thread.ending.is_set():
            sock = self._socket
            if sock is None:
                return
            readable, _, _ = select.select([sock], [], [], WAIT_S)
            if not readable:
                continue
            with contextlib.suppress(OSError):
                self._reply(sock, *sock.recvfrom(65_536))

    def _reply(self, sock: socket.socket, data: bytes, client: tuple[str, int]) -> None:
        if 'die' in self.scene.faults or len(data) < 4:
            return
        (kind,) = struct.unpack_from('<H', data)
        if kind == CONNECT:
            port = sock.getsockname()[1]
            name = 'Motive (emulated)'
            sock.sendto(packets.server_info(self.version, TICKS_PER_S, port, name), client)
        elif kind == REQUEST_MODEL:
            bodies = list(enumerate(self.scene.names, start=1))
            sock.sendto(packets.model(self.version, bodies, self._markers_per_body), client)
        if kind in (CONNECT, REQUEST_MODEL, KEEP_ALIVE):
            self._clients[client] = MONOTONIC.now_s()

    def _send(self, scene: Scene) -> None:
        sock = self._socket
        if sock is None:
            return
        if 'die' in self.scene.faults:
            self._names = []  # a restarted server reports no change of models
            return
        data = self.scene.garbled(self._frame(scene, np.eye(4)))
        now = MONOTONIC.now_s()
        for client, heard_s in list(self._clients.items()):
            if now - heard_s > FORGET_S:
                self._clients.pop(client, None)
                continue
            with contextlib.suppress(OSError):
                sock.sendto(data, client)
            if 'second' in self.scene.faults:
                self._second = self._second or self._opened()
                elsewhere = pose(np.eye(3), [0.05, 0.0, 0.0])
                with contextlib.suppress(OSError):
                    self._second.sendto(self._frame(scene, elsewhere), client)
        self._sent += 1

    def _frame(self, scene: Scene, moved: Array) -> bytes:
        to_stream = (Z_TO_Y_UP if self._config.up_axis == 'y' else np.eye(4)) @ moved
        unit = 1000.0 if self._config.unit == 'mm' else 1.0
        bodies, markers = [], []
        for number, (_, seen) in enumerate(scene.bodies.items(), start=1):
            placed = to_stream @ (np.eye(4) if seen is None else seen)
            bodies.append(
                SentBody(
                    number,
                    tuple(unit * placed[:3, 3]),
                    tuple(quaternion_from_matrix(placed[:3, :3])),
                    seen is not None,
                )
            )
        for name, where in scene.points.items():
            placed = to_stream[:3, :3] @ where + to_stream[:3, 3]
            markers.append(SentMarker(*self._markers[name], tuple(unit * placed)))
        names = list(scene.bodies)
        changed, self._names = bool(self._names) and names != self._names, names
        return packets.frame(
            self.version,
            scene.number,
            bodies,
            markers,
            exposed_ticks=round(TICKS_PER_S * scene.exposed_s),
            sent_ticks=round(TICKS_PER_S * scene.sent_s),
            time_s=scene.exposed_s,
            models_changed=changed,
        )


def build(config: NatNetConfig, sections: Sequence[str], seed: int) -> NatNetServer:
    """Return the server, not yet started."""
    return NatNetServer(config, TrackedScene(config, sections, seed, OWN_FAULTS))
