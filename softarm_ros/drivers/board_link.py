"""One connection to a board on a serial line: requests, answers, states, loss of the board."""

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
_HELLO_S = 1.0  # opening the port resets a Mega, which then takes 1.5 s to answer
_TRIES = 3
_CONTROL = (Type.TARGETS, Type.OPEN, Type.KEEP)


class LinkDownError(OSError):
    """The board cannot be reached; pending requests are void."""


class RebootedError(LinkDownError):
    """The board has restarted: earlier orders are no longer in force."""


class BoardUser(Protocol):
    """User of a board. The board's thread calls all methods; they must not wait."""

    def connected(self, link: BoardLink, reply: HelloReply) -> None:
        """
        Configure the board with `link.ask`; called after the handshake, before the first cycle.

        May raise `LinkDownError`, or `RefusedError` if the board is unsuitable: the handshake is
        then repeated after a pause.
        """
        ...

    def cycle(self, link: BoardLink, now_s: float) -> None:
        """Send orders with `link.send` and `link.ask`; called at 'rate_hz' and when woken."""
        ...

    def state(self, state: StepperState | ValveState, stamp_s: float) -> None:
        """Take a state with the time of its measurement; also called during `link.ask`."""
        ...

    def refused(self, ack: Ack) -> None:
        """Take the answer to a control frame that the board refuses."""
        ...

    def disconnected(self, why: str) -> None:
        """Note that the board is lost or has restarted."""
        ...

    def closing(self, link: BoardLink) -> None:
        """Put the board into its final state; the port is closed afterwards."""
        ...


class RefusedError(RuntimeError):
    """The board refuses a request; the message says which and why."""


class BoardLink:
    """One connection to a board, from the handshake to its loss. For the board's thread only."""

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
        """Boot id of the board's current start; 0 before the handshake."""
        return self._hello.boot_id if self._hello else 0

    def send(self, frame_type: Type, payload: bytes = b'') -> int | None:
        """
        Send a frame and return its sequence number; None if the line's buffer was full.

        Raises
        ------
        LinkDownError
            If the port is gone.

        """
        sequence = self._sequence
        self._answers.pop((frame_type, sequence), None)  # stale: from 256 frames ago
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
        Send a frame, up to three times, and return the board's answer; states continue to arrive.

        Use it only for frames that may be repeated without harm: an answer may have been lost.

        Raises
        ------
        LinkDownError
            If no answer comes in time, or the board is lost or restarts meanwhile.

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
        """Return the board's answer to a sent frame, once; None if there is none yet."""
        return self._answers.pop((frame_type, sequence), None)

    def listen(self, until_s: float) -> None:
        """Process incoming frames until a monotonic time, at least once; end early when woken."""
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
                self._counter.received.lost = lost  # the sequence restarts; no frame is lost
                raise
        silent = now - self._heard_s
        if self._hello is not None and silent > self._config.link_timeout_s:
            raise LinkDownError(f'no state for {1e3 * silent:.0f} ms')

    def shake_hands(self, kind: Kind, give_up_s: float, stopped: Event) -> HelloReply:
        """
        Send HELLO until the board answers.

        Raises
        ------
        LinkDownError
            If there is no answer until `give_up_s` (monotonic), or `stopped` is set.
        RefusedError
            If the board has another protocol version, or is of another kind.

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
                    self._port.write(DELIMITER)  # ends a partial frame
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
                    f'a board of {reply.kind.name.lower()} is there, expected '
                    f'{kind.name.lower()}: correct port in the rig file, or flash the board'
                )
            self._hello = reply
            # Damage so far is normal: the port was opened within a frame, or the board started.
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
        """Send a ping, whose answer gives the round trip."""
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
                if len(self._answers) > 64:  # late answers, which nobody awaits any more
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
            return  # its sender is unknown before the handshake
        if state.state is State.BOOT:
            raise RebootedError('the board has restarted')
        self._heard_s = now_s
        while self._controls and (state.control_sequence - self._controls[0][0]) & 0xFF < 128:
            sequence, sent_s = self._controls.popleft()
            if sequence == state.control_sequence:
                self._counter.command_latency.add(now_s - sent_s)
        self._user.state(state, self._clock.stamp(state.time_us, now_s))
