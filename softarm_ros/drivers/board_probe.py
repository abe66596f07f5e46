"""Asks a serial board who it is and how it is, without setting anything in motion."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from softarm_ros.clock import Clock
from softarm_ros.drivers import messages
from softarm_ros.drivers.connections import OF_THIS_COMPUTER, Connections
from softarm_ros.drivers.counters import Latency, LatencyRecord
from softarm_ros.drivers.frames import DELIMITER, Frame, FrameReceiver
from softarm_ros.drivers.messages import (
    HelloReply,
    Message,
    MessageError,
    Pong,
    State,
    StepperState,
    Type,
    ValveState,
    encode_for,
)
from softarm_ros.drivers.problems import DriverError, import_library
from softarm_ros.drivers.serial_port import PortError, SerialPort

BAUDS = (250000, 115200)  # steppers, valves
_LISTEN_S = 0.3  # 15 state frames of the slower board
_HELLO_S = 0.5
_PATIENCE_S = 3.0  # a Mega that was reset by the opening takes 1.5 s
_PONG_S = 1.0
PINGS = 20


@dataclass(frozen=True)
class BoardReport:
    """
    What a board says of itself.

    Attributes
    ----------
    baud :
        The speed at which it answered.
    identity :
        Kind, firmware, boot id, why it last started.
    state :
        Its newest state frame.
    ping :
        Round trips of pings; `count` is how many of `PINGS` were answered.
    damaged :
        Frames from it that were not valid, after the handshake.

    """

    baud: int
    identity: HelloReply
    state: StepperState | ValveState
    ping: Latency
    damaged: int


def probe_board(
    port: str, bauds: Sequence[int] = BAUDS, connections: Connections = OF_THIS_COMPUTER
) -> BoardReport:
    """
    Open a port, shake hands, ping, close. A board goes from BOOT to IDLE by it, no further.

    Opening the port resets a Mega, whose zero is then lost. Takes up to four seconds a speed.

    Raises
    ------
    DriverError
        If the port cannot be opened or is in use, nothing answers, what answers speaks another
        protocol, or the board moves for another program.

    """
    import_library('serial')
    found = ''
    try:
        # Exclusive: nobody else's conversation is disturbed.
        with contextlib.closing(connections.open_port(port, bauds[0])) as line:
            for baud in bauds:
                line.restart(baud)
                conversation = _Conversation(port, line, connections.clock)
                identity = conversation.handshake()
                if identity is not None:
                    return conversation.report(baud, identity)
                found = found or conversation.heard
    except PortError as error:
        raise DriverError(error.of(port)) from error
    tried = ' and '.join(f'{baud}' for baud in bauds)
    raise DriverError(
        f'{port}: no answer at {tried} baud{found}; another device, or firmware not flashed'
    )


class _Conversation:
    """The protocol over an open port at one speed."""

    def __init__(self, name: str, line: SerialPort, clock: Clock) -> None:
        self._name, self._line, self._clock = name, line, clock
        self._receiver = FrameReceiver()
        self._sequence = 0
        self._bytes = 0
        self._state: StepperState | ValveState | None = None

    @property
    def heard(self) -> str:
        """What came in, for a message; '' for nothing."""
        return f' ({self._bytes} bytes came, no frame among them)' if self._bytes else ''

    def handshake(self) -> HelloReply | None:
        """Return who answers, None if nobody does."""
        for _ in self._messages(_LISTEN_S):
            if self._state is not None:
                break
        if self._state is not None and self._state.state in (State.ARMED, State.RUNNING):
            # A HELLO would stop it.
            raise DriverError(f'{self._name}: the board moves for another program')
        self._line.write(DELIMITER)
        end = self._clock.now_s() + _PATIENCE_S
        while self._clock.now_s() < end:
            self._send(Type.HELLO, messages.hello())
            for message in self._messages(_HELLO_S):
                if isinstance(message, HelloReply):
                    if message.version != messages.PROTOCOL_VERSION:
                        raise DriverError(
                            f'{self._name}: the board speaks protocol {message.version}, '
                            f'this driver {messages.PROTOCOL_VERSION}: flash it anew'
                        )
                    return message
        return None

    def report(self, baud: int, identity: HelloReply) -> BoardReport:
        """Ping, and wait for a state frame of after the handshake."""
        counters = self._receiver.counters
        before = counters.corrupt + counters.malformed  # the first piece of a frame is one
        record = LatencyRecord()
        for token in range(PINGS):
            sent = self._clock.now_s()
            self._send(Type.PING, messages.ping(token))
            for message in self._messages(_PONG_S):
                if isinstance(message, Pong) and message.token == token:
                    record.add(self._clock.now_s() - sent)
                    break
        self._state = None
        for _ in self._messages(_PONG_S):
            if self._state is not None:
                break
        if self._state is None:
            raise DriverError(f'{self._name}: the board answers, but sends no states')
        damaged = counters.corrupt + counters.malformed - before
        return BoardReport(baud, identity, self._state, record.summary(), damaged)

    def _send(self, frame_type: Type, payload: bytes) -> None:
        self._line.write(encode_for(Frame(frame_type, self._sequence, payload), 0))
        self._sequence = (self._sequence + 1) & 0xFF

    def _messages(self, seconds: float) -> Iterator[Message]:
        """Yield what comes within some seconds; states are kept on the way."""
        end = self._clock.now_s() + seconds
        while self._clock.now_s() < end:
            piece = self._line.read(end)
            self._bytes += len(piece)
            for frame in self._receiver.feed(piece):
                try:
                    message = messages.parse(frame)
                except MessageError as error:
                    raise DriverError(f'{self._name}: not understood: {error}') from error
                if isinstance(message, StepperState | ValveState):
                    self._state = message
                yield message
