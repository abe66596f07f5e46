"""An emulated board: its firmware in an emulator, behind a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.firmware_build import (
    Board,
    Emulator,
    FirmwareBinaries,
    FirmwareBuildError,
    built,
)
from softarm_ros.leftovers import temporary_folder

_READY_S = 20.0
_ANSWER_S = 5.0
_END_S = 3.0
# Line faults and their numbers of arguments.
_LINE_FAULTS = {'unplug': 0, 'plug': 0, 'delay': 1, 'loss': 1, 'noise': 1}
_SHIELD_ORDERS = ('off', 'on', 'power')
_SHIELDS = 3
# Just below that of the nodes: an emulator that lags never sleeps, and would starve them.
_PRIORITY = 19
LINE_HELP = 'unplug, plug, delay MS, loss P, noise P, reset'
STEPPER_HELP = f'{LINE_HELP}, brownout, shield N off|on|power'


class FirmwareBoard:
    """
    Runs the firmware of a board in its own process, which ends with this one.

    The process serves the port in real time, independently of this one; `poll` collects the
    changes of its motors or outputs. Times are monotonic.

    Parameters
    ----------
    board
        steppers or valves.
    emulator
        auto: the board's own binary, if its compiler and emulator are installed, else its core
        compiled for this computer.
    reset_on_open
        Whether opening the port resets the board, as with a Mega; steppers only.

    Attributes
    ----------
    shafts
        (time [s], six angles in sixteenths of a full step) of every change not yet taken.
    outputs
        (time [s], mask of open outputs) of every change not yet taken.
    resets
        How often the board has restarted.

    """

    def __init__(
        self, board: Board, emulator: Emulator = 'auto', *, reset_on_open: bool = False
    ) -> None:
        self.board = board
        self._emulator: Emulator = emulator
        self._reset_on_open = reset_on_open
        self._binaries: FirmwareBinaries | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._control: socket.socket | None = None
        self._said = b''
        self._status: dict[str, tuple[int, ...]] = {}
        self._statuses = 0
        self.shafts: deque[tuple[float, tuple[int, ...]]] = deque()
        self.outputs: deque[tuple[float, int]] = deque()
        self.resets = 0

    @property
    def emulator(self) -> str:
        """Emulator of the firmware and the reason for it; '' before `start`."""
        binaries = self._binaries
        return f'{binaries.emulator} ({binaries.why})' if binaries is not None else ''

    def start(self, port: Path) -> None:
        """
        Build the firmware if necessary, and run it behind the link `port`.

        Raises
        ------
        EmulationError
            If it cannot be built or does not start.

        """
        try:
            self._binaries = built(self.board, self._emulator)
        except FirmwareBuildError as error:
            raise EmulationError(str(error)) from error
        # The path of a socket must be short, so it gets its own folder.
        self._folder = temporary_folder()
        control = Path(self._folder.name) / 'control'
        with _real_time():
            self._process = subprocess.Popen(
                [*self._command(self._binaries), '--port', str(port), '--control', str(control)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the drivers: they stop the arm first
            )
        try:
            self._wait_until_ready(self._process)
            self._control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._control.connect(str(control))
            self._control.setblocking(False)
        except OSError as error:
            self.close()
            raise EmulationError(f'emulated {self.board}: {error}') from error
        except EmulationError:
            self.close()
            raise

    def close(self) -> None:
        """End the board; may be called twice."""
        control, self._control = self._control, None
        if control is not None:
            control.close()
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def poll(self) -> None:
        """
        Collect everything that has happened since the last call, without waiting.

        Raises
        ------
        EmulationError
            If the board has ended by itself.

        """
        process, control = self._process, self._control
        if process is None or control is None:
            raise EmulationError(f'emulated {self.board}: not started')
        self._listen(process)
        while True:
            try:
                line = control.recv(1024).decode()
            except BlockingIOError:
                return
            except OSError as error:
                raise EmulationError(f'emulated {self.board}: {error}') from error
            if not line:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_END_S)
                raise EmulationError(
                    f'emulated {self.board}: {self.emulator} has ended ({process.poll()}): '
                    f'{self._last_words(process)}'
                )
            self._take(line.split())

    def order(self, line: str) -> None:
        """Send a line to the program that runs the board (firmware/emulation/README.md)."""
        if self._control is None:
            raise EmulationError(f'emulated {self.board}: not started')
        try:
            self._control.send(line.encode())
        except OSError as error:
            raise EmulationError(f'emulated {self.board}: {error}') from error

    def ask_status(self) -> None:
        """Request the counts; a later call of `poll` puts them into `status`."""
        self.order('status')

    @property
    def status(self) -> dict[str, tuple[int, ...]]:
        """Latest counts: shafts, moved, jumps, transactions, failed, late [us]; or writes."""
        return self._status

    def wait_for_status(self) -> dict[str, tuple[int, ...]]:
        """Return the present counts; waits for the answer, so only for tests and reports."""
        self.poll()  # make room for the answer: unread messages block new ones
        known, deadline = self._statuses, time.monotonic() + _ANSWER_S
        self.ask_status()
        while self._statuses == known:
            if time.monotonic() > deadline:
                raise EmulationError(f'emulated {self.board}: no status')
            time.sleep(0.001)
            self.poll()
        return self._status

    def inject(self, fault: str) -> str:
        """
        Inject or repair a fault; return what was done.

        Raises
        ------
        ValueError
            If there is no such fault; the message lists the known ones.

        """
        order = self._order_of(fault.split())
        if order is None:
            known = STEPPER_HELP if self.board == 'steppers' else LINE_HELP
            raise ValueError(f'the {self.board} have no fault {fault!r}; known: {known}')
        self.order(order)
        return f'{self.board}: {fault}'

    def _order_of(self, words: list[str]) -> str | None:
        if not words:
            return None
        name, numbers = words[0], words[1:]
        if name in _LINE_FAULTS:
            good = len(numbers) == _LINE_FAULTS[name] and all(map(_is_amount, numbers))
            if good and name in ('loss', 'noise'):
                good = float(numbers[0]) <= 1.0
            return f'line {" ".join(words)}' if good else None
        if words == ['reset'] or (words == ['brownout'] and self.board == 'steppers'):
            return name
        if name == 'shield' and self.board == 'steppers' and len(words) == 3:
            good = words[1] in map(str, range(_SHIELDS)) and words[2] in _SHIELD_ORDERS
            return ' '.join(words) if good else None
        return None

    def _command(self, binaries: FirmwareBinaries) -> list[str]:
        command = [str(binaries.runner)]
        if binaries.elf is None:
            command += ['--kind', self.board]
        else:
            command += ['--elf', str(binaries.elf)]
        if self.board == 'steppers':
            command += ['--reset-on-open', str(int(self._reset_on_open))]
        return command

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        out = process.stdout.fileno()
        os.set_blocking(out, False)
        deadline = time.monotonic() + _READY_S
        while b'ready\n' not in self._said:
            left = deadline - time.monotonic()
            if left <= 0.0 or not select.select([out], [], [], left)[0]:
                raise EmulationError(f'emulated {self.board}: not ready within {_READY_S:g} s')
            known = len(self._said)
            self._listen(process)
            if len(self._said) == known:  # the pipe is closed
                raise EmulationError(
                    f'emulated {self.board}: {self.emulator} does not start: '
                    f'{self._last_words(process)}'
                )

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Read the program's output: a full pipe would stop the program."""
        if process.stdout is not None:
            with contextlib.suppress(BlockingIOError):
                self._said = (self._said + os.read(process.stdout.fileno(), 4096))[-4096:]

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        self._listen(process)
        lines = [line for line in self._said.decode(errors='replace').splitlines() if line]
        return lines[-1] if lines and lines[-1] != 'ready' else ''

    def _take(self, words: list[str]) -> None:
        if words[0] == 'C':
            self.shafts.append((int(words[1]) * 1e-6, tuple(map(int, words[2:]))))
        elif words[0] == 'V':
            self.outputs.append((int(words[1]) * 1e-6, int(words[2], 16)))
        elif words[0] == 'R':
            self.resets += 1
        elif words[0] == 'S':
            self._status = _counts(words[2:])
            self._statuses += 1
            if 'shafts' in self._status:  # a slow reader may have missed a change
                self.shafts.append((int(words[1]) * 1e-6, self._status['shafts']))


@contextlib.contextmanager
def _real_time() -> Iterator[None]:
    """
    Start child processes in this block under SCHED_FIFO, if permitted (Linux).

    A real board has its own processor: other programs here must not delay the emulated one.
    """
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except (AttributeError, OSError):
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def _is_amount(text: str) -> bool:
    try:
        return 0.0 <= float(text) < 1e6
    except ValueError:
        return False


def _counts(words: list[str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    name = ''
    for word in words:
        if word.isalpha():
            name = word
            found[name] = ()
        else:
            found[name] += (int(word),)
    return found
