"""Query the identity and state of a serial board without moving anything."""

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
_PATIENCE_S = 3.0  # opening the port resets a Mega, which then takes 1.5 s to answer
_PONG_S = 1.0
PINGS = 20


@dataclass(frozen=True)
class BoardReport:
    """
    Identity, state and link quality of a board.

    Attributes
    ----------
    baud :
        The speed at which it answered.
    identity :
        Kind, firmware, boot id and cause of the last start.
    state :
        Its newest state frame.
    ping :
        Round trips of pings; `count` is the number of `PINGS` that were answered.
    damaged :
        Number of invalid frames from the board after the handshake.

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
    Open a port, shake hands, ping, close. The board goes from BOOT to IDLE, no further.

    Opening the port resets a Mega, which then loses its zero. Takes up to four seconds per speed.

    Raises
    ------
    DriverError
        If the port cannot be opened or is in use, no board answers, the board has another
        protocol version, or the board moves for another program.

    """
    import_library('serial')
    found = ''
    try:
        # The port is opened exclusively, so no other program is disturbed.
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
        self._unknown = ''  # a frame that this version of the protocol does not have
        self._known = False  # the board has told this version
        self._state: StepperState | ValveState | None = None

    @property
    def heard(self) -> str:
        """Text on the bytes received, for a message; '' if none came."""
        if self._unknown:
            return f' (frames came that this driver does not know: {self._unknown})'
        return f' ({self._bytes} bytes came, no frame among them)' if self._bytes else ''

    def handshake(self) -> HelloReply | None:
        """Return the answer of the board to HELLO; None if there is none."""
        for _ in self._messages(_LISTEN_S):
            if self._state is not None:
                break
        if self._state is not None and self._state.state in (State.ARMED, State.RUNNING):
            # A HELLO would stop the board.
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
                            f'this driver {messages.PROTOCOL_VERSION}: flash its firmware'
                        )
                    self._known = True
                    return message
        return None

    def report(self, baud: int, identity: HelloReply) -> BoardReport:
        """Ping, wait for a state frame sent after the handshake, and return the report."""
        counters = self._receiver.counters
        before = counters.corrupt + counters.malformed  # includes a first partial frame
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
            raise DriverError(f'{self._name}: the board answers but sends no states')
        damaged = counters.corrupt + counters.malformed - before
        return BoardReport(baud, identity, self._state, record.summary(), damaged)

    def _send(self, frame_type: Type, payload: bytes) -> None:
        self._line.write(encode_for(Frame(frame_type, self._sequence, payload), 0))
        self._sequence = (self._sequence + 1) & 0xFF

    def _messages(self, seconds: float) -> Iterator[Message]:
        """Yield the messages of the next seconds; remember the newest state."""
        end = self._clock.now_s() + seconds
        while self._clock.now_s() < end:
            piece = self._line.read(end)
            self._bytes += len(piece)
            for frame in self._receiver.feed(piece):
                try:
                    message = messages.parse(frame)
                except MessageError as error:
                    if self._known:
                        raise DriverError(f'{self._name}: unknown message: {error}') from error
                    # Another version may have other states; its answer to HELLO tells it.
                    self._unknown = self._unknown or str(error)
                    continue
                if isinstance(message, StepperState | ValveState):
                    self._state = message
                yield message
