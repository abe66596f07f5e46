"""Valve board and drive: interlock, delays, cut pulses, estimated lengths."""

from itertools import pairwise

import numpy as np
import pytest
from valve_drive import DRIVE, END, FULL, LOW, PULL, PUSH, SKELETON, THROTTLE

from softarm_ros.drivers.valve_config import ValveDriveConfig
from softarm_ros.plant.pam_arm.config import RelayConfig
from softarm_ros.plant.pam_arm.muscle_kernels import hang_muscles
from softarm_ros.plant.pam_arm.relays import Relays
from softarm_ros.plant.pam_arm.valves import MuscleDrive, ValveBoard

RELAYS = {
    'shortest_delay_s': 0.005,
    'longest_delay_s': 0.015,
    'closing_spread_s': 1e-3,
    'jitter_s': 5e-4,
    'link_delay_s': 0.02,
}


def drive_config(**changes):
    return ValveDriveConfig.model_validate(DRIVE | changes)


def board(muscles=4, seed=0, **changes):
    relays = RelayConfig.model_validate(RELAYS | changes)
    return ValveBoard(drive_config(), Relays(muscles, relays, np.random.default_rng(seed)))


def no_load(lengths):
    return np.zeros(len(lengths))


class Hung:
    """Simulated muscles under weights, with given openings of valves; gas is known exactly."""

    def __init__(self, free, weights, leak=0.0):
        self.gas = SKELETON * free * (free - LOW)
        self.length, self.weights = free.copy(), np.asarray(weights, dtype=float)
        self.limits = np.array([FULL, PULL, PUSH, leak, 0.0, 1e4])
        self.now = 0.0
        self.pass_time(0.0)

    def pass_time(self, until, open_s=None, close_s=None, h=1e-3):
        m = self.gas.size
        none = np.full((m, 2), -1.0)
        hang_muscles(
            self.gas, self.length.copy(), self.length, self.weights,
            none if open_s is None else open_s, none if close_s is None else close_s,
            np.full((m, 2), THROTTLE), np.full(m, SKELETON), self.limits, np.empty(m),
            np.empty(m), self.now, h, max(round((until - self.now) / h), 1),
        )  # fmt: skip
        self.now = until

    @property
    def free(self):
        """Lengths that the gas would give the muscles without the weights."""
        return 0.5 * (LOW + np.sqrt(LOW**2 + 4.0 * self.gas / SKELETON))


def check_log(log, drive, relays):
    """Assert that every pulse respects length, delays and the interlock of its muscle."""
    by_muscle = {}
    for pulse in log:
        by_muscle.setdefault(pulse.muscle, []).append(pulse)
        for time in (pulse.on_s, pulse.off_s):
            assert abs(1e3 * time - round(1e3 * time)) < 1e-6
        assert pulse.off_s - pulse.on_s <= drive.longest_pulse_s + 1e-9
        slack = 3.0 * relays.jitter_s + 1e-12
        late = pulse.open_s - pulse.on_s
        assert relays.shortest_delay_s - slack <= late <= relays.longest_delay_s + slack
        if pulse.close_s > pulse.open_s:
            unlike = pulse.close_s - pulse.off_s - late
            assert abs(unlike) <= 2.0 * relays.closing_spread_s + 2.0 * slack
    for pulses in by_muscle.values():
        for first, second in pairwise(pulses):
            assert second.on_s >= first.off_s + drive.guard_s - 1e-9
            assert second.open_s > first.close_s


def test_pulse_for_a_busy_muscle_is_refused():
    valves = board()
    pulse = valves.fire(0.0, 1, True, 25)
    assert pulse.on_s == pytest.approx(0.02) and pulse.off_s == pytest.approx(0.045)
    assert list(valves.busy(0.05)) == [False, True, False, False]
    with pytest.raises(ValueError, match=r'muscle 1: busy until 0\.075 s.*interlock'):
        valves.fire(0.054, 1, False, 25)
    assert not valves.busy(0.055).any()
    valves.fire(0.055, 1, False, 25)
    check_log(valves.log, valves.drive, valves.relays.config)


@pytest.mark.parametrize('ticks', [0, 19, 201])
def test_pulses_too_short_or_too_long_are_refused(ticks):
    with pytest.raises(ValueError, match=f'muscle 0: pulse of {0.001 * ticks:g} s'):
        board().fire(0.0, 0, True, ticks)


def test_each_valve_has_its_own_delay_determined_by_the_seed():
    first, second = board(seed=3), board(seed=3)
    assert np.array_equal(first.relays.delays_s, second.relays.delays_s)
    assert len(np.unique(first.relays.delays_s)) == first.relays.delays_s.size
    assert first.fire(0.0, 0, True, 30) == second.fire(0.0, 0, True, 30)
    assert not np.array_equal(first.relays.delays_s, board(seed=4).relays.delays_s)


def test_cut_shortens_a_running_pulse_and_discards_a_waiting_one():
    valves = board()
    running = valves.fire(0.0, 0, True, 150)
    waiting = valves.fire(0.1, 1, False, 100)
    short, never = valves.cut(0.095)
    assert short.off_s == pytest.approx(0.115) and short.on_s == running.on_s
    assert short.close_s - short.off_s == pytest.approx(running.close_s - running.off_s)
    assert never.off_s == never.on_s == waiting.on_s and never.close_s <= never.open_s
    assert valves.relays.close_s[0, 1] == short.close_s and valves.log == [short, never]
    assert valves.cut(0.2) == []


def test_length_estimate_follows_the_table_and_reaches_the_target():
    """One muscle without spread of delays: integrate the flow over the pulses and compare."""
    valves = board(1, closing_spread_s=0.0, jitter_s=0.0)
    drive = MuscleDrive(drive_config(), valves, np.array([0.1]), no_load)
    table = drive.lengths.valves
    length, done = 0.1, 0
    for k in range(400):
        now = 0.05 * k
        target = 0.1 + 0.004 * np.sin(0.5 * now)
        drive.command(now, np.array([target]), 0.05)
        for pulse in valves.log[done:]:
            opened = pulse.close_s - pulse.open_s
            curve = table.inflating if pulse.inflate else table.deflating
            length = float(curve(curve.inverse(length) + opened))
        done = len(valves.log)
        if k > 5:
            assert abs(drive.estimate[0] - target) < 1e-3
        assert drive.estimate[0] == pytest.approx(length, abs=1e-9)
    assert done > 50 and {p.inflate for p in valves.log} == {True, False}
    check_log(valves.log, valves.drive, valves.relays.config)


WEIGHTS = np.array([-8.0, 0.0, 3.0, 6.0])  # no film is taut under these


def counted_under_weights(load_of):
    """Empty and fill muscles under weights; return the largest errors of the estimate [m]."""
    valves = board(4, closing_spread_s=0.0, jitter_s=0.0)
    start = np.full(4, 0.097)
    drive = MuscleDrive(drive_config(), valves, start, load_of)
    hung, off, done = Hung(start, WEIGHTS), [], 0
    for k in range(1600):
        now = 0.05 * k
        drive.command(now, np.full(4, 0.085 + 0.012 * np.cos(0.16 * now)), 0.05)
        for pulse in valves.log[done:]:
            at = pulse.muscle, int(pulse.inflate)
            valves.relays.open_s[at], valves.relays.close_s[at] = pulse.open_s, pulse.close_s
        done = len(valves.log)
        hung.pass_time(now + 0.05, valves.relays.open_s, valves.relays.close_s)
        if not valves.busy(now + 0.05).any():
            off.append(drive.estimate - hung.free)
    assert {p.inflate for p in valves.log} == {True, False} and len(off) > 50
    return np.abs(off).max(axis=0)


def test_estimate_under_load_is_accurate_only_with_known_loads():
    """Two laps over 24 mm under all weights; without loads the estimate drifts by millimetres."""
    off = counted_under_weights(lambda _: WEIGHTS)
    assert off.max() < 2e-4
    blind = counted_under_weights(lambda _: np.zeros(4))
    assert blind[1] == off[1] and blind[[0, 2, 3]].min() > 1e-3


def test_valve_tables_of_these_tests_match_their_throttle():
    table = drive_config().table()
    for free in (0.06, 0.09, 0.12):
        by_hand = -THROTTLE * (free - LOW) / (2.0 * free - LOW)
        found = float(table.deflating.slope(table.deflating.inverse([free]))[0])
        assert found == pytest.approx(by_hand, rel=2e-3)
        by_hand = THROTTLE * (END - free) / (2.0 * free - LOW)
        found = float(table.inflating.slope(table.inflating.inverse([free]))[0])
        assert found == pytest.approx(by_hand, rel=2e-3)


def test_change_shorter_than_most_of_a_pulse_is_postponed():
    valves = board(1)
    drive = MuscleDrive(drive_config(), valves, np.array([0.1]), no_load)
    slowest = 0.02 * THROTTLE * 0.05 / 0.15  # what the shortest pulse takes off
    for k in range(20):
        drive.command(0.05 * k, np.array([0.1 - 0.7 * slowest]), 0.05)
    assert valves.log == []
    for k in range(20, 60):
        drive.command(0.05 * k, np.array([0.1 - 0.8 * slowest]), 0.05)
    assert len(valves.log) == 1  # the overshoot is not corrected


def test_pulling_load_slows_emptying_and_speeds_up_filling():
    pulls = np.array([0.0, 10.0, -10.0])
    lengths = np.full(3, 0.1)
    for target, order in ((0.0996, (1, 0, 2)), (0.1004, (2, 0, 1))):
        valves = board(3)
        drive = MuscleDrive(drive_config(), valves, lengths, lambda _: pulls)
        drive.command(0.0, np.full(3, target), 0.05)
        opened = {p.muscle: p.off_s - p.on_s for p in valves.log}
        assert len(opened) == 3
        longest, middle, shortest = (opened[i] for i in order)
        assert longest >= middle > shortest


def test_hold_corrects_the_estimate_for_the_cut_pulse():
    valves = board(2)
    drive = MuscleDrive(drive_config(), valves, np.full(2, 0.1), no_load)
    drive.command(0.0, np.array([0.092, 0.1]), 0.05)
    full = drive.estimate.copy()
    drive.hold(0.08)  # relays go off at 0.1 s, 80 ms after they went on
    curve = drive.lengths.valves.deflating
    assert drive.estimate[0] == pytest.approx(float(curve(curve.inverse(0.1) + 0.08)), abs=1e-9)
    assert drive.estimate[0] > full[0] and drive.estimate[1] == 0.1
    assert np.all(drive.velocity == 0.0)


@pytest.mark.parametrize('seed', range(4))
def test_interlock_holds_for_random_commands(seed):
    rng = np.random.default_rng(seed)
    valves = board(6, seed)
    drive = MuscleDrive(drive_config(), valves, np.full(6, 0.1), lambda q: 60.0 * (q - 0.1) / 0.01)
    now = 0.0
    for _ in range(300):
        drive.command(now, rng.uniform(0.088, 0.108, 6), 0.05)
        now += rng.choice([0.05, 0.013, 0.2])
        if rng.uniform() < 0.1:
            drive.hold(now)
    assert len(valves.log) > 300
    check_log(valves.log, valves.drive, valves.relays.config)


def test_invalid_tables_pulses_and_delays_are_refused():
    wrong = DRIVE['deflating'] | {'lengths_m': DRIVE['deflating']['lengths_m'][::-1]}
    with pytest.raises(ValueError, match='deflating'):
        drive_config(deflating=wrong)
    with pytest.raises(ValueError, match='expected pairs'):
        drive_config(deflating={'times_s': [0.0, 1.0], 'lengths_m': [0.1, 0.09, 0.08]})
    with pytest.raises(ValueError, match='shortest_pulse_s'):
        drive_config(shortest_pulse_s=0.3)
    with pytest.raises(ValueError, match='before its relay'):
        RelayConfig.model_validate(RELAYS | {'jitter_s': 2e-3})


def test_reading_during_a_pulse_is_the_length_reached_so_far():
    valves = board(2)
    drive = MuscleDrive(drive_config(), valves, np.full(2, 0.1), no_load)
    drive.command(0.0, np.array([0.092, 0.1]), 0.05)
    curve = drive.lengths.valves.deflating
    (pulse,) = valves.log
    assert pulse.on_s == pytest.approx(0.02) and pulse.off_s == pytest.approx(0.22)
    for now, opened in ((0.0, 0.0), (0.02, 0.0), (0.06, 0.04), (0.22, 0.2), (0.3, 0.2)):
        there = float(curve(curve.inverse(0.1) + opened))
        assert drive.reading(now) == pytest.approx([there, 0.1], abs=1e-9)
    drive.hold(0.08)  # relays go off at 0.1 s
    assert drive.reading(0.06)[0] == pytest.approx(float(curve(curve.inverse(0.1) + 0.04)))
    assert drive.reading(0.2)[0] == drive.estimate[0]


def test_readings_change_no_faster_than_the_gas_flows():
    """Regression: readings jumped by a whole pulse when it began."""
    valves = board(1)
    drive = MuscleDrive(drive_config(), valves, np.array([0.1]), no_load)
    now, read = 0.0, []
    for k in range(2000):
        now = 0.005 * k
        if k % 10 == 0:
            drive.command(now, np.array([0.1 + 0.004 * np.sin(0.5 * now)]), 0.05)
        read.append(drive.reading(now)[0])
    fastest = max(
        abs(table.slope(table.inverse([drive.config.range_m[0], 0.108]))).max()
        for table in (drive.lengths.valves.deflating, drive.lengths.valves.inflating)
    )
    assert np.ptp(read) > 0.005
    assert np.max(np.abs(np.diff(read))) <= 0.005 * fastest * 1.01


def test_leaks_are_estimated_and_compensated():
    """A pulling muscle leaks faster; the pump removes what leaks in."""
    leak_s, pulls = 300.0, np.array([0.0, 5.0])
    valves = ValveBoard(
        drive_config(leak_time_s=leak_s),
        Relays(2, RelayConfig.model_validate(RELAYS), np.random.default_rng(0)),
    )
    drive = MuscleDrive(valves.drive, valves, np.full(2, 0.09), lambda _: pulls)
    drive.command(0.0, np.full(2, 0.09), 0.05)
    assert valves.log == []
    drive.lengths.leak(2.0)
    hung = Hung(np.full(2, 0.09), pulls, leak=(2.0 * FULL - LOW) / leak_s)
    hung.pass_time(2.0)
    leaked = hung.free - 0.09
    assert leaked[1] > 1.15 * leaked[0]
    assert drive.estimate - 0.09 == pytest.approx(leaked, rel=0.01)
    for k in range(400):
        drive.command(2.0 + 0.05 * k, np.full(2, 0.09), 0.05)
    assert abs(drive.estimate - 0.09).max() < 1.2e-4
    won = [sum(p.muscle == i and not p.inflate for p in valves.log) for i in range(2)]
    assert 5 < won[0] < won[1] and not any(p.inflate for p in valves.log)


def test_estimate_is_constant_without_a_leak_time():
    drive = MuscleDrive(drive_config(), board(1), np.array([0.09]), no_load)
    drive.command(0.0, np.array([0.09]), 0.05)
    drive.command(100.0, np.array([0.09]), 0.05)
    assert drive.estimate[0] == 0.09


def test_pulse_fired_before_the_last_one_has_closed_shortens_neither():
    """The board accepts the next pulse while the valve of the last one is still open."""
    valves = board(1, closing_spread_s=0.0, jitter_s=0.0, shortest_delay_s=0.014)
    first = valves.fire(0.0, 0, True, 20)
    second = valves.fire(0.05, 0, True, 20)
    assert first.close_s > 0.05  # fired before it has closed
    relays, step, total = valves.relays, 1e-3, 0.0
    for now in np.arange(0.05, 0.2, step):
        relays.catch_up(now)
        total += max(min(relays.close_s[0, 1], now + step) - max(relays.open_s[0, 1], now), 0.0)
    rest = first.close_s - 0.05
    assert total == pytest.approx(rest + second.close_s - second.open_s, abs=1e-9)
