"""A board on a line of memory: its firmware's core, compiled here, in the time of a clock."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections import deque
from pathlib import Path

import pytest
from manual_clock import ManualClock

from softarm_ros.drivers.serial_port import PortError
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.firmware_board import FirmwareBoard

FIRMWARE = Path(__file__).resolve().parents[1] / 'firmware'
PERIOD_S = 5e-4  # in which line and board meet
SHAFTS, OUTPUTS, RESET, STATUS = b'C', b'V', b'R', b'S'


@functools.cache
def library() -> Path:
    """Return the library, made now; skips the test where there is no compiler."""
    if shutil.which('make') is None or shutil.which('cc') is None:
        pytest.skip('make and cc are needed')
    folder = Path(tempfile.mkdtemp(prefix='softarm-board-'))
    target = folder / 'native_board.so'
    done = subprocess.run(
        ['make', '-C', str(FIRMWARE), f'BUILD={folder}', str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


class MemoryBoard(FirmwareBoard):
    """In place of a program that runs a board: `FirmwareBoard`, without processes and files."""

    def __init__(self, board: str, clock: ManualClock, *, reset_on_open: bool = False) -> None:
        super().__init__(board, 'native', reset_on_open=reset_on_open)
        self._clock = clock
        with tempfile.NamedTemporaryFile(suffix='.so') as copy:  # each has variables of its own
            shutil.copyfile(library(), copy.name)
            self._library = ctypes.CDLL(copy.name)
        self._library.memory_take.restype = self._library.memory_said.restype = ctypes.c_size_t
        self._library.memory_plugged.restype = ctypes.c_bool
        self._buffer = ctypes.create_string_buffer(1 << 20)
        self._orders: deque[str] = deque()
        self._port: MemoryPort | None = None
        self._stop = clock.event()
        self._running = clock.task(self._run, board)
        self._started = False

    @property
    def emulator(self) -> str:
        return 'native (in memory)' if self._started else ''

    def start(self, port: Path | None = None) -> None:
        """Power on; the port is found by `open_port`, whatever its name."""
        reset = b'1' if self._reset_on_open else b'0'
        now = ctypes.c_uint64(self._now_us())
        self._library.memory_start(self.board.encode(), reset, now)
        self._started = True
        self._running.start()

    def close(self) -> None:
        if self._started:
            self._stop.set()
            self._running.join()

    def open_port(self, name: str, baud: int) -> MemoryPort:
        """Return the port of the board; an `OpenPort`."""
        if not self._started or not self._library.memory_plugged():
            raise PortError(f'could not open port {name}: it is not there')
        self._port = MemoryPort(self, self._clock)
        self._library.memory_open(ctypes.c_bool(True))
        return self._port

    def order(self, line: str) -> None:
        if not self._started:
            raise EmulationError(f'emulated {self.board}: not started')
        self._library.memory_order(line.encode())

    def poll(self) -> None:
        """See `FirmwareBoard`; what has happened is taken in as time goes by."""
        if not self._started:
            raise EmulationError(f'emulated {self.board}: not started')

    def wait_for_status(self) -> dict[str, tuple[int, ...]]:
        self.order('status')
        known = self._statuses
        self._clock.until(lambda: self._statuses > known, 0.1, 'status')
        return self._status

    def _now_us(self) -> int:
        return round(1e6 * self._clock.now_s())

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S):
            self._library.memory_run(ctypes.c_uint64(self._now_us()))
            count = self._library.memory_said(self._buffer, ctypes.c_size_t(1 << 20))
            for line in self._buffer.raw[:count].decode().splitlines() if count else ():
                self._take(line.split())
            port = self._port
            if port is not None:
                if not self._library.memory_plugged():
                    port.lose()
                    self._port = None
                elif count := self._library.memory_take(self._buffer, ctypes.c_size_t(4096)):
                    port.arrive(self._buffer.raw[:count])

    def give(self, frame: bytes) -> None:
        """Take bytes of the host."""
        self._library.memory_give(frame, ctypes.c_size_t(len(frame)))

    def let_go(self, port: MemoryPort) -> None:
        """The host has closed its port."""
        if port is self._port:
            self._library.memory_open(ctypes.c_bool(False))
            self._port = None


class MemoryPort:
    """In place of `SerialPort`."""

    def __init__(self, board: MemoryBoard, clock: ManualClock) -> None:
        self._board, self._clock = board, clock
        self._come = bytearray()
        self._news = clock.event()
        self._gone = False

    def write(self, frame: bytes) -> bool:
        self._check()
        self._board.give(frame)
        return True

    def read(self, until_s: float) -> bytes:
        self._check()
        if not self._come:
            self._news.wait(max(until_s - self._clock.now_s(), 0.0))
        self._news.clear()
        self._check()
        taken = bytes(self._come)
        self._come.clear()
        return taken

    def wake(self) -> None:
        self._news.set()

    def close(self, drain_s: float = 0.0) -> None:
        self._board.let_go(self)

    def arrive(self, piece: bytes) -> None:
        """Bytes have come along the line."""
        self._come += piece
        self._news.set()

    def lose(self) -> None:
        """The plug was pulled."""
        self._gone = True
        self._news.set()

    def _check(self) -> None:
        if self._gone:
            raise PortError('the port is gone')
