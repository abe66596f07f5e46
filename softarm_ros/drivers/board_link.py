"""One connection to a board on a serial line: questions, answers, states, and its loss."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from typing import Protocol

from softarm_ros.clock import MONOTONIC, Clock, Event
from softarm_ros.drivers import messages
from softarm_ros.drivers.board_clock import BoardClock
from softarm_ros.drivers.frames import DELIMITER, Frame, FrameReceiver
from softarm_ros.drivers.messages import (
    Ack,
    HelloReply,
    Kind,
    Message,
    MessageError,
    Pong,
    Result,
    State,
    StepperState,
    Type,
    ValveState,
)
from softarm_ros.drivers.serial_config import SerialConfig
from softarm_ros.drivers.serial_counters import SerialCounter
from softarm_ros.drivers.serial_port import PortError, SerialPort

_log = logging.getLogger(__name__)
_HELLO_S = 1.0  # a Mega that was reset by opening the port takes 1.5 s
_TRIES = 3
_CONTROL = (Type.TARGETS, Type.OPEN, Type.KEEP)


class LinkDownError(OSError):
    """The board cannot be reached; what was under way is void."""


class RebootedError(LinkDownError):
    """The board was started anew: no earlier order holds."""


class BoardUser(Protocol):
    """What a board is used for. All of it is called by the board's thread and must not wait."""

    def connected(self, link: BoardLink, reply: HelloReply) -> None:
        """
        Configure the board, by `link.ask`; after the handshake, before the first cycle.

        A `LinkDownError` goes through; so does a `RefusedError` if the board will not do: the
        handshake is then repeated after a pause.
        """
        ...

    def cycle(self, link: BoardLink, now_s: float) -> None:
        """Send the board its orders, by `link.send` and `link.ask`; 'rate_hz', and when woken."""
        ...

    def state(self, state: StepperState | ValveState, stamp_s: float) -> None:
        """Take a state with the time of its measurement; it comes during `link.ask`, too."""
        ...

    def refused(self, ack: Ack) -> None:
        """Take the answer to a control frame that the board does not follow."""
        ...

    def disconnected(self, why: str) -> None:
        """Take note that the board is not there any more, or was started anew."""
        ...

    def closing(self, link: BoardLink) -> None:
        """Leave the board as it shall be; the port is closed after this."""
        ...


class RefusedError(RuntimeError):
    """The board answers that it will not; the message says what and why."""


class BoardLink:
    """One connection to a board, from a handshake to its end. For the board's thread only."""

    def __init__(
        self,
        port: SerialPort,
        config: SerialConfig,
        user: BoardUser,
        counter: SerialCounter,
        clock: Clock = MONOTONIC,
    ) -> None:
        self._time = clock
        self._port = port
        self._config = config
        self._user = user
        self._counter = counter
        self._receiver = FrameReceiver(counters=counter.received)
        self._clock = BoardClock()
        self._answers: dict[tuple[int, int], Result] = {}
        self._sequence = 0
        self._hello: HelloReply | None = None
        self._reply: HelloReply | None = None
        self._pings: deque[tuple[int, float]] = deque(maxlen=20)
        self._controls: deque[tuple[int, float]] = deque(maxlen=100)
        self._heard_s = self._time.now_s()
        self._bytes = self._frames = 0  # since the handshake began

    @property
    def boot_id(self) -> int:
        """The board's, of this start; 0 before the handshake."""
        return self._hello.boot_id if self._hello else 0

    def send(self, frame_type: Type, payload: bytes = b'') -> int | None:
        """
        Send a frame and return its sequence number; None if the line had no room for it.

        Raises
        ------
        LinkDownError
            If the port is gone.

        """
        sequence = self._sequence
        self._answers.pop((frame_type, sequence), None)  # of 256 frames ago
        encoded = messages.encode_for(Frame(frame_type, sequence, payload), self.boot_id)
        try:
            if not self._port.write(encoded):
                self._counter.skipped += 1
                return None
        except PortError as error:
            raise LinkDownError(str(error)) from error
        self._sequence = (sequence + 1) & 0xFF
        self._counter.sent += 1
        if frame_type in _CONTROL:
            self._controls.append((sequence, self._time.now_s()))
        return sequence

    def ask(self, frame_type: Type, payload: bytes = b'') -> Result:
        """
        Send a frame, up to three times, and return the board's answer; states go on arriving.

        For frames that may come twice without harm: an answer may have been lost.

        Raises
        ------
        LinkDownError
            If there is none in time, or the board is lost or started anew meanwhile.

        """
        asked: set[int] = set()
        for _ in range(_TRIES):
            deadline = self._time.now_s() + self._config.answer_timeout_s
            sequence = self.send(frame_type, payload)
            while self._time.now_s() < deadline:
                if sequence is None:
                    sequence = self.send(frame_type, payload)
                else:
                    asked.add(sequence)
                for number in asked:
                    result = self.answer(frame_type, number)
                    if result is not None:
                        return result
                self.listen(min(deadline, self._time.now_s() + 0.005))
            self._counter.unanswered += 1
        raise LinkDownError(f'no answer to {frame_type.name}')

    def answer(self, frame_type: Type, sequence: int) -> Result | None:
        """Return the board's answer to a frame that was sent, once; None if there is none yet."""
        return self._answers.pop((frame_type, sequence), None)

    def listen(self, until_s: float) -> None:
        """Take in what comes until a time (monotonic), at least once; ends early when woken."""
        try:
            piece = self._port.read(until_s)
            self._bytes += len(piece)
        except PortError as error:
            raise LinkDownError(str(error)) from error
        now = self._time.now_s()
        lost = self._counter.received.lost
        for frame in self._receiver.feed(piece):
            self._frames += 1
            try:
                self._take(messages.parse(frame), now)
            except MessageError as error:
                self._counter.unknown += 1
                _log.debug('%s', error)
            except RebootedError:
                self._counter.received.lost = lost  # it counts anew, none is lost
                raise
        silent = now - self._heard_s
        if self._hello is not None and silent > self._config.link_timeout_s:
            raise LinkDownError(f'no state for {1e3 * silent:.0f} ms')

    def shake_hands(self, kind: Kind, give_up_s: float, stopped: Event) -> HelloReply:
        """
        Say HELLO until the board answers.

        Raises
        ------
        LinkDownError
            If it does not until `give_up_s` (monotonic), or the caller has stopped.
        RefusedError
            If it speaks another version, or is another kind of board.

        """
        self._hello = self._reply = None
        self._bytes = self._frames = 0
        self._receiver.reset()
        received = self._counter.received
        before = (received.lost, received.malformed, received.corrupt)
        next_s = -1.0
        while (now := self._time.now_s()) < give_up_s and not stopped.is_set():
            if now >= next_s:
                with contextlib.suppress(PortError):
                    self._port.write(DELIMITER)  # ends whatever was there
                self.send(Type.HELLO, messages.hello())
                next_s = now + _HELLO_S
            self.listen(min(next_s, now + 0.05))
            reply: HelloReply | None = self._reply
            if reply is None:
                continue
            if reply.version != messages.PROTOCOL_VERSION:
                raise RefusedError(
                    f'the board speaks version {reply.version} of the protocol, '
                    f'{messages.PROTOCOL_VERSION} is needed: flash its firmware'
                )
            if reply.kind is not kind:
                raise RefusedError(
                    f'a board of {reply.kind.name.lower()} is there, expected {kind.name.lower()}'
                )
            self._hello = reply
            # The port was opened in the middle of a frame, or the board was starting.
            received.lost, received.malformed, received.corrupt = before
            self._heard_s = self._time.now_s()
            self._clock.restart()
            return reply
        found = (
            f' ({self._bytes} bytes came, no frame among them)'
            if self._bytes and not self._frames
            else ''
        )
        raise LinkDownError(
            f'{self._config.port}: no answer at {self._config.baud} baud{found}; another device, '
            'or firmware not flashed'
        )

    def ping(self, now_s: float) -> None:
        """Measure the round trip."""
        token = int(now_s * 1e6) & 0xFFFFFFFF
        if self.send(Type.PING, messages.ping(token)) is not None:
            self._pings.append((token, now_s))

    def _take(self, message: Message, now_s: float) -> None:
        if isinstance(message, StepperState | ValveState):
            self._take_state(message, now_s)
        elif isinstance(message, Ack):
            if message.type in _CONTROL:
                self._user.refused(message)
            else:
                if len(self._answers) > 64:  # late ones nobody asks for any more
                    self._answers.clear()
                self._answers[message.type, message.sequence] = message.result
        elif isinstance(message, HelloReply):
            self._reply = message
        elif isinstance(message, Pong):
            for token, sent_s in self._pings:
                if token == message.token:
                    self._counter.round_trip.add(now_s - sent_s)
        else:
            self._counter.board = message

    def _take_state(self, state: StepperState | ValveState, now_s: float) -> None:
        if self._hello is None:
            return  # whose it is, the handshake shows
        if state.state is State.BOOT:
            raise RebootedError('the board was started anew')
        self._heard_s = now_s
        while self._controls and (state.control_sequence - self._controls[0][0]) & 0xFF < 128:
            sequence, sent_s = self._controls.popleft()
            if sequence == state.control_sequence:
                self._counter.command_latency.add(now_s - sent_s)
        self._user.state(state, self._clock.stamp(state.time_us, now_s))
