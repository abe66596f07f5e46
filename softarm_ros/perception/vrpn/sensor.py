"""A VRPN server as a pose sensor."""

from __future__ import annotations

from collections.abc import Iterable

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.captured import CapturedBody, CapturedFrame, CorruptFrameError
from softarm_ros.perception.config import UNITS_M
from softarm_ros.perception.frame_sensor import FrameSensor
from softarm_ros.perception.sensor import SensorError, SensorProblem
from softarm_ros.perception.vrpn.config import VrpnConfig
from softarm_ros.perception.vrpn.connection import Connection
from softarm_ros.perception.vrpn.packets import (
    POSE,
    SENDER,
    TYPE,
    Decoder,
    Message,
    TrackerPose,
    VersionError,
    read_name,
    read_pose,
)

ONE_FRAME_S = 5.0e-4  # stamps of the bodies of one exposure differ by less
COMPLETE_S = 3.0e-3  # an incomplete frame is taken after this time


def body_of(name: str, pose: TrackerPose, unit_m: float) -> CapturedBody:
    """Return the body of a tracker pose whose unit of length is `unit_m` [m]."""
    x, y, z = pose.position
    return CapturedBody(name, (unit_m * x, unit_m * y, unit_m * z), pose.quaternion)


class VrpnSensor(FrameSensor[VrpnConfig]):
    """
    Reads the trackers of a VRPN server; a `PoseSensor`.

    Each body comes in a message of its own; messages of one stamp are one frame. Stamps are those
    of the server. The VRPN client of the library `motioncapture` is not used: it gives no stamps,
    and polls only a hundred times a second.
    """

    def __init__(self, config: VrpnConfig, frame_id: str, clock: Clock = MONOTONIC) -> None:
        super().__init__(config, frame_id, clock)
        self._expected = {body.name for body in config.bodies}
        self._connection: Connection | None = None
        self._version = ''
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        """Reset all knowledge of the server."""
        self._decoder = Decoder()
        self._senders: dict[int, str] = {}
        self._types: dict[int, str] = {}
        self._known: set[str] = set()
        self._stamp_s, self._arrived_s = 0.0, 0.0
        self._bodies: dict[str, CapturedBody] = {}

    def _listen(self) -> None:
        self._begin()
        try:
            self._connection = Connection(self.config.host, self.config.port, self._clock)
        except OSError as error:
            raise SensorError(f'no socket for VRPN: {error}') from error

    def close(self) -> None:
        """See `PoseSensor`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _listening(self) -> bool:
        return self._connection is not None

    def _receive(self, left_s: float) -> list[Sighting]:
        connection = self._connection
        assert connection is not None
        was = connection.connected
        longest_s = COMPLETE_S if self._bodies else 0.1
        data, arrived_s = connection.wait(min(left_s, longest_s))
        if was and not connection.connected:
            self._begin()
        complete = bool(self._bodies) and arrived_s - self._arrived_s >= COMPLETE_S
        return self._take(connection, data, arrived_s) if data or complete else []

    def _bodies_of_device(self) -> Iterable[str] | None:
        return self._known or None

    # -- messages

    def _take(self, connection: Connection, data: bytes, arrived_s: float) -> list[Sighting]:
        seen: list[Sighting] = []
        try:
            for message in self._decoder.feed(data):
                seen += self._follow(message, arrived_s)
            if not data:  # the remaining bodies of this frame have not arrived in time
                seen += self._frame()
            self._version = ''
        except VersionError as error:
            self._version = str(error)
            connection.drop()
            self._begin()
        except CorruptFrameError as error:
            self._report_corrupt(
                arrived_s,
                'network',
                f'a message of {self.config.host} was not used: {error}',
                'check the network and the server',
            )
            connection.drop()  # the start of the next message is unknown
            self._begin()
        return seen

    def _follow(self, message: Message, arrived_s: float) -> list[Sighting]:
        if message.type == SENDER:
            self._senders[message.sender] = read_name(message.content)
        elif message.type == TYPE:
            self._types[message.sender] = read_name(message.content)
        elif message.type >= 0:
            kind = self._types.get(message.type)
            if kind is None:
                raise CorruptFrameError(f'a message of type {message.type}, never announced')
            if kind == POSE:
                return self._see(message, arrived_s)
        return []

    def _see(self, message: Message, arrived_s: float) -> list[Sighting]:
        sender = self._senders.get(message.sender)
        if sender is None:
            raise CorruptFrameError(f'a pose of sender {message.sender}, never announced')
        try:
            pose = read_pose(message.content)
            name = sender if pose.sensor == 0 else f'{sender}[{pose.sensor}]'
            self._known.add(name)
            if name not in self._expected:
                return []
            body = body_of(name, pose, UNITS_M[self.config.unit])
            body.check()
        except CorruptFrameError as error:  # harmless: the start of the next message is known
            self._report_corrupt(
                arrived_s,
                sender,
                f'a pose was not used: {error}',
                'check whether its markers are hidden, and check `unit` and the network',
            )
            return []
        seen: list[Sighting] = []
        if self._bodies and (
            name in self._bodies or abs(message.time_s - self._stamp_s) > ONE_FRAME_S
        ):
            seen += self._frame()
        if not self._bodies:
            self._stamp_s, self._arrived_s = message.time_s, arrived_s
        self._bodies[name] = body
        if self._expected <= self._bodies.keys():
            seen += self._frame()
        return seen

    def _frame(self) -> list[Sighting]:
        """Return the sighting, if any, of the collected bodies, and discard these."""
        bodies, self._bodies = self._bodies, {}
        self._number += 1
        frame = CapturedFrame(
            self._number,
            self._stamp_s - self.config.device_latency_s,
            self._stamp_s,
            self._arrived_s,
            tuple(bodies.values()),
            (),
            tuple(self._known - bodies.keys()),
        )
        frame.check()
        sighting = self._intake.take(frame)
        return [] if sighting is None else [sighting]

    def _silence(self) -> SensorProblem:
        """Return the problem that explains why no frames arrive."""
        where = f'{self.config.host} port {self.config.port}'
        if self._version:
            return SensorProblem(
                'version', 'server', f'{where}: {self._version}', 'use a server of VRPN 7'
            )
        if self._connection is not None and self._connection.connected:
            if self._known and not self._known & self._expected:
                return SensorProblem(
                    'wrong-name',
                    'server',
                    f'{where} has none of {", ".join(sorted(self._expected))}; it has '
                    f'{", ".join(sorted(self._known))}',
                    'write the names as the server has them',
                )
            return SensorProblem(
                'no-frames',
                'server',
                f'the VRPN server at {where} is connected but sends no poses',
                'start live mode in its program, and select the bodies that it sends',
            )
        trouble = '' if self._connection is None else self._connection.trouble
        return SensorProblem(
            'no-server',
            'server',
            f'no VRPN server answers at {where}' + (f' ({trouble})' if trouble else ''),
            'start it with VRPN on, look at its address, and at the firewalls: it is asked by UDP '
            'and connects to this computer by TCP',
        )
