"""A board on a line in memory, in the time of a clock: its firmware's core or AVR binary."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections import deque
from pathlib import Path

import pytest
from firmware_made import build
from manual_clock import ManualClock

from softarm_ros.drivers.serial_port import PortError
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.firmware_board import FirmwareBoard

PERIOD_S = 5e-4  # period at which the board runs and bytes are transferred
SHAFTS, OUTPUTS, RESET, STATUS = b'C', b'V', b'R', b'S'


def avr_binary() -> Path:
    """Return the stepper board's AVR binary; skip the test if it cannot be built or run."""
    for program in ('avr-gcc', 'avr-g++'):
        if shutil.which(program) is None:
            pytest.skip(f'{program} is not installed')
    if not Path('/usr/share/arduino/hardware/arduino/avr/cores').is_dir():
        pytest.skip('arduino-core-avr is not installed')
    if not Path('/usr/include/simavr/sim_avr.h').is_file():
        pytest.skip('libsimavr-dev is not installed')
    return build('steppers.elf')


class MemoryBoard(FirmwareBoard):
    """
    Replaces the program that runs a board: a `FirmwareBoard` without processes and files.

    It runs the firmware's core compiled for this computer, or `elf`, the AVR binary, in simavr.
    """

    def __init__(
        self,
        board: str,
        clock: ManualClock,
        *,
        elf: Path | None = None,
        reset_on_open: bool = False,
    ) -> None:
        super().__init__(board, 'native', reset_on_open=reset_on_open)
        self._clock = clock
        self._elf = elf
        with tempfile.NamedTemporaryFile(suffix='.so') as copy:  # a copy has its own variables
            shutil.copyfile(
                build('native_board.so' if elf is None else 'simavr_board.so'), copy.name
            )
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
        how = 'native' if self._elf is None else 'simavr'
        return f'{how} (in memory)' if self._started else ''

    @property
    def plugged(self) -> bool:
        """Whether the board is plugged in, so that its port exists."""
        return bool(self._library.memory_plugged())

    def start(self, port: Path | None = None) -> None:
        """Power the board on; `open_port` opens its port, whatever the name."""
        now = ctypes.c_uint64(self._now_us())
        reset = f' --reset-on-open {int(self._reset_on_open)}' if self.board == 'steppers' else ''
        given = f'--kind {self.board}' if self._elf is None else f'--elf {self._elf}'
        self._library.memory_start(f'{given}{reset}'.encode(), now)
        self._library.memory_run(now)
        self._started = True
        self._running.start()

    def close(self) -> None:
        if self._started:
            self._stop.set()
            self._running.join()

    def open_port(self, name: str, baud: int) -> MemoryPort:
        """Return the port of the board; this method is an `OpenPort`."""
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
        """Check that the board runs; unlike in `FirmwareBoard`, events are read as time passes."""
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
        """Take bytes from the host."""
        self._library.memory_give(frame, ctypes.c_size_t(len(frame)))

    def let_go(self, port: MemoryPort) -> None:
        """Close the line after the host has closed its port."""
        if port is self._port:
            self._library.memory_open(ctypes.c_bool(False))
            self._port = None


class MemoryPort:
    """Replaces `SerialPort`."""

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

    def restart(self, baud: int) -> None:
        self._check()
        self._come.clear()

    def wake(self) -> None:
        self._news.set()

    def close(self, drain_s: float = 0.0) -> None:
        self._board.let_go(self)

    def arrive(self, piece: bytes) -> None:
        """Take bytes from the board."""
        self._come += piece
        self._news.set()

    def lose(self) -> None:
        """Fail all further calls: the board was unplugged."""
        self._gone = True
        self._news.set()

    def _check(self) -> None:
        if self._gone:
            raise PortError('the port is gone')
