"""Qualisys as a pose sensor."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterable
from dataclasses import replace

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.captured import CorruptFrameError
from softarm_ros.perception.frame_sensor import FrameSensor
from softarm_ros.perception.qtm.config import QtmConfig
from softarm_ros.perception.qtm.packets import (
    DATA,
    ERROR,
    EVENT,
    NO_MORE_DATA,
    XML,
    Framing,
    Names,
    command,
    read_frame,
    read_names,
    text_of,
)
from softarm_ros.perception.sensor import SensorProblem

VERSION = '1.23'
RETRY_S = 1.0
CONNECT_S = 0.5
ASK_S = 1.0
BODIES_CHANGED = 11  # event: camera or tracking settings


class QtmSensor(FrameSensor[QtmConfig]):
    """
    Reads the stream of QTM; a `PoseSensor`.

    The library `qtm_rt` decodes the frames. Its connection is not used: it hangs on a length of
    zero, and does not notice a server that stays connected but sends nothing.
    """

    def __init__(self, config: QtmConfig, frame_id: str, clock: Clock = MONOTONIC) -> None:
        super().__init__(config, frame_id, clock)
        self._open = False
        self._socket: socket.socket | None = None
        self._framing = Framing()
        self._names: Names | None = None
        self._used = config.names
        self._next_try_s = 0.0
        self._next_ask_s = 0.0
        self._asked = False  # whether frames were requested on this connection
        self._heard_s = 0.0
        self._trouble = ''
        self._said = ''

    def close(self) -> None:
        """See `PoseSensor`."""
        self._open = False
        self._hang_up('')

    def _listen(self) -> None:
        self._open = True

    def _listening(self) -> bool:
        return self._open

    def _receive(self, left_s: float) -> list[Sighting]:
        sock = self._socket or self._connect(left_s)
        if sock is None or not self._ask(sock):
            if left_s > 0.0:
                self._clock.sleep(min(left_s, 0.05))
            return []
        readable, _, _ = select.select([sock], [], [], min(left_s, 0.1))
        if readable:
            return self._read_socket(sock)
        if self._clock.now_s() - self._heard_s > 4.0 * max(self.config.timeout_s, ASK_S):
            self._hang_up('QTM keeps the connection but sends nothing')
        return []

    def _bodies_of_device(self) -> Iterable[str] | None:
        names = self._names
        return None if names is None else names.bodies

    # -- connection

    def _connect(self, left_s: float) -> socket.socket | None:
        now = self._clock.now_s()
        if now < self._next_try_s:
            return None
        self._next_try_s = now + RETRY_S
        where = (self.config.host, self.config.port)
        try:
            sock = socket.create_connection(where, min(CONNECT_S, max(left_s, 0.05)))
        except OSError as error:
            self._trouble = f'no QTM at {where[0]} port {where[1]}: {error}'
            return None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self._socket, self._framing, self._names = sock, Framing(), None
        self._heard_s = self._clock.now_s()
        self._trouble = self._said = ''
        self._next_ask_s, self._asked = 0.0, False
        self._send(sock, f'Version {VERSION}')
        return sock

    def _ask(self, sock: socket.socket) -> bool:
        """
        Request names until they are known, then frames; repeat that while no frames arrive.

        Return whether the connection is still open.
        """
        now = self._clock.now_s()
        silent = now - self._intake.last_arrival_s() > self.config.timeout_s
        wanted = silent or self._names is None or not self._asked
        if now < self._next_ask_s or not wanted:
            return True
        self._next_ask_s = now + ASK_S
        if self._names is None:
            self._send(sock, 'GetParameters 3D 6D')
        else:
            self._asked = True
            self._send(sock, 'StreamFrames AllFrames 3D 6DRes')
        return self._socket is not None

    def _send(self, sock: socket.socket, text: str) -> None:
        try:
            sock.send(command(text))
        except OSError as error:
            self._hang_up(f'connection lost: {error}')

    def _hang_up(self, why: str) -> None:
        sock, self._socket = self._socket, None
        self._trouble = why or self._trouble
        if sock is None:
            return
        sock.close()
        if why:  # reported even if the connection is restored before frames are missed
            self._intake.problems.report(self._clock.now_s(), 2, self._silence())

    def _read_socket(self, sock: socket.socket) -> list[Sighting]:
        arrived_s = self._clock.now_s()
        try:
            data = sock.recv(262_144)
        except OSError as error:
            self._hang_up(f'connection lost: {error}')
            return []
        if not data:
            self._hang_up('QTM has closed the connection')
            return []
        self._heard_s = arrived_s
        found: list[Sighting] = []
        try:
            for kind, content in self._framing.feed(data):
                sighting = self._take(kind, content, arrived_s)
                if sighting is not None:
                    found.append(sighting)
        except CorruptFrameError as error:
            self._leave_out(arrived_s, error)
            self._hang_up(f'received data are not RT protocol: {error}')
        return found

    def _take(self, kind: int, content: bytes, arrived_s: float) -> Sighting | None:
        if kind == DATA and self._names is not None:
            try:
                latency_s = self.config.device_latency_s
                frame = read_frame(content, self._names, self._used, arrived_s, latency_s)
            except CorruptFrameError as error:
                self._leave_out(arrived_s, error)
                return None
            return self._intake.take(frame)
        if kind == XML:
            try:
                found = read_names(content)
                # Unused labels must not reject a frame.
                self._names = found if self.config.points else replace(found, points=())
            except CorruptFrameError as error:
                self._leave_out(arrived_s, error)
            self._next_ask_s = 0.0
        elif kind == ERROR:
            self._said = text_of(content)
        elif kind == NO_MORE_DATA:
            self._said = 'no more data: the measurement has ended'
        elif kind == EVENT and content[:1] == bytes((BODIES_CHANGED,)):
            self._names, self._next_ask_s = None, 0.0
        return None

    # -- problems

    def _leave_out(self, now_s: float, error: CorruptFrameError) -> None:
        self._names, self._next_ask_s = None, 0.0  # the tracked bodies may have changed
        self._report_corrupt(
            now_s,
            'network',
            f'a packet was not used: {error}',
            'look which program answers at this port, and at the version of QTM',
        )

    def _silence(self) -> SensorProblem:
        if self._socket is None:
            return SensorProblem(
                'no-server',
                'server',
                self._trouble or f'no connection to {self.config.host} yet',
                'start QTM, look at its address, at its real-time output, and at the firewall for '
                f'TCP {self.config.port}',
            )
        said = f' ({self._said})' if self._said else ''
        return SensorProblem(
            'no-frames',
            'server',
            f'QTM at {self.config.host} answers but sends no frames{said}',
            'start a measurement or a preview with real-time 6DOF tracking in QTM',
        )
