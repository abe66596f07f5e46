"""Run the stepper board's firmware and command it by the driver or by handwritten frames."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from softarm_ros.drivers.cable_steppers import CableSteppers
    from softarm_ros.drivers.messages import HelloReply, Type
    from softarm_ros.drivers.stepper_config import SteppersConfig
    from softarm_ros.emulation.firmware_board import FirmwareBoard
    from softarm_ros.rigs.schema import Rig


RIG = 'cable_arm'
PERIOD_S = 0.01  # between commands
READY_S = 10.0


@contextlib.contextmanager
def running_board() -> Iterator[tuple[str, FirmwareBoard]]:
    """Yield the port and the object of a running board."""
    from softarm_ros.emulation.firmware_board import FirmwareBoard

    board = FirmwareBoard('steppers')
    with tempfile.TemporaryDirectory(prefix='softarm-bench-') as folder:
        port = Path(folder) / 'steppers'
        board.start(port)
        try:
            yield str(port), board
        finally:
            board.close()


@contextlib.contextmanager
def homed_driver(rig: Rig, port: str) -> Iterator[CableSteppers]:
    """Yield a connected and homed driver."""
    from softarm_ros.drivers.cable_steppers import CableSteppers
    from softarm_ros.drivers.problems import DriverError
    from softarm_ros.rigs.arms.cable_devices import cable_limits

    config = steppers_of(rig).model_copy(update={'port': port})
    driver = CableSteppers(config, cable_limits(rig.actuator_limits()))
    driver.start()
    try:
        end, why = time.monotonic() + READY_S, ''
        while why := driver.not_ready():
            if time.monotonic() > end:
                raise InterruptedError(why)
            if driver.problems():
                driver.reset()
            with contextlib.suppress(DriverError):
                driver.home()
            time.sleep(PERIOD_S)
        yield driver
        problems = driver.problems()
        if problems:
            raise InterruptedError('; '.join(map(str, problems)))
    finally:
        driver.close()


class Driven:
    """Host that commands the board through the driver, like the control loop."""

    def __init__(self, rig: Rig, driver: CableSteppers) -> None:
        config = steppers_of(rig)
        self.motors = tuple(motor.motor for motor in config.motors)
        self.steps = np.array([motor.step_m for motor in config.motors])
        self._driver = driver

    def send(self, microsteps: list[int]) -> None:
        """Command the contractions for targets in microsteps, one for each motor of the rig."""
        self._driver.follow(np.array(microsteps) * self.steps)


class ByHand:
    """Host that writes frames directly and does not evaluate the replies."""

    def __init__(self, rig: Rig, port: str) -> None:
        import serial

        from softarm_ros.drivers import messages
        from softarm_ros.drivers.messages import HelloReply, Type
        from softarm_ros.drivers.stepper_config import board_limits
        from softarm_ros.rigs.arms.cable_devices import cable_limits

        config = steppers_of(rig)
        self.motors = tuple(motor.motor for motor in config.motors)
        self._line = serial.Serial(port, config.baud, timeout=0)
        self._sequence = self._boot_id = 0
        self._line.write(b'\0')
        self._write(Type.HELLO, messages.hello())
        reply = self._wait(HelloReply)
        self._boot_id = reply.boot_id
        self._write(Type.RESET)
        for order in board_limits(config, cable_limits(rig.actuator_limits())):
            self._write(Type.STEPPER_CONFIG, order.payload())
            time.sleep(PERIOD_S)
        self._write(Type.ZERO, messages.zero(0x3F, [0] * messages.MOTORS))
        time.sleep(0.5)
        self._write(Type.ARM)

    def send(self, microsteps: list[int]) -> None:
        """Send targets in microsteps, one for each motor of the rig."""
        from softarm_ros.drivers import messages

        targets = [0] * messages.MOTORS
        for motor, target in zip(self.motors, microsteps):
            targets[motor] = target
        self._write(messages.Type.TARGETS, messages.targets(targets))
        self._line.read(4096)

    def close(self) -> None:
        """Close the serial port."""
        self._line.close()

    def _write(self, frame_type: Type, payload: bytes = b'') -> None:
        from softarm_ros.drivers import messages
        from softarm_ros.drivers.frames import Frame

        frame = Frame(frame_type, self._sequence, payload)
        self._line.write(messages.encode_for(frame, self._boot_id))
        self._sequence = (self._sequence + 1) & 0xFF

    def _wait(self, kind: type[HelloReply]) -> HelloReply:
        from softarm_ros.drivers import messages
        from softarm_ros.drivers.frames import FrameReceiver

        receiver, end = FrameReceiver(), time.monotonic() + READY_S
        while time.monotonic() < end:
            for frame in receiver.feed(self._line.read(4096)):
                message = messages.parse(frame)
                if isinstance(message, kind):
                    return message
            time.sleep(0.001)
        raise InterruptedError('the board does not answer')


def cable_rig() -> Rig:
    """Return the rig with the measured board."""
    from softarm_ros.rigs.arms.cable_driven import CableArm
    from softarm_ros.rigs.loader import load_rig_of

    return load_rig_of(CableArm, RIG)


def steppers_of(rig: Rig) -> SteppersConfig:
    """Return the stepper configuration of a rig."""
    assert rig.devices is not None
    return rig.devices.steppers
