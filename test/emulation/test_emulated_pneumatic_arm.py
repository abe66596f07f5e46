"""Driver of a pneumatic arm with its emulated DAQ, through nidaqmx, in simulated time."""

import re

import numpy as np
import pytest

pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from daq_memory import MemoryDaq
from manual_clock import ManualClock
from memory_arm import until

from softarm_ros.drivers.command_check import CATCH_UP
from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_actuators import DaqActuators
from softarm_ros.drivers.daq_config import DaqHost
from softarm_ros.drivers.gripper import GripperDriver
from softarm_ros.drivers.problems import DriverError
from softarm_ros.emulation.emulated_pneumatic_arm import EmulatedPneumaticArm
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_driver, build_emulated_arm, build_plant

RIG = load_rig('pneumatic_arm')
TARGET = np.array([3e4, 1e4, 0.0, 2e4, 0.0, 1.5e4])
MAX_RATE = RIG.actuator_limits().max_speed
REPORTED_S = 0.3
STEP_S = 0.002


class Bench:
    """The emulated arm and its driver, in the time of a clock."""

    def __init__(self, folder, rig=RIG):
        self.folder = folder
        self.clock = ManualClock()
        devices = rig.devices
        daq = devices.daq.model_copy(update={'host': DaqHost(host='memory', port=1)})
        self.arm = EmulatedPneumaticArm(
            build_plant(rig, 0),
            daq,
            devices.gripper,
            RIG.actuator_names,
            0,
            self.clock,
            self._make_daq,
        )
        driver = DaqDriver(daq, self.clock, self.daq.channel)
        self.driver = DaqActuators(
            driver,
            RIG.actuator_names,
            MAX_RATE,
            RIG.arm.play_compensation,
            GripperDriver(devices.gripper, driver),
        )
        self.stop = self.clock.event()
        self.passing = self.clock.task(self._pass_time, 'arm')
        self.log = []  # (time, true pressures)

    def _make_daq(self, config, source, sink, seed):
        self.daq = MemoryDaq(config, self.clock, source, sink, seed=seed)
        return self.daq

    def __enter__(self):
        self.arm.start(self.folder)
        self.passing.start()
        self.driver.start()
        return self

    def __exit__(self, *reason):
        self.driver.close()
        self.stop.set()
        self.passing.join()
        self.arm.close()
        assert self.clock.failures == []

    def _pass_time(self):
        while not self.stop.wait(STEP_S):
            self.arm.advance(STEP_S)
            self.log.append((self.clock.now_s(), self.arm.plant.drives.true_pressures()))

    def pressures(self):
        return self.arm.plant.drives.true_pressures()

    def until(self, condition, within_s=10.0, work=lambda: None):
        return until(self.clock, self.driver, condition, within_s, work)

    def follow(self, target=TARGET, tolerance_Pa=2e3):
        """Command a target until the pressures are near it."""
        self.until(lambda: self.driver.not_ready() == '')
        self.until(
            lambda: np.all(np.abs(self.pressures() - target) < tolerance_Pa),
            work=lambda: self.driver.follow(target),
        )


@pytest.fixture
def bench(tmp_path):
    with Bench(tmp_path) as running:
        yield running


def test_pressures_follow_commands_are_measured_and_kept_by_hold(bench):
    bench.until(lambda: bench.driver.not_ready() == '')
    bench.until(lambda: bench.driver.reading() is not None)
    assert np.all(np.abs(bench.driver.reading().position) < 500.0)
    bench.follow(tolerance_Pa=1.5e3)
    time_s = bench.clock.now_s()
    bench.until(
        lambda: bench.clock.now_s() - time_s > 0.5, work=lambda: bench.driver.follow(TARGET)
    )
    reading = bench.driver.reading()
    # One per cent of gain, 0.1 % of span, and the part of the play that is not compensated.
    assert np.all(np.abs(bench.pressures() - TARGET) < 0.01 * TARGET + 800.0)
    assert np.all(np.abs(reading.position - bench.pressures()) < 0.01 * TARGET + 500.0)
    assert bench.clock.now_s() - reading.stamp_s < 0.3
    # Stopped while the arm empties.
    below = TARGET - 8e3
    bench.until(
        lambda: np.any(bench.pressures() < below - 1e3),
        work=lambda: (bench.driver.follow(np.zeros(6)), bench.driver.reading()),
    )
    assert np.min(bench.driver.reading().velocity) < -2e4
    bench.driver.hold()
    kept = bench.driver.reading().position
    for _ in range(60):
        bench.driver.hold()
        bench.clock.sleep(0.01)
    assert np.all(np.abs(bench.driver.reading().position - kept) < 4e3)
    assert bench.pressures()[0] > 1e4


def test_invalid_commands_are_refused_and_a_valid_one_is_still_accepted(bench):
    bench.follow()
    for wrong in (np.zeros(5), np.full(6, np.nan), np.full(6, 9.5e4), np.full(6, -1.0)):
        with pytest.raises(ValueError, match=r'set points|valve'):
            bench.driver.follow(wrong)
    assert bench.driver.follow(TARGET) is None


def test_home_empties_a_filled_arm_gradually_and_leaves_an_empty_one_alone(bench):
    with pytest.raises(DriverError, match='does not answer yet'):
        build_driver(RIG, RIG.devices).home()
    bench.until(lambda: bench.driver.not_ready() == '')
    bench.driver.home()
    assert not bench.driver.daq.state().enabled
    bench.follow()
    bench.driver.home()
    assert np.max(bench.pressures()) > 2e4
    bench.until(lambda: np.max(bench.pressures()) < 500.0, work=bench.driver.hold)
    assert bench.driver.not_ready() == ''


def test_stopped_homing_keeps_the_pressures(bench):
    bench.follow()
    bench.driver.home()
    bench.until(lambda: np.max(bench.pressures()) < TARGET.max() - 5e3, work=bench.driver.hold)
    bench.driver.stop_homing()
    time_s = bench.clock.now_s()
    bench.driver.hold()
    held = bench.driver.reading().position
    bench.until(lambda: bench.clock.now_s() - time_s > 1.0, work=bench.driver.hold)
    assert np.all(np.abs(bench.driver.reading().position - held) < 4e3)
    assert np.max(bench.pressures()) > 1e4


CODES = {
    'daq open distal_chamber_1': 'distal_chamber_1: open',
    'daq stuck proximal_chamber_2': 'proximal_chamber_2: stuck',
    'daq overrun': '-200279',
    'daq unplug': '-201003',
    'daq kill': 'grpc UNAVAILABLE',
}
# A card that nobody can reach keeps its outputs (docs/drivers.md).
OUT_OF_REACH = ('daq unplug', 'daq kill')


@pytest.mark.parametrize('fault', CODES)
def test_fault_is_reported_in_time_empties_the_arm_and_lasts_until_reset(bench, fault):
    bench.follow()
    limit = REPORTED_S + (0.1 if 'stuck' in fault else 0.0)  # 200 ms without noise, then a block
    began = bench.clock.now_s()
    bench.arm.inject(fault)
    bench.until(
        lambda: CODES[fault] in bench.driver.not_ready(),
        work=lambda: bench.driver.follow(TARGET),
    )
    since = min(p.since_s for p in bench.driver.problems() if CODES[fault] in str(p))
    print(f'{fault}: {1e3 * (since - began):.0f} ms')
    assert since - began <= limit
    assert 'reset' in str(bench.driver.follow(TARGET))
    if fault not in OUT_OF_REACH:
        bench.until(lambda: np.max(bench.pressures()) < 500.0)
    bench.arm.inject('daq revive' if fault == 'daq kill' else 'daq mend')
    # A card that was out of reach empties the arm as soon as the link is back.
    bench.until(lambda: np.max(bench.pressures()) < 500.0)
    assert CODES[fault] in bench.driver.not_ready()
    with pytest.raises(DriverError, match=re.escape(CODES[fault])):
        bench.driver.home()
    # A block that began during the fault would be reported again.
    bench.until(lambda: np.all(np.abs(bench.driver.reading().position) < 1e3))
    bench.clock.sleep(0.05)
    bench.driver.reset()
    bench.until(lambda: bench.driver.not_ready() == '', work=bench.driver.hold)
    assert np.max(bench.pressures()) < 500.0
    again = bench.clock.now_s()
    bench.follow()
    times, pressures = (np.array(part) for part in zip(*bench.log))
    # No jump back: faster than the limit only to catch up with a late step.
    window = times > again
    rise = np.max(pressures[window], axis=1)
    span = times[window]
    later = np.searchsorted(span, span + 0.1)
    ok = later < len(span)
    rates = (rise[later[ok]] - rise[ok]) / (span[later[ok]] - span[ok])
    assert np.max(rates) < 1.2 * CATCH_UP * MAX_RATE[0]


def test_link_loss_clears_by_itself_before_motion_but_needs_a_reset_in_use(tmp_path):
    bench = Bench(tmp_path)
    with bench:
        bench.arm.inject('daq kill')
        bench.until(lambda: 'grpc' in bench.driver.not_ready())
        bench.arm.inject('daq revive')
        bench.until(lambda: bench.driver.not_ready() == '')
        bench.follow()
        bench.arm.inject('daq kill')
        bench.until(lambda: 'grpc' in bench.driver.not_ready())
        bench.arm.inject('daq revive')
        bench.until(lambda: bench.driver.values()['connected'] == 'true')
        bench.until(lambda: np.max(bench.pressures()) < 500.0)
        assert 'grpc' in bench.driver.not_ready()  # in use by then: needs a reset


def test_gripper_grasps_an_object_keeps_it_in_a_fault_and_releases_it(bench):
    x, y, z = (float(v) for v in bench.arm.plant.body.fingers()[:3, 3])
    bench.arm.inject(f'object put {x} {y} {z} 0.02')
    bench.until(lambda: bench.driver.not_ready() == '')
    gripper = bench.driver.gripper
    assert gripper.set_pressure(5e4) == 'DAQ outputs not enabled'
    rest = np.zeros(6)
    bench.driver.follow(rest)
    assert gripper.set_pressure(-3e4) is None
    hold = lambda: bench.driver.follow(rest)  # noqa: E731
    bench.until(lambda: bench.arm.plant.gripper_pressure() < -2.5e4, work=hold)
    assert gripper.set_pressure(5e4) is None
    bench.until(lambda: bench.arm.plant.drives.holds_object, work=hold)
    bench.until(lambda: gripper.state().phase.value == 'done', work=hold)
    assert gripper.state().pressure_Pa == pytest.approx(5e4, abs=6e3)
    bench.arm.inject('daq overrun')
    bench.until(lambda: '-200279' in bench.driver.not_ready(), work=hold)
    bench.until(lambda: bench.arm.report()['output_V'].startswith('0, 0, 0, 0, 0, 0'))
    assert bench.arm.plant.drives.holds_object  # a grasp survives a fault of the arm
    bench.driver.reset()
    bench.until(lambda: bench.driver.not_ready() == '')
    bench.driver.follow(rest)
    assert gripper.set_pressure(-3e4) is None
    bench.until(lambda: not bench.arm.plant.drives.holds_object, work=hold)
    assert gripper.state().problems == ()


def test_held_arm_switches_no_gripper_valve_on_until_the_next_command(bench):
    bench.until(lambda: bench.driver.not_ready() == '')
    gripper, plant = bench.driver.gripper, bench.arm.plant
    follow = lambda: bench.driver.follow(np.zeros(6))  # noqa: E731
    follow()
    for target, sign in ((5e4, 1.0), (-3e4, -1.0)):
        assert gripper.set_pressure(-sign * 3e4) is None
        bench.until(lambda: gripper.state().phase.value == 'done', work=follow)
        assert gripper.set_pressure(target) is None  # from one side to the other
        bench.driver.hold()
        end = bench.clock.now_s() + 1.0
        worst = []
        bench.until(
            lambda end=end: bench.clock.now_s() > end,
            work=lambda worst=worst: worst.append(plant.gripper_pressure()) or bench.driver.hold(),
        )
        assert max(sign * np.array(worst)) < 1e3  # at most let go, as when the hold began
        assert abs(worst[-1]) < 1e3
        follow()
        assert gripper.set_pressure(target) is None  # as a task, which repeats its command
        bench.until(lambda: gripper.state().phase.value == 'done', work=follow)
    assert gripper.state().problems == ()


def test_gripper_sensor_has_the_span_of_its_rig(tmp_path):
    names = [part.name for part in RIG.devices.daq.inputs]
    place = f'drives.daq.inputs[{names.index("gripper")}]'
    wired = [f'{place}.scale=2.5e4', f'{place}.zero=-7.5e4']
    rig = load_rig('pneumatic_arm', ['plant.gripper.sensor_span_Pa=5e4', *wired])
    rest = np.zeros(6)
    with Bench(tmp_path, rig) as bench:
        bench.until(lambda: bench.driver.not_ready() == '')
        gripper = bench.driver.gripper
        bench.driver.follow(rest)
        assert gripper.set_pressure(-3e4) is None
        hold = lambda: bench.driver.follow(rest)  # noqa: E731
        bench.until(lambda: bench.arm.plant.gripper_pressure() < -2.9e4, work=hold)
        bench.until(lambda: gripper.state().pressure_Pa < -2.8e4, work=hold)
        assert gripper.state().pressure_Pa == pytest.approx(-3e4, abs=2e3)


def test_force_sensor_measures_the_wrench_on_the_base_and_can_be_tared(bench):
    bench.until(lambda: bench.driver.not_ready() == '')
    daq = bench.driver.daq
    bench.clock.sleep(0.3)
    truth = bench.arm.plant.body.base_wrench()
    blocks = daq.take_blocks()
    measured = np.mean(np.concatenate([b.wrench for b in blocks], axis=1), axis=1)
    assert np.linalg.norm(truth[:3]) > 2.0  # a quarter of a kilogram
    np.testing.assert_allclose(measured[:3], truth[:3], atol=0.02)
    np.testing.assert_allclose(measured[3:], truth[3:], atol=2e-3)
    daq.tare()
    bench.until(lambda: not daq.taring)
    daq.take_blocks()
    bench.clock.sleep(0.1)
    after = np.concatenate([b.wrench for b in daq.take_blocks()], axis=1).mean(axis=1)
    np.testing.assert_allclose(after, np.zeros(6), atol=0.02)


def test_unknown_faults_are_refused_with_the_known_ones():
    arm = build_emulated_arm(RIG, 0)
    with pytest.raises(ValueError, match=r'daq overrun; .*object put X_M Y_M Z_M KG'):
        arm.inject('daq explode')
    with pytest.raises(ValueError, match='no input'):
        arm.inject('daq open nowhere')
    with pytest.raises(ValueError, match='here m: expected a finite number'):
        arm.inject('object put 0 0 here 0.1')
    arm.close()
