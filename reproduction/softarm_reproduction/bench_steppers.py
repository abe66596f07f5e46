"""
The stepper driver against the board's own binary: how late coils move, and what is lost.

The board runs in a process of its own, in simavr where that is installed. Its I2C bus and serial
line take the time they take on a board; a USB adapter's would come on top.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from softarm_reproduction.bench_rows import BenchRow

if TYPE_CHECKING:
    from softarm_ros.drivers.cable_steppers import CableSteppers
    from softarm_ros.drivers.frames import ReceiveCounters
    from softarm_ros.drivers.messages import Counters, HelloReply, Type
    from softarm_ros.drivers.serial_counters import SerialCounts
    from softarm_ros.drivers.stepper_config import SteppersConfig
    from softarm_ros.emulation.firmware_board import FirmwareBoard
    from softarm_ros.rigs.schema import Rig

RIG = 'cable_arm'
SHORT_S, LONG_S = 10.0, 60.0
_PERIOD_S = 0.01  # of the commands
_JUMPS_PER_REPEAT = 8
_JUMP = 4  # microsteps: at rest again before the next
_CYCLES_PER_JUMP = 7
_READY_S = 10.0
_USE = 0.5  # of the greatest speed, in the sustained run
_SWING_HZ = 0.27
_STATES_HZ = 100.0
_SETTLE_S = 1.0
_TRIES = 4


def missing() -> str:
    """Return why the board cannot be measured here, '' if it can."""
    if importlib.util.find_spec('serial') is None:
        return 'pyserial is not installed'
    from softarm_ros.emulation.firmware_build import FirmwareBuildError, built

    try:
        built('steppers')
    except FirmwareBuildError as error:
        return str(error)
    return ''


def rows(repeats: int) -> list[BenchRow]:
    """
    Return p50 and p99 from command to coil, from 8 jumps for each repeat; none without a board.

    The reference are frames written by hand, as fast as pyserial takes them. NaN where a busy
    machine held commands up for longer than the board waits, again and again.
    """
    if missing():
        return []
    count = _JUMPS_PER_REPEAT * repeats
    rig = _rig()
    ours, name = _tried(lambda: _driven_latencies(rig, count))
    bare, _ = _tried(lambda: _bare_latencies(rig, count))
    name = f'steppers ({name}): command -> first coil write'
    return [
        BenchRow(
            f'{name}, p{percent}',
            1e6 * float(np.percentile(ours, percent)),
            1e6 * float(np.percentile(bare, percent)),
            'pyserial, frames by hand',
        )
        for percent in (50, 99)
    ]


def lines(long: bool) -> Iterator[str]:
    """Yield what the ramp takes of the latency, and what became of sustained commands."""
    config = _config(_rig())
    first_s = math.sqrt(abs(config.motors[0].step_m) / config.acceleration_m_s2)
    yield (
        f"steppers: {1e3 * first_s:.1f} ms of the latency are the ramp's: at "
        f'{config.acceleration_m_s2:g} m/s^2 a motor at rest is half a microstep away then'
    )
    for tries_left in reversed(range(_TRIES)):
        try:
            yield from endure(LONG_S if long else SHORT_S).lines()
            return
        except InterruptedError as error:
            again = ', again' if tries_left else ''
            yield f'steppers at 100 Hz: interrupted, {error}{again}'


@dataclass(frozen=True)
class Endurance:
    """
    Counts of commands sent at 100 Hz to six moving motors.

    Attributes
    ----------
    emulator :
        What ran the firmware.
    duration_s, counted_s :
        Of the commands; between the two readings of the counters.
    commands, refused :
        Given to the driver, and not taken by it.
    frames_sent, frames_accepted :
        By the driver's and by the board's count, pings and questions included.
    frames_lost :
        Gaps the board saw in the sequence, damaged and stale frames.
    frames_refused :
        Not followed by the board.
    states, states_lost, states_skipped :
        State frames that arrived, were missing or damaged, or were never sent as the line was
        busy.
    steps_commanded, steps_executed :
        Positions at the end: as commanded, and as counted on the coils [microsteps].
    late_p99_s, late_max_s :
        By how much the driver's cycles began late.
    """

    emulator: str
    duration_s: float
    counted_s: float
    commands: int
    refused: int
    frames_sent: int
    frames_accepted: int
    frames_lost: int
    frames_refused: int
    states: int
    states_lost: int
    states_skipped: int
    steps_commanded: tuple[int, ...]
    steps_executed: tuple[int, ...]
    late_p99_s: float
    late_max_s: float

    @property
    def pace(self) -> float:
        """Speed of the emulated board; one below 1 had not enough of the processor."""
        sent = self.states + self.states_lost + self.states_skipped
        return sent / _STATES_HZ / self.counted_s

    @property
    def lossless(self) -> bool:
        """Whether every command and every state arrived, and every step was made."""
        return (
            self.refused == self.frames_lost == self.frames_refused == self.states_lost == 0
            # One may be under way when either is counted; the board counts what it misses.
            and abs(self.frames_sent - self.frames_accepted) <= 1
            and self.steps_commanded == self.steps_executed
        )

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        yield (
            f'steppers at 100 Hz for {self.duration_s:.1f} s ({self.emulator}): '
            f'{"nothing lost" if self.lossless else "LOSS"}; pace {self.pace:.2f}'
        )
        yield (
            f'  commands {self.commands}, refused {self.refused}; frames sent {self.frames_sent}, '
            f'accepted {self.frames_accepted}, lost {self.frames_lost}, '
            f'refused {self.frames_refused}'
        )
        yield (
            f'  state frames {self.states}, lost {self.states_lost}, skipped by the board '
            f'{self.states_skipped}; cycles late by {1e3 * self.late_p99_s:.1f} ms (p99), '
            f'{1e3 * self.late_max_s:.1f} ms (most)'
        )
        yield (
            f'  steps commanded {" ".join(map(str, self.steps_commanded))}, '
            f'on the coils {" ".join(map(str, self.steps_executed))}'
        )


def endure(duration_s: float) -> Endurance:
    """
    Swing all cables for some time and count.

    Raises
    ------
    InterruptedError
        If the driver stops for a problem.

    """
    rig = _rig()
    limits = rig.actuator_limits()
    swing = _USE * limits.max_speed / (2.0 * np.pi * _SWING_HZ)
    phase = np.arange(len(swing)) * 2.0 * np.pi / len(swing)
    with _board() as (port, board), _driver(rig, port) as driver:
        driven = _Driven(rig, driver)
        before = _settled_counts(driver)
        counting = time.monotonic()
        began = due = time.monotonic()
        commands = refused = 0
        while (now := time.monotonic()) < began + duration_s:
            angle = 2.0 * np.pi * _SWING_HZ * (now - began)
            ease = min(1.0, (now - began) / 2.0)
            command = ease * swing * (np.sin(angle + phase) - np.sin(phase))
            command = np.clip(command, limits.position_min, limits.position_max)
            commands += 1
            refused += driver.follow(command) is not None
            board.poll()
            due += _PERIOD_S
            time.sleep(max(due - time.monotonic(), 0.0))
        elapsed = time.monotonic() - began
        while time.monotonic() < began + elapsed + _SETTLE_S:
            driver.follow(command)
            board.poll()
            time.sleep(_PERIOD_S)
        driver.hold()
        after = _settled_counts(driver)
        counted_s = time.monotonic() - counting
        status = board.wait_for_status()
        wanted = np.rint(command / driven.steps).astype(int)
        had, has = before.board, after.board
        assert had is not None and has is not None
        skipped = has.skipped_states - had.skipped_states
        return Endurance(
            emulator=board.emulator,
            duration_s=elapsed,
            counted_s=counted_s,
            commands=commands,
            refused=refused,
            frames_sent=after.sent - before.sent,
            frames_accepted=has.accepted - had.accepted,
            frames_lost=_damage(has) - _damage(had),
            frames_refused=has.refused - had.refused,
            states=after.received.frames - before.received.frames,
            states_lost=_lost(after.received) - _lost(before.received) - skipped,
            states_skipped=skipped,
            steps_commanded=tuple(map(int, wanted)),
            steps_executed=tuple(status['shafts'][m] for m in driven.motors),
            late_p99_s=after.cycle_delay.p99_s,
            late_max_s=after.cycle_delay.max_s,
        )


# -- the board and the two ways to it


@contextlib.contextmanager
def _board() -> Iterator[tuple[str, FirmwareBoard]]:
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
def _driver(rig: Rig, port: str) -> Iterator[CableSteppers]:
    """A driver that is connected and homed."""
    from softarm_ros.drivers.cable_steppers import CableSteppers
    from softarm_ros.drivers.problems import DriverError
    from softarm_ros.rigs.arms.cable_devices import cable_limits

    config = _config(rig).model_copy(update={'port': port})
    driver = CableSteppers(config, cable_limits(rig.actuator_limits()))
    driver.start()
    try:
        end, why = time.monotonic() + _READY_S, ''
        while why := driver.not_ready():
            if time.monotonic() > end:
                raise InterruptedError(why)
            if driver.problems():
                driver.reset()
            with contextlib.suppress(DriverError):
                driver.home()
            time.sleep(_PERIOD_S)
        yield driver
        problems = driver.problems()
        if problems:
            raise InterruptedError('; '.join(map(str, problems)))
    finally:
        driver.close()


class _Driven:
    """Through the driver, as the loop does."""

    def __init__(self, rig: Rig, driver: CableSteppers) -> None:
        config = _config(rig)
        self.motors = tuple(motor.motor for motor in config.motors)
        self.steps = np.array([motor.step_m for motor in config.motors])
        self._driver = driver

    def send(self, microsteps: list[int]) -> None:
        """Command contractions that are these targets, one for each motor of the rig."""
        self._driver.follow(np.array(microsteps) * self.steps)


class _ByHand:
    """Frames written by hand: nothing else is done, read or watched."""

    def __init__(self, rig: Rig, port: str) -> None:
        import serial

        from softarm_ros.drivers import messages
        from softarm_ros.drivers.messages import HelloReply, Type
        from softarm_ros.drivers.stepper_config import board_limits
        from softarm_ros.rigs.arms.cable_devices import cable_limits

        config = _config(rig)
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
            time.sleep(_PERIOD_S)
        self._write(Type.ZERO, messages.zero(0x3F, [0] * messages.MOTORS))
        time.sleep(0.5)
        self._write(Type.ARM)

    def send(self, microsteps: list[int]) -> None:
        """Send targets, one for each motor of the rig."""
        from softarm_ros.drivers import messages

        targets = [0] * messages.MOTORS
        for motor, target in zip(self.motors, microsteps):
            targets[motor] = target
        self._write(messages.Type.TARGETS, messages.targets(targets))
        self._line.read(4096)

    def close(self) -> None:
        """Let the port go."""
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

        receiver, end = FrameReceiver(), time.monotonic() + _READY_S
        while time.monotonic() < end:
            for frame in receiver.feed(self._line.read(4096)):
                message = messages.parse(frame)
                if isinstance(message, kind):
                    return message
            time.sleep(0.001)
        raise InterruptedError('the board does not answer')


def _driven_latencies(rig: Rig, count: int) -> tuple[list[float], str]:
    with _board() as (port, board), _driver(rig, port) as driver:
        return _latencies(_Driven(rig, driver), board, count), board.emulator.split()[0]


def _bare_latencies(rig: Rig, count: int) -> tuple[list[float], str]:
    with _board() as (port, board), contextlib.closing(_ByHand(rig, port)) as host:
        return _latencies(host, board, count), board.emulator.split()[0]


def _tried(measure: Callable[[], tuple[list[float], str]]) -> tuple[list[float], str]:
    """Measure again where a busy machine let the board's watchdog stop the motors."""
    for _ in range(_TRIES):
        with contextlib.suppress(InterruptedError):
            return measure()
    return [math.nan], 'interrupted'


def _latencies(host: _Driven | _ByHand, board: FirmwareBoard, count: int) -> list[float]:
    """Return the time from sending a small jump to the first coil that moves for it [s]."""
    targets = [0] * len(host.motors)
    due = time.monotonic()

    def cycle() -> float:
        nonlocal due
        due += _PERIOD_S
        time.sleep(max(due - time.monotonic(), 0.0))
        began = time.monotonic()
        host.send(targets)
        board.poll()
        return began

    for _ in range(50):  # until it is armed and stands
        cycle()
    found = []
    for k in range(count):
        which = k % len(targets)
        board.shafts.clear()
        targets[which] = 0 if targets[which] else _JUMP
        began = cycle()
        for _ in range(_CYCLES_PER_JUMP):
            cycle()
        moved = [stamp for stamp, shafts in board.shafts if stamp >= began]
        if moved:
            found.append(moved[0] - began)
    if len(found) < count // 2:
        raise InterruptedError(f'coils moved for {len(found)} of {count} jumps')
    return found


def _settled_counts(driver: CableSteppers) -> SerialCounts:
    """Return the counts at a moment when the board has just reported its own."""
    end = time.monotonic() + _READY_S
    known = driver.counts().board
    while time.monotonic() < end:
        counts = driver.counts()
        if counts.board is not known:
            return counts
        time.sleep(0.0005)
    raise InterruptedError('the board does not report its counters')


def _damage(counts: Counters) -> int:
    return counts.lost + counts.corrupt + counts.malformed + counts.stale


def _lost(counts: ReceiveCounters) -> int:
    return counts.lost + counts.corrupt + counts.malformed


def _rig() -> Rig:
    from softarm_ros.rigs.arms.cable_driven import CableArm
    from softarm_ros.rigs.loader import load_rig_of

    return load_rig_of(CableArm, RIG)


def _config(rig: Rig) -> SteppersConfig:
    assert rig.devices is not None
    return rig.devices.steppers


def main() -> None:
    """Measure and print."""
    why = missing()
    if why:
        print(f'not measured: {why}')
        return
    for row in rows(15):
        print(
            f'{row.name:60} {row.compiled_us / 1e3:7.2f} ms   '
            f'{row.reference_us / 1e3:7.2f} ms  {row.reference}'
        )
    for line in lines(long=False):
        print(line)


if __name__ == '__main__':
    main()
