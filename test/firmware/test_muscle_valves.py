"""The driver of the muscles against valve boards: STM32 binary in QEMU, core compiled here.

What the driver believes is held against what the outputs did.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from boards import Bench, running
from firmware_build import build, need

from softarm_ros.drivers.muscle_valves import MuscleValves
from softarm_ros.drivers.valve_config import ValveBoardConfig, ValveDriveConfig

# The emulators run against the wall clock; a busy machine may hold them up.
pytestmark = pytest.mark.flaky(reruns=4)

T = np.linspace(0.0, 24.0, 25)
DRIVE = ValveDriveConfig.model_validate(
    {
        'deflating': {'times_s': T, 'lengths_m': 0.05 + 0.06 * np.exp(-T / 10.0)},
        'inflating': {
            'times_s': 0.4 * T,
            'lengths_m': 0.145 - (0.145 - 0.05) * np.exp(-0.4 * T / 9.6 * np.log(95.0 / 35.0)),
        },
        'max_pull_N': 22.7,
        'supply_push_N': 13.5,
        'shortest_pulse_s': 0.02,
        'longest_pulse_s': 0.2,
        'guard_s': 0.03,
    }
)
MUSCLES = 30
REST = np.full(MUSCLES, 0.1)
# Not in order, as a laboratory may have wired them.
PAIRS = tuple((7 * i + 3) % MUSCLES for i in range(MUSCLES))
NAMES = tuple(f'muscle_{i}' for i in range(MUSCLES))


def no_load(lengths):
    return np.zeros(len(lengths))


def command(kind: str) -> list[str | Path]:
    if kind == 'native':
        return [build('native_runner'), '--kind', 'valves']
    need('arm-none-eabi-gcc', 'qemu-system-arm')
    return [build('qemu_runner'), '--elf', build('valves.elf')]


def wait(what: Callable[[], bool], bench: Bench, seconds: float = 5.0) -> None:
    """Wait until something is so; what the outputs do is read meanwhile."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f'not within {seconds} s'
        bench.read()
        time.sleep(0.002)
    bench.read()


@contextmanager
def driven(tmp_path: Path, kind: str, **changes: float) -> Iterator[tuple[MuscleValves, Bench]]:
    """A driver that is connected to a board, not homed."""
    with running(tmp_path, *command(kind)) as (port, bench):
        config = ValveBoardConfig(port=str(port), pairs=PAIRS, **changes)
        driver = MuscleValves(config, DRIVE, NAMES, REST, no_load)
        driver.start()
        try:
            wait(lambda: driver.values()['connected'] == 'true', bench)
            wait(lambda: driver.reading() is not None, bench)
            yield driver, bench
        finally:
            driver.close()


@pytest.fixture(params=['native', 'qemu'])
def board(request, tmp_path):
    with driven(tmp_path, request.param) as (driver, bench):
        yield driver, bench


def follow(driver: MuscleValves, bench: Bench, target: Callable[[float], np.ndarray], s: float):
    """Command at 20 Hz; returns when the last command was given."""
    start = time.monotonic()
    for k in range(round(20 * s)):
        assert driver.follow(target(0.05 * k)) is None
        while time.monotonic() < start + 0.05 * (k + 1):
            bench.read()
            time.sleep(0.002)
    return time.monotonic()


def quiet(driver: MuscleValves, bench: Bench) -> None:
    """Hold, and wait until all is closed and the driver knows it."""
    driver.hold()
    wait(lambda: bench.valves[-1][1] == 0 and driver._book.pending is None, bench)
    bench.read()


def openings(bench: Bench) -> list[tuple[int, bool, float, float]]:
    """Every opening as muscle, inflate, start and duration [s], in order of their starts."""
    found, since = [], {}
    for when, mask in bench.valves:
        for output in range(60):
            is_open = bool(mask >> output & 1)
            if is_open and output not in since:
                since[output] = when
            elif not is_open and output in since:
                start = since.pop(output)
                found.append((PAIRS.index(output // 2), output % 2 == 0, start, when - start))
    assert not since
    return sorted(found, key=lambda opening: opening[2])


def lengths_after(bench: Bench) -> np.ndarray:
    """Where the tables say the outputs have led, without load, from rest on."""
    table = DRIVE.table()
    lengths = REST.copy()
    for muscle, inflate, _, duration in openings(bench):
        curve = table.inflating if inflate else table.deflating
        lengths[muscle] = float(curve(curve.inverse(lengths[muscle]) + duration))
    return lengths


def check_interlock(bench: Bench) -> None:
    """Never both valves of a muscle, and the guard time between two openings of one."""
    assert not any(mask >> 2 * p & 3 == 3 for _, mask in bench.valves for p in range(30))
    gaps = []
    for muscle in range(MUSCLES):
        mine = [(start, duration) for m, _, start, duration in openings(bench) if m == muscle]
        gaps += [second[0] - sum(first) for first, second in pairwise(mine)]
    assert median(gaps) >= DRIVE.guard_s - 1e-3
    assert min(gaps) >= DRIVE.guard_s - 0.02  # single ones: stamps of a busy machine


def wave(t: float) -> np.ndarray:
    """Lengths that keep all muscles busy both ways."""
    phase = np.arange(MUSCLES)
    return REST + 0.0015 * (np.sin(1.5 * t + phase) - np.sin(phase))


def test_pulses_counted_are_pulses_seen(board, request):
    driver, bench = board
    driver.home()
    follow(driver, bench, wave, 5.0)
    quiet(driver, bench)
    seen = openings(bench)
    values = driver.values()
    assert len(seen) == int(values['pulses']) > 300
    assert {inflate for _, inflate, _, _ in seen} == {True, False}
    assert {muscle for muscle, _, _, _ in seen} == set(range(MUSCLES))
    check_interlock(bench)
    error = driver.reading().position - lengths_after(bench)
    # A millisecond moves a muscle by 5 um at most; what was cut at the end by some.
    assert np.abs(error).max() < 2e-4
    assert np.median(np.abs(error)) < 3e-5
