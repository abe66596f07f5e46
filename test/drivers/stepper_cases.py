"""A stepper driver at an emulated board, and a line that is only memory."""

import contextlib
import threading
import time

import numpy as np
import pytest

from softarm_ros.drivers.cable_steppers import CableSteppers
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


def until(condition, timeout=10.0, what=lambda: ''):
    """Wait for a condition."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.001)


class Rig:
    """A driver, the board at the other end of its line, and what its shafts did."""

    def __init__(self, folder, emulator, **fields):
        self.port = folder / 'steppers'
        self.board = FirmwareBoard('steppers', emulator)
        self.board.start(self.port)
        self.driver = CableSteppers(config(self.port, **fields), limits())
        self.turned_at = -np.inf  # last time that a shaft moved
        self._stop = threading.Event()
        self._orders = threading.Lock()
        self._watch = threading.Thread(target=self._look, daemon=True)
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
            time.sleep(0.001)

    def inject(self, fault):
        with self._orders:
            self.board.inject(fault)
        return time.monotonic()

    def bench(self):
        with self._orders:
            return self.board.wait_for_status()

    def ready(self, timeout=10.0):
        until(lambda: not self.driver.not_ready(), timeout, self.driver.not_ready)

    def says(self, text, timeout=10.0):
        until(lambda: text in self.driver.not_ready(), timeout, self.driver.not_ready)

    def home(self):
        """Connect and home."""
        self.driver.start()
        self.says('not homed')
        self.driver.home()
        self.ready()

    def drive(self, command, duration):
        """Follow `command(t)` for a time; return the refusal, if any."""
        begin = time.monotonic()
        while (t := time.monotonic() - begin) < duration:
            refusal = self.driver.follow(command(t))
            if refusal:
                return refusal
            time.sleep(0.01)
        return None

    def arrive(self, contraction, timeout=10.0):
        """Follow until the motors are where they shall be."""
        target = np.full(MOTORS, float(contraction))

        def there():
            refusal = self.driver.follow(target)
            assert refusal is None, refusal
            time.sleep(0.01)
            reading = self.driver.reading()
            return np.all(np.abs(reading.position - target) <= 0.51 * STEP_M)

        until(there, timeout, self.driver.values)

    def close(self):
        self.driver.close()
        self._stop.set()
        self._watch.join()
        self.board.close()


@contextlib.contextmanager
def rig_at(folder, emulator, **fields):
    """Run a driver at an emulated board; skip where that cannot be built."""
    try:
        built('steppers', emulator)
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    try:
        rig = Rig(folder, emulator, **fields)
    except EmulationError as error:
        pytest.fail(str(error))
    try:
        yield rig
    finally:
        rig.close()


class MemoryPort:
    """In place of a serial port: what the test says the board has sent, in pieces."""

    def __init__(self):
        self.pieces = []
        self.written = bytearray()

    def read(self, until_s):
        return self.pieces.pop(0) if self.pieces else b''

    def write(self, frame):
        self.written += frame
        return True
