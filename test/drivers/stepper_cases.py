"""A stepper driver with an emulated board, and a serial port in memory."""

import contextlib
import threading

import numpy as np
import pytest
from manual_clock import ManualClock, WallClock
from memory_board import MemoryBoard

from softarm_ros.drivers.cable_steppers import CableSteppers
from softarm_ros.drivers.serial_port import SerialPort
from softarm_ros.drivers.stepper_config import CableLimits, SteppersConfig
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.firmware_board import FirmwareBoard
from softarm_ros.emulation.firmware_build import FirmwareBuildError, built

MOTORS = 6
STEP_M = 2 * np.pi * 0.015 / 3200


def config(port='nowhere', count=MOTORS, **fields):
    motors = [
        {'name': f'cable_{i}', 'motor': i, 'pulley_radius_m': 0.015, 'reversed': i == 2}
        for i in range(count)
    ]
    return SteppersConfig(
        **{'port': str(port), 'acceleration_m_s2': 0.5, 'motors': motors, **fields}
    )


def limits(count=MOTORS, speed=0.02):
    one = np.ones(count)
    return CableLimits(-0.045 * one, 0.055 * one, speed * one, 0.1 * one)


class Rig:
    """A driver, the board at the other end of its line, and the motion of the board's shafts."""

    def __init__(self, board, clock, open_port, port='memory', **fields):
        self.clock, self.board = clock, board
        self.driver = CableSteppers(config(port, **fields), limits(), clock, open_port)
        self.turned_at = -np.inf  # last time a shaft moved
        self._stop = clock.event()
        self._orders = threading.Lock()
        self._watch = clock.task(self._look, 'watch')
        self._watch.start()

    def _look(self):
        shafts = (0,) * MOTORS
        while not self._stop.is_set():
            with self._orders:
                self.board.poll()
                while self.board.shafts:
                    stamp, now = self.board.shafts.popleft()
                    if now != shafts:
                        self.turned_at, shafts = stamp, now
            self.clock.sleep(0.001)

    def inject(self, fault):
        self.board.inject(fault)
        return self.clock.now_s()

    def bench(self):
        if isinstance(self.board, MemoryBoard):
            return self.board.wait_for_status()
        with self._orders:
            return self.board.wait_for_status()

    def until(self, condition, timeout=10.0):
        """Wait for a condition; fail with the driver's status."""
        try:
            return self.clock.until(condition, timeout)
        except AssertionError as error:
            raise AssertionError(f'{self.driver.not_ready()}; {self.driver.values()}') from error

    def ready(self, timeout=10.0):
        self.until(lambda: not self.driver.not_ready(), timeout)

    def says(self, text, timeout=10.0):
        self.until(lambda: text in self.driver.not_ready(), timeout)

    def home(self):
        """Connect and home."""
        self.driver.start()
        self.says('not homed')
        self.driver.home()
        self.ready()

    def drive(self, command, duration):
        """Follow `command(t)` for a time; return the refusal, if any."""
        begin = self.clock.now_s()
        while (t := self.clock.now_s() - begin) < duration:
            refusal = self.driver.follow(command(t))
            if refusal:
                return refusal
            self.clock.sleep(0.01)
        return None

    def arrive(self, contraction, timeout=10.0):
        """Follow a contraction until all motors have reached it."""
        target = np.full(MOTORS, float(contraction))

        def there():
            refusal = self.driver.follow(target)
            assert refusal is None, refusal
            self.clock.sleep(0.01)
            reading = self.driver.reading()
            return np.all(np.abs(reading.position - target) <= 0.51 * STEP_M)

        self.until(there, timeout)

    def close(self):
        self.driver.close()
        self._stop.set()
        self._watch.join()
        self.board.close()
        assert not self.clock.failures


def rig_in_memory(elf=None, **fields):
    """Return a driver with the firmware's core, or its AVR binary, in simulated time."""
    clock = ManualClock()
    board = MemoryBoard('steppers', clock, elf=elf)
    board.start()
    return Rig(board, clock, board.open_port, **fields)


@contextlib.contextmanager
def rig_at(folder, emulator, **fields):
    """Run a driver with a board in an emulator, behind a port; skip if it cannot be built."""
    try:
        built('steppers', emulator)
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    try:
        board = FirmwareBoard('steppers', emulator)
        board.start(folder / 'steppers')
    except EmulationError as error:
        pytest.fail(str(error))
    rig = Rig(board, WallClock(), SerialPort, folder / 'steppers', **fields)
    try:
        yield rig
    finally:
        rig.close()


class MemoryPort:
    """Replaces a serial port; the test provides the board's bytes in `pieces`."""

    def __init__(self):
        self.pieces = []
        self.written = bytearray()

    def read(self, until_s):
        return self.pieces.pop(0) if self.pieces else b''

    def write(self, frame):
        self.written += frame
        return True
