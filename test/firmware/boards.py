"""A board behind a pseudo-terminal or in memory, and a simple host for it, for tests."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import serial
from manual_clock import ManualClock, WallClock
from memory_board import MemoryBoard

from softarm_ros.drivers import messages
from softarm_ros.drivers.frames import Frame, FrameReceiver
from softarm_ros.drivers.messages import Message, Result, State, Type


@dataclass
class Bench:
    """The control socket of a runner: receives actuator events, sends orders."""

    path: Path
    clock: WallClock = field(default_factory=WallClock)
    exact: bool = False  # whether stamps are in the board's own time
    shafts: list[int] = field(default_factory=lambda: [0] * 6)
    changes: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    valves: list[tuple[float, int]] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(str(self.path))
        self._socket.setblocking(False)

    def order(self, line: str) -> None:
        """Send an order."""
        self._socket.sendall(line.encode())

    def read(self) -> list[list[str]]:
        """Take in all lines; return those that are not actuator events."""
        other = []
        while True:
            try:
                words = self._socket.recv(1024).decode().split()
            except BlockingIOError:
                return other
            assert words, 'the runner has closed its socket'
            if words[0] == 'C':
                self.shafts = [int(word) for word in words[2:]]
                self.changes.append((int(words[1]) * 1e-6, tuple(self.shafts)))
            elif words[0] == 'V':
                self.valves.append((int(words[1]) * 1e-6, int(words[2], 16)))
            elif words[0] == 'R':
                self.resets.append(int(words[2]))
            else:
                other.append(words)

    def status(self) -> dict[str, list[int]]:
        """Return the bench's counts: shafts, their path lengths, jumps, transactions, failures."""
        self.read()  # empty the socket: a full one would block the answer
        deadline = self.clock.now_s() + 5
        self.order('status')
        while self.clock.now_s() < deadline:
            for words in self.read():
                if words[0] == 'S':
                    found: dict[str, list[int]] = {}
                    for word in words[2:]:
                        if word.isalpha():
                            name = word
                            found[name] = []
                        else:
                            found[name].append(int(word))
                    found.pop('late', None)  # depends on the computer, not on the board
                    return found
            self.clock.sleep(0.002)
        raise AssertionError('the bench does not answer')

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class MemoryBench:
    """Replaces `Bench` for a board in memory."""

    exact = True

    def __init__(self, kind: str, elf: Path | None, reset_on_open: bool) -> None:
        self.clock = ManualClock()
        self.board = MemoryBoard(kind, self.clock, elf=elf, reset_on_open=reset_on_open)
        self.shafts = [0] * 6
        self.changes: list[tuple[float, tuple[int, ...]]] = []
        self.valves: list[tuple[float, int]] = []

    def order(self, line: str) -> None:
        """Send an order; the board carries it out when time advances."""
        self.board.order(line)

    def read(self) -> None:
        """Take in the actuator events."""
        while self.board.shafts:
            self.changes.append(self.board.shafts.popleft())
            self.shafts = list(self.changes[-1][1])
        while self.board.outputs:
            self.valves.append(self.board.outputs.popleft())

    def status(self) -> dict[str, list[int]]:
        """Return the counts, as `Bench.status` does."""
        counts = self.board.wait_for_status()
        self.read()
        return {name: list(count) for name, count in counts.items() if name != 'late'}


class MemoryLine:
    """Replaces `serial.Serial` in a host, for a board in memory."""

    def __init__(self, board: MemoryBoard, clock: ManualClock) -> None:
        self._port, self._clock = board.open_port('memory', 0), clock

    def write(self, frame: bytes) -> None:
        self._port.write(frame)

    def read(self, most: int) -> bytes:
        return self._port.read(self._clock.now_s())

    def reset_input_buffer(self) -> None:
        self._port.read(self._clock.now_s())

    def close(self) -> None:
        self._port.close()


@dataclass(frozen=True)
class MemoryLink:
    """Replaces the path of a port."""

    bench: MemoryBench

    def exists(self) -> bool:
        """Return whether the board is plugged in."""
        return self.bench.board.plugged


class Host:
    """Opens the port and speaks the protocol."""

    def __init__(self, port: Path | MemoryLink, baud: int = 250000) -> None:
        self.port = port
        self.clock: WallClock | ManualClock
        if isinstance(port, MemoryLink):
            self.clock = port.bench.clock
            self.line = MemoryLine(port.bench.board, self.clock)
        else:
            self.clock = WallClock()
            self.line = serial.Serial(str(port), baud, timeout=0)
        self.line.reset_input_buffer()
        self.receiver = FrameReceiver()
        self.sequence = 0
        self.boot_id = 0
        self.messages: list[tuple[float, Message]] = []
        self.state: messages.StepperState | messages.ValveState | None = None
        self.line.write(b'\0')

    def send(self, frame_type: Type, payload: bytes = b'') -> int:
        """Send a frame and return its sequence number."""
        sequence = self.sequence
        self.line.write(messages.encode_for(Frame(frame_type, sequence, payload), self.boot_id))
        self.sequence = (sequence + 1) & 0xFF
        return sequence

    def poll(self) -> list[Message]:
        """Return the messages that have arrived."""
        new = [messages.parse(frame) for frame in self.receiver.feed(self.line.read(4096))]
        for message in new:
            self.messages.append((self.clock.now_s(), message))
            if isinstance(message, messages.StepperState | messages.ValveState):
                self.state = message
        return new

    def wait(self, wanted: Callable[[Message], bool], timeout: float = 3.0) -> Message:
        """Poll until a wanted message arrives, and return it."""
        deadline = self.clock.now_s() + timeout
        while self.clock.now_s() < deadline:
            for message in self.poll():
                if wanted(message):
                    return message
            self.clock.sleep(0.0005)
        raise AssertionError(f'not within {timeout} s; last state {self.state}')

    def ask(self, frame_type: Type, payload: bytes = b'') -> Result:
        """Send a frame and return the answer."""
        sequence = self.send(frame_type, payload)
        ack = self.wait(
            lambda m: (
                isinstance(m, messages.Ack) and (m.type, m.sequence) == (frame_type, sequence)
            )
        )
        assert isinstance(ack, messages.Ack)
        return ack.result

    def hello(self) -> messages.HelloReply:
        """Do the handshake, with retries, since the board may still be starting."""
        for _ in range(10):
            self.send(Type.HELLO, messages.hello())
            with contextlib.suppress(AssertionError):
                reply = self.wait(lambda m: isinstance(m, messages.HelloReply), 0.5)
                assert isinstance(reply, messages.HelloReply)
                self.boot_id = reply.boot_id
                return reply
        raise AssertionError('no handshake')

    def counters(self) -> messages.Counters:
        """Ask for the counters."""
        self.send(Type.GET_COUNTERS)
        reply = self.wait(lambda m: isinstance(m, messages.Counters))
        assert isinstance(reply, messages.Counters)
        return reply

    def wait_state(self, state: State, timeout: float = 3.0) -> Message:
        """Wait for a state frame with this state."""
        return self.wait(lambda m: getattr(m, 'state', None) is state, timeout)

    def prepare_steppers(self, speed: int = 679, acceleration: int = 3395) -> None:
        """Set limits and zero of six motors, and arm them."""
        for motor in range(messages.MOTORS):
            config = messages.StepperConfig(
                motor, speed, acceleration, max(acceleration, 50 * speed), -6000, 6000
            )
            assert self.ask(Type.STEPPER_CONFIG, config.payload()) is Result.OK
        assert self.ask(Type.ZERO, messages.zero(0x3F, [0] * 6)) is Result.OK
        assert self.ask(Type.ARM) is Result.OK

    def follow(self, targets: Callable[[float], Sequence[int]], seconds: float) -> None:
        """Send targets at 100 Hz."""
        start = self.clock.now_s()
        for tick in range(round(seconds * 100)):
            self.send(Type.TARGETS, messages.targets(list(targets(tick * 0.01))))
            while self.clock.now_s() < start + (tick + 1) * 0.01:
                self.poll()
                self.clock.sleep(0.001)

    def close(self) -> None:
        """Close the port."""
        self.line.close()


@contextlib.contextmanager
def running(folder: Path, *command: str | Path) -> Iterator[tuple[Path, Bench]]:
    """Start a runner; yield its port and its bench."""
    port, control = folder / 'port', folder / 'control'
    process = subprocess.Popen(
        [*map(str, command), '--port', str(port), '--control', str(control)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert 'ready\n' in iter(process.stdout.readline, ''), 'the runner did not start'
        with contextlib.closing(Bench(control)) as bench:
            yield port, bench
        assert process.poll() is None, 'the runner has ended by itself'
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@contextlib.contextmanager
def in_memory(
    kind: str, elf: Path | None = None, reset_on_open: bool = False
) -> Iterator[tuple[MemoryLink, MemoryBench]]:
    """Run a board's core or binary in simulated time; yield its port and its bench."""
    bench = MemoryBench(kind, elf, reset_on_open)
    bench.board.start()
    try:
        yield MemoryLink(bench), bench
    finally:
        bench.board.close()
    assert bench.clock.failures == []
