"""The driver of the muscles with valve boards: its estimates against the outputs.

In simulated time against the core compiled here; the STM32 binary runs in QEMU on the computer's
clock.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import valve_drive
from boards import Bench, in_memory, running
from firmware_made import build, need
from manual_clock import ManualClock
from memory_board import MemoryBoard

from softarm_ros.drivers.command_check import CATCH_UP
from softarm_ros.drivers.muscle_valves import MuscleValves
from softarm_ros.drivers.problems import DriverError
from softarm_ros.drivers.serial_port import SerialPort
from softarm_ros.drivers.valve_config import ValveBoardConfig, ValveDriveConfig

DRIVE = ValveDriveConfig.model_validate(valve_drive.DRIVE)
MUSCLES = 30
REST = np.full(MUSCLES, 0.1)
# Not in order, as a laboratory may have wired them.
PAIRS = tuple((7 * i + 3) % MUSCLES for i in range(MUSCLES))
FAST = np.full(MUSCLES, 1.0)  # [m/s]: the valves alone limit the speed
NAMES = tuple(f'muscle_{i}' for i in range(MUSCLES))


def no_load(lengths):
    return np.zeros(len(lengths))


def wait(what: Callable[[], bool], bench: Bench, seconds: float = 5.0) -> None:
    """Wait for a condition; read the outputs meanwhile."""

    def so() -> bool:
        bench.read()
        return what()

    bench.clock.until(so, seconds)
    bench.read()


@contextmanager
def driven(
    tmp_path: Path,
    kind: str,
    drive: ValveDriveConfig = DRIVE,
    max_speed: np.ndarray = FAST,
    **changes: float,
) -> Iterator[tuple[MuscleValves, Bench]]:
    """Yield a driver that is connected to a board but not homed, and the bench."""
    with ExitStack() as stack:
        if kind == 'memory':
            _, bench = stack.enter_context(in_memory('valves'))
            open_port, port = bench.board.open_port, 'memory'
        else:
            need('arm-none-eabi-gcc', 'qemu-system-arm')
            command = (build('qemu_runner'), '--elf', build('valves.elf'))
            port, bench = stack.enter_context(running(tmp_path, *command))
            open_port = SerialPort
        config = ValveBoardConfig(port=str(port), pairs=PAIRS, **changes)
        driver = MuscleValves(
            config, drive, NAMES, REST, max_speed, no_load, bench.clock, open_port
        )
        stack.callback(driver.close)
        driver.start()
        wait(lambda: driver.values()['connected'] == 'true', bench)
        wait(lambda: 'board_state' in driver.values(), bench)
        assert driver.reading() is None  # the lengths of the muscles are unknown
        yield driver, bench
        assert not bench.clock.failures


IN_QEMU = pytest.param('qemu', marks=pytest.mark.wall_clock)


@pytest.fixture
def board(tmp_path):
    with driven(tmp_path, 'memory') as (driver, bench):
        yield driver, bench


def follow(driver: MuscleValves, bench: Bench, target: Callable[[float], np.ndarray], s: float):
    """Command at 20 Hz for `s` seconds; return the time at the end [s]."""
    start = bench.clock.now_s()
    for k in range(round(20 * s)):
        assert driver.follow(target(0.05 * k)) is None
        while bench.clock.now_s() < start + 0.05 * (k + 1):
            bench.read()
            bench.clock.sleep(0.002)
    return bench.clock.now_s()


def open_now(bench: Bench) -> int:
    """Return the mask of outputs that are open."""
    return bench.valves[-1][1] if bench.valves else 0


def quiet(driver: MuscleValves, bench: Bench) -> None:
    """Hold, and wait until all valves are closed and the driver knows it."""
    driver.hold()
    wait(lambda: open_now(bench) == 0 and driver._book.pending is None, bench)
    bench.read()


def openings(bench: Bench) -> list[tuple[int, bool, float, float]]:
    """Return every opening as muscle, inflate, start and duration [s], ordered by start."""
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
    """Return the lengths to which the outputs have led by the tables, without load, from rest."""
    table = DRIVE.table()
    lengths = REST.copy()
    for muscle, inflate, _, duration in openings(bench):
        curve = table.inflating if inflate else table.deflating
        lengths[muscle] = float(curve(curve.inverse(lengths[muscle]) + duration))
    return lengths


def check_interlock(bench: Bench) -> None:
    """Check that valves of a muscle never open together, and the guard time between openings."""
    assert not any(mask >> 2 * p & 3 == 3 for _, mask in bench.valves for p in range(30))
    gaps = []
    for muscle in range(MUSCLES):
        mine = [(start, duration) for m, _, start, duration in openings(bench) if m == muscle]
        gaps += [second[0] - sum(first) for first, second in pairwise(mine)]
    assert median(gaps) >= DRIVE.guard_s - 1e-3
    # Single stamps may be late on a busy machine.
    assert min(gaps) >= DRIVE.guard_s - (1.1e-3 if bench.exact else 0.02)


def check_count(driver: MuscleValves, bench: Bench) -> None:
    """Check the driver's lengths against the outputs; a millisecond of a valve is 5 um."""
    error = np.abs(driver.reading().position - lengths_after(bench))
    if bench.exact:
        assert np.median(error) < 5e-5
    # Stamps of QEMU are late on a busy computer.
    assert error.max() < (1e-4 if bench.exact else 1e-3)


def wave(t: float) -> np.ndarray:
    """Return lengths that make all muscles fill and empty."""
    phase = np.arange(MUSCLES)
    return REST + 0.0015 * (np.sin(1.5 * t + phase) - np.sin(phase))


@pytest.mark.parametrize('kind', ['memory', IN_QEMU])
def test_counted_pulses_match_the_outputs_of_the_board(tmp_path, kind):
    with driven(tmp_path, kind) as (driver, bench):
        pulses_are_seen(driver, bench)


def pulses_are_seen(driver: MuscleValves, bench: Bench) -> None:
    """Move all muscles and compare the driver's count with the outputs."""
    driver.home()
    follow(driver, bench, wave, 3.0)
    quiet(driver, bench)
    seen = openings(bench)
    values = driver.values()
    assert len(seen) == int(values['pulses']) > 200
    assert {inflate for _, inflate, _, _ in seen} == {True, False}
    assert {muscle for muscle, _, _, _ in seen} == set(range(MUSCLES))
    check_interlock(bench)
    check_count(driver, bench)
    if bench.exact:
        durations_ms = np.array([1e3 * duration for *_, duration in seen])
        assert np.abs(durations_ms - np.rint(durations_ms)).max() < 0.5  # whole ticks of the board


def test_delayed_line_changes_no_pulse(tmp_path):
    with driven(tmp_path, 'memory') as (driver, bench):
        bench.order('line delay 50')
        bench.clock.sleep(0.2)
        driver.home()
        follow(driver, bench, wave, 2.0)
        quiet(driver, bench)
        assert driver.problems() == ()
        assert len(openings(bench)) == int(driver.values()['pulses']) > 60
        check_interlock(bench)
        check_count(driver, bench)


def test_lost_frames_do_not_affect_the_length_estimate(tmp_path):
    with driven(tmp_path, 'memory') as (driver, bench):
        driver.home()
        bench.order('line loss 0.0004')  # of bytes: a twentieth of the batches
        bench.order('line noise 0.0002')
        follow(driver, bench, wave, 3.0)
        bench.order('line loss 0')
        bench.order('line noise 0')
        wait(lambda: driver._book.pending is None, bench)
        quiet(driver, bench)
        values = driver.values()
        assert driver.problems() == ()
        assert int(values['batches_resent']) > 0
        assert int(values['board_frames_corrupt']) > 0
        assert len(openings(bench)) == int(values['pulses']) > 150
        check_interlock(bench)
        check_count(driver, bench)


def test_hold_closes_all_valves_at_once_and_corrects_for_cut_pulses(board):
    driver, bench = board
    driver.home()
    for _ in range(3):
        before = len(bench.valves)
        driver.follow(REST - 0.008)
        wait(lambda n=before: any(mask for _, mask in bench.valves[n:]), bench)
        bench.clock.sleep(0.08)  # within pulses of 200 ms
        driver.hold()
        told = bench.clock.now_s()
        quiet(driver, bench)
        assert bench.valves[-1][0] - told < 0.2
        driver.follow(REST + 0.008)
        wait(lambda: open_now(bench) != 0, bench)
        quiet(driver, bench)
    assert int(driver.values()['pulses_cut']) >= 4 * MUSCLES
    wait(lambda: driver.not_ready() == '', bench)
    check_interlock(bench)
    check_count(driver, bench)


@pytest.mark.parametrize('kind', ['memory', IN_QEMU])
def test_unplugging_closes_all_valves_and_nothing_moves_before_a_command(tmp_path, kind):
    with driven(tmp_path, kind) as (driver, bench):
        driver.home()
        follow(driver, bench, wave, 1.0)
        target = REST - 0.006
        driver.follow(target)
        wait(lambda: open_now(bench) != 0, bench)
        bench.order('line unplug')
        pulled = bench.clock.now_s()
        wait(lambda: driver.problems() != (), bench)
        problem = driver.problems()[0]
        assert problem.source == 'link'
        assert problem.since_s - pulled < 0.3
        assert 'link' in driver.follow(target)
        wait(lambda: open_now(bench) == 0, bench)
        assert bench.valves[-1][0] - pulled < 0.25
        with pytest.raises(DriverError, match='not connected'):
            driver.home()

        bench.order('line plug')
        wait(lambda: driver.values()['connected'] == 'true', bench)
        closed = len(bench.valves)
        assert 'link' in driver.not_ready()
        assert driver.follow(target) is not None
        driver.reset()
        wait(lambda: driver.not_ready() == '', bench)
        bench.clock.sleep(0.3)
        bench.read()
        assert not any(mask for _, mask in bench.valves[closed:])
        # The board kept its power and reported its pulses: the lengths are still known.
        assert driver.values()['homed'] == 'true'
        check_count(driver, bench)
        follow(driver, bench, lambda _: REST, 1.5)
        quiet(driver, bench)
        assert len(bench.valves) > closed
        check_count(driver, bench)
        check_interlock(bench)


def test_silent_line_is_reported_and_pulses_under_way_are_settled(tmp_path):
    with driven(tmp_path, 'memory') as (driver, bench):
        driver.home()
        follow(driver, bench, wave, 0.5)
        bench.order('line loss 1')
        silent = bench.clock.now_s()
        wait(lambda: driver.problems() != (), bench)
        first = driver.problems()[0]
        assert first.since_s - silent < 0.3
        wait(lambda: open_now(bench) == 0, bench)
        assert bench.valves[-1][0] - silent < 0.25
        bench.order('line loss 0')
        wait(lambda: driver.values()['connected'] == 'true', bench)
        driver.reset()
        assert driver.not_ready() == ''
        check_count(driver, bench)


def test_restarted_board_must_be_homed_again(board):
    driver, bench = board
    driver.home()
    follow(driver, bench, wave, 0.5)
    bench.order('reset')
    wait(lambda: driver.problems() != (), bench)
    wait(lambda: open_now(bench) == 0, bench)
    wait(lambda: driver.values()['connected'] == 'true', bench)
    closed = len(bench.valves)
    assert 'restarted' in driver.not_ready()
    driver.reset()
    assert 'not homed' in driver.not_ready()
    assert 'not homed' in driver.follow(REST)
    assert driver.reading() is None
    driver.home()
    assert np.array_equal(driver.reading().position, REST)
    assert driver.not_ready() == ''
    assert np.array_equal(driver._lengths.estimate, REST)
    bench.clock.sleep(0.2)
    bench.read()
    assert not any(mask for _, mask in bench.valves[closed:])
    assert driver.follow(REST - 0.002) is None
    wait(lambda: any(mask for _, mask in bench.valves[closed:]), bench)


def test_leaks_of_homed_muscles_are_estimated_and_compensated(tmp_path):
    leak_s = 100.0
    drive = DRIVE.model_copy(update={'leak_time_s': leak_s})
    with driven(tmp_path, 'memory', drive) as (driver, bench):
        driver.home()
        since = bench.clock.now_s()
        bench.clock.sleep(2.0)
        bench.read()
        gone = driver.reading().stamp_s - since
        full, low = DRIVE.full_length_m, DRIVE.empty_length_m
        share = (2.0 * full - low) / (2.0 * REST - low)  # leak rate relative to that of a full bag
        leaked = (full - REST) * (1.0 - np.exp(-share * gone / leak_s))
        np.testing.assert_allclose(driver.reading().position - REST, leaked, rtol=0.05)
        assert openings(bench) == []
        follow(driver, bench, lambda _: REST, 4.0)
        assert np.abs(driver.reading().position - REST).max() < 1.5e-4
        quiet(driver, bench)
        found = openings(bench)
        assert {muscle for muscle, *_ in found} == set(range(MUSCLES))
        assert not any(inflate for _, inflate, *_ in found)


def test_closing_the_driver_closes_the_valves(board):
    driver, bench = board
    driver.home()
    driver.follow(REST - 0.008)
    wait(lambda: open_now(bench) != 0, bench)
    driver.close()
    told = bench.clock.now_s()
    wait(lambda: open_now(bench) == 0, bench)
    assert bench.valves[-1][0] - told < 0.15
    driver.close()


@pytest.mark.parametrize('way', [-0.02, 0.02])
def test_distant_command_is_approached_at_the_largest_rate(tmp_path, way):
    speed = np.full(MUSCLES, 1e-3)  # the valves alone: 4 to 6 times as fast
    with driven(tmp_path, 'memory', max_speed=speed) as (driver, bench):
        driver.home()
        for _ in range(2):  # also after a hold, from where the muscles were left
            bench.clock.sleep(2.0)
            start = driver.reading().position
            follow(driver, bench, lambda _: REST + way, 2.0)
            quiet(driver, bench)
            moved = np.sign(way) * (driver.reading().position - start)
            assert moved.min() > 0.9 * CATCH_UP * 2e-3
            assert moved.max() < 1.05 * CATCH_UP * 2e-3
            check_count(driver, bench)
        check_interlock(bench)


def test_command_within_the_largest_rate_is_not_delayed_by_it(tmp_path):
    def slow(t: float) -> np.ndarray:
        return REST + 2e-3 * t

    reached = []
    for speed in (FAST, np.full(MUSCLES, 2e-3)):
        with driven(tmp_path, 'memory', max_speed=speed) as (driver, bench):
            driver.home()
            follow(driver, bench, slow, 2.0)
            quiet(driver, bench)
            reached.append(driver.reading().position)
    np.testing.assert_allclose(*reached, atol=5e-5)


def test_invalid_commands_and_home_in_motion_are_refused_with_the_reason(tmp_path):
    with driven(tmp_path, 'memory') as (driver, bench):
        assert 'not homed' in driver.follow(REST)
        driver.home()
        for wrong, message in (
            (REST[:-1], r'shape \(29,\); expected \(30,\)'),
            (np.where(np.arange(30) == 4, np.nan, REST), 'muscle_4 = nan'),
            (np.where(np.arange(30) == 29, 0.14, REST), r'muscle_29 = 0\.14 m outside'),
        ):
            with pytest.raises(ValueError, match=message):
                driver.follow(wrong)
        driver.follow(REST - 0.008)
        with pytest.raises(DriverError, match='hold them first'):
            driver.home()
        wait(lambda: open_now(bench) != 0, bench)
        driver.hold()
        with pytest.raises(DriverError, match='valves are open'):
            driver.home()


def test_commands_never_wait_for_the_line(tmp_path):
    with driven(tmp_path, 'memory') as (driver, bench):
        bench.order('line delay 50')
        driver.home()
        for k in range(100):
            began = bench.clock.now_s()
            driver.follow(wave(0.01 * k))
            driver.reading()
            driver.not_ready()
            assert bench.clock.now_s() == began
            bench.read()
            bench.clock.sleep(0.01)


class Shifted:
    """A clock of this computer that can be shifted against the clock of a board."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock, self.shift_s = clock, 0.0

    def now_s(self) -> float:
        return self._clock.now_s() + self.shift_s

    def __getattr__(self, name: str) -> object:
        return getattr(self._clock, name)


@pytest.mark.parametrize(('off_s', 'same'), [(0.5, True), (5.0, False), (60.0, False)])
def test_exchanged_board_with_equal_boot_id_is_detected_by_its_clock(off_s, same):
    """Boot ids are counts of starts; only the clock tells such boards apart."""
    time = ManualClock()
    board, clock = MemoryBoard('valves', time), Shifted(time)
    board.start()
    config = ValveBoardConfig(port='memory', pairs=PAIRS)
    driver = MuscleValves(config, DRIVE, NAMES, REST, FAST, no_load, clock, board.open_port)

    def says(text: str) -> None:
        time.until(lambda: text in driver.not_ready(), 10.0)

    driver.start()
    says('not homed')
    driver.home()
    assert driver.reading() is not None
    board.inject('unplug')
    says('link')
    clock.shift_s = off_s
    board.inject('plug')
    time.until(lambda: driver.values()['connected'] == 'true', 10.0)
    if same:
        driver.reset()
        time.until(lambda: driver.not_ready() == '', 10.0)
        assert driver.reading() is not None
    else:
        says(f'another board is at its port: its clock differs by {-off_s:+.1f}')
        assert driver.reading() is None
        driver.reset()
        says('not homed')
    driver.close()
