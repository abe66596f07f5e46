"""OptiTrack as a pose sensor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.captured import CapturedFrame, CorruptFrameError
from softarm_ros.perception.config import UNITS_M
from softarm_ros.perception.frame_sensor import FrameSensor
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.perception.natnet.packets import (
    CONNECT,
    FRAME,
    MODEL,
    NEWEST,
    OLDEST,
    REQUEST_MODEL,
    SERVER_INFO,
    Model,
    Server,
    kind_of,
    read_frame,
    read_model,
    read_server,
)
from softarm_ros.perception.natnet.receiver import Receiver, Sender
from softarm_ros.perception.sensor import SensorError, SensorProblem

RETRY_S = 1.0


class NatNetSensor(FrameSensor[NatNetConfig]):
    """
    Reads the NatNet stream of a server; a `PoseSensor`.

    The library `natnet` decodes the packets. Its client is not used: an unreadable packet ends its
    thread, it takes frames from any sender, and it stays connected when the server dies.
    """

    def __init__(self, config: NatNetConfig, frame_id: str, clock: Clock = MONOTONIC) -> None:
        super().__init__(config, frame_id, clock)
        self._open = False
        self._receiver: Receiver | None = None
        self._next_try_s = 0.0
        self._trouble = ''  # why the sockets cannot be opened
        self._server: Server | None = None
        self._model: Model | None = None
        self._answered_s = -float('inf')
        self._model_s = -float('inf')  # when the model was read
        self._number: int | None = None  # of the last frame
        self._missing = False  # frames or names since the model was requested
        self._next_model_s = 0.0
        self._names = config.names
        self._lone = {point.name for point in config.points}
        self._seen_lone: set[str] = set()  # while the server's model was `_last_model`
        self._last_model: Model | None = None

    def close(self) -> None:
        """See `PoseSensor`."""
        self._open = False
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close()

    def _listen(self) -> None:
        self._server, self._model, self._number = None, None, None
        self._last_model = None
        self._open, self._next_try_s, self._trouble = True, 0.0, ''

    def _listening(self) -> bool:
        return self._open

    def _receive(self, left_s: float) -> list[Sighting]:
        receiver = self._receiver or self._begin()
        if receiver is None:
            if left_s > 0.0:
                self._clock.sleep(min(left_s, 0.05))
            return []
        # Asked before the silence is reported, so that the report says whether the server answers.
        silence_s = self._clock.now_s() - self._intake.last_arrival_s()
        silent = silence_s > 0.5 * self.config.timeout_s
        # After a silence the server may return with another version.
        receiver.keep_asking(
            server=self._server is None or silent,
            model=self._server is not None and self._model is None,
        )
        packets = receiver.wait(min(left_s, 0.1))
        taken = [self._take(receiver, *packet) for packet in packets]
        return [sighting for sighting in taken if sighting is not None]

    def _begin(self) -> Receiver | None:
        """Open the sockets; return None if that fails, such as while the network is down."""
        now = self._clock.now_s()
        if now < self._next_try_s:
            return None
        self._next_try_s = now + RETRY_S
        try:
            self._receiver = Receiver(self.config, self._clock)
        except SensorError as error:
            self._trouble = str(error)
            return None
        self._trouble = ''
        return self._receiver

    def _values(self) -> dict[str, str]:
        server = self._server
        return {} if server is None else {'server': f'{server.name}, NatNet {server.version}'}

    def _bodies_of_device(self) -> Iterable[str] | None:
        model = self._model
        return None if model is None else model.bodies.values()

    # -- packets

    def _take(
        self, receiver: Receiver, data: bytes, sender: Sender, arrived_s: float
    ) -> Sighting | None:
        try:
            kind = kind_of(data)
            if kind == FRAME:
                return self._take_frame(receiver, data, sender, arrived_s)
            if kind in (SERVER_INFO, MODEL) and not receiver.is_servers(sender):
                self._report_second(sender, arrived_s)
            elif kind == SERVER_INFO:
                self._take_server(read_server(data), arrived_s)
            elif kind == MODEL and self._server is not None:
                self._take_model(read_model(data, self._server.version), arrived_s)
        except CorruptFrameError as error:
            self._report_corrupt(
                arrived_s,
                'network',
                f'a packet from {sender[0]} was not used: {error}',
                'check `unit`, the network, and which program sends to this port',
            )
        return None

    def _take_server(self, server: Server, arrived_s: float) -> None:
        self._answered_s = arrived_s
        if server != self._server:
            self._model = None
        self._server = server

    def _take_model(self, model: Model, arrived_s: float) -> None:
        if model != self._last_model:
            self._seen_lone.clear()
        self._model = self._last_model = model
        self._model_s = arrived_s

    def _take_frame(
        self, receiver: Receiver, data: bytes, sender: Sender, arrived_s: float
    ) -> Sighting | None:
        server, model = self._server, self._model
        if server is None or model is None or not server.supported:
            return None
        if not receiver.is_stream(sender, arrived_s):
            self._report_second(sender, arrived_s)
            return None
        self._report_other_port(receiver, sender, arrived_s)
        last_s = self._intake.last_arrival_s()
        if arrived_s - last_s > self.config.timeout_s and self._model_s <= last_s:
            # A restarted server may number its bodies differently.
            self._model = None
            for question in (CONNECT, REQUEST_MODEL):
                receiver.ask(question)
            return None
        scale, up_axis = UNITS_M[self.config.unit], self.config.up_axis
        read = read_frame(data, server, model, self._names, arrived_s, scale, up_axis)
        if read.model_changed:
            self._model = None  # this frame still uses the old one
            receiver.ask(REQUEST_MODEL)
        self._missing |= bool(read.unnamed)
        self._request_model_after_loss(receiver, read.frame.number, arrived_s)
        return self._intake.take(self._with_lost_markers(read.frame))

    def _with_lost_markers(self, frame: CapturedFrame) -> CapturedFrame:
        """
        Count lone markers as lost that were seen before.

        The server leaves out a hidden marker that belongs to no body, and the model has no name
        for it.
        """
        seen = {point.name for point in frame.points} & self._lone
        lost = self._seen_lone - seen - set(frame.lost)
        self._seen_lone |= seen
        return replace(frame, lost=(*frame.lost, *lost)) if lost else frame

    def _request_model_after_loss(self, receiver: Receiver, number: int, arrived_s: float) -> None:
        """Request the model if frames are missing, or a name: it may have changed."""
        self._missing |= self._number is not None and number != self._number + 1
        self._number = number
        if self._missing and arrived_s >= self._next_model_s:
            self._missing, self._next_model_s = False, arrived_s + RETRY_S
            receiver.ask(REQUEST_MODEL)

    # -- problems

    def _report_second(self, sender: Sender, arrived_s: float) -> None:
        self._intake.problems.report(
            arrived_s,
            2,
            SensorProblem(
                'second-sender',
                'network',
                f'{sender[0]} port {sender[1]} sends NatNet as well; its data are ignored',
                'end the second Motive (or replay), or give it another multicast group',
            ),
        )

    def _report_other_port(self, receiver: Receiver, sender: Sender, arrived_s: float) -> None:
        """Say once that frames come from another port of the server than before the silence."""
        before, receiver.before = receiver.before, None
        if before is None:
            return
        self._intake.problems.report(
            arrived_s,
            2,
            SensorProblem(
                'second-sender',
                'network',
                f'frames come from {sender[0]} port {sender[1]}; until they stopped they came '
                f'from port {before[1]}',
                'if Motive was not restarted, end the other program there that sends NatNet',
            ),
        )

    def _silence(self) -> SensorProblem:
        """Return the problem that explains why no frames arrive."""
        if self._trouble:
            return SensorProblem(
                'no-server',
                'server',
                self._trouble,
                'it is tried again; check whether the network of the cameras is up here',
            )
        where = f'{self.config.server} port {self.config.command_port}'
        server = self._server
        silent_s = self._clock.now_s() - self._answered_s
        # A silent server is asked repeatedly, so an old answer means that it is gone.
        answered = self._answered_s >= self._intake.last_arrival_s()
        if server is None or not answered or silent_s > 3.0 * max(self.config.timeout_s, 1.0):
            return SensorProblem(
                'no-server',
                'server',
                f'no NatNet server answers at {where}',
                'start Motive with streaming on, look at its address, and at the firewall for '
                'UDP 1510 and 1511',
            )
        if not server.supported:
            return SensorProblem(
                'version',
                'server',
                f'NatNet {server.version}: expected {OLDEST} to {NEWEST.truncate(2)}',
                'choose another version in the streaming settings of Motive',
            )
        return SensorProblem(
            'no-frames',
            'server',
            f'{server.name} at {where} answers but sends no frames',
            f'press live (or play) in Motive, and set its streaming to {self.config.mode} '
            'and to the interface of this network',
        )
