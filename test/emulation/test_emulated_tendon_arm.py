"""Winches of the fishbone arm with an emulated DAQ and the rig's driver, in simulated time."""

import numpy as np
import pytest

pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from memory_arm import MemoryArm, until

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig

RIG = load_rig('fishbone_arm')
REST = np.ones(8)
TARGET = np.array([5.0, 1.0, 1.0, 4.0, 1.0, 3.0, 2.0, 1.0])
# Gain and zero of the simulated load cells at 5 N: three standard deviations of 1 % and 0.1 N.
CELL_N = 0.35
REPORTED_S = 0.3


class Bench:
    """The emulated arm and its driver."""

    def __init__(self, folder, rig=RIG):
        self.memory = MemoryArm(rig, folder)
        self.clock, self.arm = self.memory.clock, self.memory.arm
        self.driver, _ = self.memory.driver()
        self.driver.start()

    def close(self):
        self.driver.close()
        self.memory.close()

    def tensions(self):
        return self.arm.plant.drives.true_tension()

    def until(self, condition, within_s=5.0, work=lambda: None):
        return until(self.clock, self.driver, condition, within_s, work)

    def ready(self):
        self.until(lambda: self.driver.not_ready() == '' and self.driver.reading() is not None)

    def follow(self, target=TARGET, seconds=1.5):
        end = self.clock.now_s() + seconds
        self.until(lambda: self.clock.now_s() >= end, work=lambda: self.driver.follow(target))

    def said(self):
        return '; '.join(map(str, self.driver.problems()))


@pytest.fixture
def bench(tmp_path):
    running = Bench(tmp_path)
    yield running
    running.close()


def test_tensions_have_their_rest_values_before_any_command(bench):
    bench.ready()
    bench.clock.sleep(0.5)
    assert np.abs(bench.tensions() - REST).max() < CELL_N
    assert not bench.driver.daq.state().enabled


def test_winches_have_the_span_of_their_rig(tmp_path):
    actuators = range(len(RIG.arm.actuators))
    scales = [f'drives.daq.outputs[{k}].scale=10.0' for k in actuators]
    cells = [
        f'drives.daq.inputs[{k}].{f}' for k in actuators for f in ('scale=25.0', 'zero=-25.0')
    ]
    rig = load_rig('fishbone_arm', ['plant.winch.span_N=100.0', *scales, *cells])
    bench = Bench(tmp_path, rig)
    try:
        bench.ready()
        bench.follow()
        assert np.abs(bench.tensions() - TARGET).max() < CELL_N
        assert np.abs(bench.driver.reading().position - TARGET).max() < CELL_N
    finally:
        bench.close()


def test_tensions_follow_commands_are_measured_and_kept_by_hold(bench):
    bench.ready()
    bench.follow()
    assert np.abs(bench.tensions() - TARGET).max() < CELL_N
    reading = bench.driver.reading()
    # Each winch is controlled by its load cell, so the reading equals the command.
    assert np.abs(reading.position - TARGET).max() < 0.02
    assert np.array_equal(reading.effort, reading.position)
    assert 0.0 <= bench.clock.now_s() - reading.stamp_s < 0.05
    held = bench.tensions()
    end = bench.clock.now_s() + 1.0
    bench.until(lambda: bench.clock.now_s() >= end, work=bench.driver.hold)
    assert np.abs(bench.tensions() - held).max() < 0.05
    assert bench.said() == ''


def test_large_command_is_followed_at_a_limited_tension_rate(bench):
    bench.ready()
    bench.follow(REST, 0.3)
    seen = []
    began = bench.clock.now_s()

    def work():
        bench.driver.follow(REST + np.eye(8)[0] * 10.0)
        seen.append((bench.clock.now_s(), bench.tensions()[0]))

    bench.until(lambda: bench.clock.now_s() > began + 1.0, work=work)
    times, tension = np.array(seen).T
    assert np.max(np.diff(tension) / np.diff(times)) < 1.6 * 10.0
    assert tension[-1] == pytest.approx(11.0, abs=CELL_N)


def test_home_releases_the_cables_to_the_pretension(bench):
    bench.ready()
    bench.follow()
    bench.driver.hold()
    bench.driver.home()
    bench.until(lambda: np.abs(bench.tensions() - REST).max() < CELL_N, work=bench.driver.hold)


def test_invalid_commands_are_refused_and_change_nothing(bench):
    bench.ready()
    bench.follow()
    for command, message in (
        (np.ones(7), r'\(7,\) set points; expected \(8,\)'),
        (np.where(np.eye(8)[2], 20.5, 1.0), 'up_2_winch'),
        (np.where(np.eye(8)[2], -0.1, 1.0), 'up_2_winch'),
        (np.where(np.eye(8)[2], np.nan, 1.0), 'up_2_winch'),
    ):
        with pytest.raises(ValueError, match=message):
            bench.driver.follow(command)
        bench.follow(TARGET, 0.1)
        assert np.abs(bench.driver.reading().position - TARGET).max() < 0.02, command


@pytest.mark.parametrize(
    ('fault', 'mend', 'said'),
    [
        ('daq open up_2', 'daq mend', 'up_2: open'),
        ('daq stuck up_2', 'daq mend', 'up_2: stuck'),
        ('daq overrun', None, '-200279'),
        ('daq stall', 'daq mend', '-200284'),
        ('daq unplug', 'daq mend', '-201003'),
        ('daq kill', 'daq revive', 'UNAVAILABLE'),
    ],
)
def test_fault_is_reported_in_time_releases_the_cables_and_lasts_until_reset(
    bench, fault, mend, said
):
    bench.ready()
    bench.follow()
    bench.arm.inject(fault)
    took = bench.until(lambda: said in bench.said(), work=lambda: bench.driver.follow(TARGET))
    assert took <= REPORTED_S
    assert bench.driver.follow(TARGET)  # refused
    if mend is not None:
        bench.arm.inject(mend)
    # A DAQ out of reach keeps its voltages; once reached again, it goes to its safe values.
    bench.until(lambda: np.abs(bench.tensions() - REST).max() < CELL_N, 2.0)
    bench.clock.sleep(0.5)
    assert said in bench.said() and bench.driver.follow(TARGET)
    bench.driver.reset()
    bench.ready()
    bench.clock.sleep(0.3)
    assert np.abs(bench.tensions() - REST).max() < CELL_N
    bench.follow()
    assert np.abs(bench.tensions() - TARGET).max() < CELL_N


def test_snapped_cable_shows_almost_no_tension(bench):
    bench.ready()
    bench.follow()
    bench.arm.plant.inject('cable snap up_2')
    bench.follow(TARGET, 0.3)
    assert bench.driver.reading().position[2] < 0.3


@pytest.mark.parametrize(
    ('before', 'after', 'message'),
    [
        ('name: up_2, ch', 'name: up_9, ch', 'expected one for each actuator; no up_2'),
        (
            'name: up_2_winch',
            'name: up_2_valve',
            'expected right_1_winch, left_1_winch, up_2_winch',
        ),
        ('unit: N\n        high: 25.0', 'unit: V\n        high: 25.0', 'expected N'),
        ('high: 25.0 ', 'high: 20.0 ', 'expected more than tension_max_N = 20'),
        ('high: 20.0', 'high: 19.0', 'expected at least tension_max_N = 20'),
        ('safe: 1.0 ', 'safe: 2.0 ', 'expected at most arm.pretension_N = 1, or null'),
        ('low: 0.0', 'low: 2.0', 'expected at most arm.pretension_N = 1'),
    ],
)
def test_inconsistent_daq_settings_are_refused_with_their_place(tmp_path, before, after, message):
    shipped = RIG.source.read_text(encoding='utf-8')
    assert before in shipped
    changed = tmp_path / 'fishbone_arm.yaml'
    changed.write_text(shipped.replace(before, after), encoding='utf-8')
    with pytest.raises(RigError) as error:
        load_rig(changed)
    assert message in str(error.value) and 'drives.daq' in str(error.value)
