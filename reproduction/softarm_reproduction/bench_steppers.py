"""
Run the stepper driver against the board's firmware: coil latency and lost commands.

The board runs in a separate process, in simavr if that is installed. Its I2C bus and serial line
take as long as on a real board; the delay of a USB adapter is not included.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from softarm_reproduction.bench_rows import BenchRow
from softarm_reproduction.stepper_endurance import endure
from softarm_reproduction.stepper_hosts import (
    PERIOD_S,
    ByHand,
    Driven,
    cable_rig,
    homed_driver,
    running_board,
    steppers_of,
)

if TYPE_CHECKING:
    from softarm_ros.emulation.firmware_board import FirmwareBoard
    from softarm_ros.rigs.schema import Rig

SHORT_S, LONG_S = 5.0, 60.0
_JUMPS_PER_REPEAT = 8
_JUMP = 4  # microsteps, so few that the motor rests again before the next jump
_CYCLES_PER_JUMP = 7
_TRIES = 4


def missing() -> str:
    """Return why the board cannot be measured here, or '' if it can."""
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
    Return p50 and p99 from command to coil from 8 jumps per repeat; no rows without a board.

    The reference writes frames by hand, as fast as pyserial accepts them. Times are NaN if a busy
    machine delays commands beyond the board's watchdog in every attempt.
    """
    if missing():
        return []
    count = _JUMPS_PER_REPEAT * repeats
    rig = cable_rig()
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
    """Yield the ramp's share of the latency and the results of sustained commands as text."""
    config = steppers_of(cable_rig())
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


def _driven_latencies(rig: Rig, count: int) -> tuple[list[float], str]:
    with running_board() as (port, board), homed_driver(rig, port) as driver:
        return _latencies(Driven(rig, driver), board, count), board.emulator.split()[0]


def _bare_latencies(rig: Rig, count: int) -> tuple[list[float], str]:
    with running_board() as (port, board), contextlib.closing(ByHand(rig, port)) as host:
        return _latencies(host, board, count), board.emulator.split()[0]


def _tried(measure: Callable[[], tuple[list[float], str]]) -> tuple[list[float], str]:
    """Measure, and repeat if a busy machine let the board's watchdog stop the motors."""
    for _ in range(_TRIES):
        with contextlib.suppress(InterruptedError):
            return measure()
    return [math.nan], 'interrupted'


def _latencies(host: Driven | ByHand, board: FirmwareBoard, count: int) -> list[float]:
    """Return the times [s] from sending a small jump to the first coil motion it causes."""
    targets = [0] * len(host.motors)
    due = time.monotonic()

    def cycle() -> float:
        nonlocal due
        due += PERIOD_S
        time.sleep(max(due - time.monotonic(), 0.0))
        began = time.monotonic()
        host.send(targets)
        board.poll()
        return began

    for _ in range(50):  # until the board is armed and the motors rest
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


def main() -> None:
    """Measure and print the rows and lines."""
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
