"""Cylinders under the pressure loop, with emulated drives and chambers, in simulated time."""

import numpy as np
import pytest
from manual_clock import ManualClock
from servo_cases import REGISTERS

from softarm_ros.drivers.command_check import CATCH_UP
from softarm_ros.drivers.pressure_loop import PressureLoopConfig
from softarm_ros.drivers.pressure_servo import PressureServo
from softarm_ros.drivers.pressure_servo_config import CylinderAxes, PressureServoConfig
from softarm_ros.drivers.problems import DriverError

pytest.importorskip('pymodbus', reason='needs the extra hardware')
from modbus_memory import MemoryDrives

NAMES = ('one', 'two', 'three')
RATIO = 2.5e-6
PRELOAD = 1e5
REPORTED_S = 0.3
UNHOMED = 'servo: not homed; call home, which moves all chambers to the preload'


class Chambers:
    """
    Pressures that follow the torque with a lag and a ratio other than the nominal one.

    Without torque the drives are off and the brakes hold.
    """

    def __init__(self, start=0.5e5):
        self.pressure = np.full(3, start)
        self.lag_s = 0.01
        self.error = np.array([0.95, 1.0, 1.05])

    def step(self, torque, dt):
        if np.any(torque != 0.0):
            wanted = self.error * torque / RATIO
            self.pressure = wanted + np.exp(-dt / self.lag_s) * (self.pressure - wanted)
        return np.zeros(3), np.zeros(3)


def config(**changes):
    fields = {
        'host': '127.0.0.1',
        'registers': REGISTERS,
        'holding_brakes': True,
        'command_timeout_s': 0.15,
        'sensor_high_Pa': 1.3e6,
        'pressure_timeout_s': 0.15,
        'axes': [
            {
                'name': name,
                'base': 32 * i,
                'torque_limit_N_m': 2.5,
                'speed_limit_rad_s': 100.0,
            }
            for i, name in enumerate(NAMES)
        ],
    }
    return PressureServoConfig.model_validate(fields | changes)


AXES = CylinderAxes(
    NAMES,
    np.full(3, RATIO),
    np.zeros(3),
    np.full(3, 1e6),
    np.full(3, 5e5),
    np.full(3, PRELOAD),
)


class Rig:
    """A driver, its drives, and sensors that report every 10 ms."""

    def __init__(self, gain=3.0, measured=True, **changes):
        self.load = Chambers()
        self.clock = ManualClock()
        self.drives = MemoryDrives(config(), self.clock, self.load, brake_close_s=0.02)
        self.driver = PressureServo(
            config(**changes), PressureLoopConfig(gain=gain), AXES, self.clock, self.drives.client
        )
        self.measured = measured
        self.shown = lambda pressure: pressure
        self._stop = self.clock.event()
        self._sensing = self.clock.task(self._sense, 'sensors')
        self._sensing.start()
        self.driver.start()

    def _sense(self):
        while not self._stop.wait(0.01):
            if self.measured:
                pressure = self.shown(self.load.pressure.copy())
                self.driver.set_pressures(pressure, self.clock.now_s())

    def end(self):
        self._stop.set()
        self._sensing.join()
        self.driver.close()
        self.drives.close()
        assert self.clock.failures == []

    def home(self):
        self.clock.until(self._try_home, 10.0, 'home')
        self.clock.until(lambda: not self.driver.not_ready(), 10.0, 'homed')

    def _try_home(self):
        try:
            self.driver.home()
        except DriverError:
            return False
        return True

    def follow_until(self, command, condition, what, within_s=10.0):
        def step():
            assert self.driver.follow(np.array(command)) is None
            return condition()

        self.clock.until(step, within_s, what)


@pytest.fixture
def rig():
    made = []

    def make(**changes):
        made.append(Rig(**changes))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_nothing_moves_before_home_which_brings_all_to_the_preload_slowly(rig):
    one = rig()
    one.clock.until(lambda: one.driver.not_ready() == UNHOMED, 5.0, 'connection')
    assert one.driver.follow(np.full(3, 2e5)) == UNHOMED
    assert set(one.drives.states) == {'disabled'}
    before = one.clock.now_s()
    one.clock.until(one._try_home, 5.0, 'home')
    one.clock.until(lambda: not one.driver.not_ready(), 10.0, 'homed')
    assert one.clock.now_s() - before > 0.5e5 / 5e5  # at the rate of the actuators
    np.testing.assert_allclose(one.load.pressure, PRELOAD, atol=2.5e4)
    first = one.drives.torque_writes()
    given = np.array([value for _, axis, value in first if axis == 1 and value > 0.0])
    assert given[0] == pytest.approx(RATIO * 0.5e5, rel=0.05)  # that of the present pressure
    assert np.abs(np.diff(given)).max() < 0.1  # and no jump from there


def test_pressures_settle_with_a_quarter_of_the_ratio_error_and_are_read_back(rig):
    one = rig()
    one.home()
    target = np.array([3e5, 2e5, 4e5])
    wanted = 4.0 * one.load.error * target / (1.0 + 3.0 * one.load.error)
    one.follow_until(
        target, lambda: np.abs(one.load.pressure - wanted).max() < 1e3, 'pressures reached'
    )
    reading = one.driver.reading()
    np.testing.assert_allclose(reading.position, wanted, atol=3e3)
    np.testing.assert_allclose(reading.effort, one.drives.torque, atol=0.02)
    assert one.clock.now_s() - reading.stamp_s < 1.0
    values = one.driver.values()
    assert values['connected'] == 'true'
    assert float(values['torque_written_after_ms_p50']) < 50.0


def test_a_command_far_from_the_present_pressures_is_approached_at_their_largest_rate(rig):
    one = rig(gain=0.0)
    one.home()
    for target, held_s in ((np.array([3e5, 2e5, 4e5]), 0.0), (np.array([1e5, 3e5, 2e5]), 0.5)):
        held_until = one.clock.now_s() + held_s
        while one.clock.now_s() < held_until:
            one.driver.hold()
            one.clock.sleep(0.01)
        rows = []

        def arrived(target=target, rows=rows):
            rows.append((one.clock.now_s(), *(one.drives.torque / RATIO)))
            return np.abs(rows[-1][1:] - target).max() < 2e3

        one.follow_until(target, arrived, 'pressures commanded')
        passed_s, *changed = np.abs(np.array(rows) - rows[0]).T
        # The drives take a torque at the next exchange, 10 ms later.
        assert np.all(changed <= CATCH_UP * AXES.max_rate_Pa_s[0] * (passed_s + 0.02) + 1.0)


def test_hold_keeps_the_torques_at_any_pressure_until_the_next_command(rig):
    one = rig()
    one.home()
    target = np.array([3e5, 2e5, 4e5])
    one.follow_until(target, lambda: one.load.pressure.min() > 1.9e5, 'moved')
    for _ in range(20):
        one.driver.hold()
        one.clock.sleep(0.005)
    torque = one.drives.torque
    one.shown = lambda pressure: pressure - 1e5
    for _ in range(30):
        one.driver.hold()
        one.clock.sleep(0.005)
    np.testing.assert_array_equal(one.drives.torque, torque)
    assert one.driver.not_ready() == ''
    one.follow_until(target, lambda: one.drives.torque[0] > torque[0] + 0.1, 'followed again')


def test_missing_commands_freeze_the_torques(rig):
    one = rig()
    one.home()
    one.follow_until(np.full(3, 3e5), lambda: one.load.pressure.min() > 2.5e5, 'moved')
    one.clock.until(lambda: 'held' in one.driver.values()['loop'], 2.0, 'held')
    one.clock.sleep(0.05)
    torque = one.drives.torque
    one.shown = lambda pressure: pressure - 1e5
    one.clock.sleep(0.3)
    np.testing.assert_array_equal(one.drives.torque, torque)
    assert set(one.drives.states) == {'enabled'}


@pytest.mark.parametrize('how', ['silent', 'broken wire', 'not a number'])
def test_invalid_or_missing_pressures_freeze_the_torques_and_are_reported(rig, how):
    one = rig()
    one.home()
    target = np.full(3, 3e5)
    one.follow_until(target, lambda: one.load.pressure.min() > 2.5e5, 'moved')
    torque = one.drives.torque
    began = one.clock.now_s()
    bad = np.array([1.0, -4e5 if how == 'broken wire' else np.nan, 1.0])
    if how == 'silent':
        one.measured = False
    else:
        one.shown = lambda pressure: np.where(bad == 1.0, pressure, bad)
    while not one.driver.problems():
        one.driver.follow(target)
        assert one.clock.now_s() - began < 5.0
        one.clock.sleep(0.002)
    (problem,) = one.driver.problems()
    assert (problem.source, problem.code) == ('pressure', 'stale')
    assert problem.since_s - began < REPORTED_S
    assert 'pressure: stale' in one.driver.follow(target)
    assert one.driver.not_ready().startswith('pressure: stale')
    one.clock.sleep(0.1)
    # Only the loop's last changes before the fault: a broken wire asks for 2.5 N m.
    np.testing.assert_allclose(one.drives.torque, torque, atol=0.15)
    assert set(one.drives.states) == {'enabled'}
    one.measured, one.shown = True, lambda pressure: pressure
    one.clock.until(lambda: float(one.driver.values()['pressure_age_ms']) < 100.0, 5.0, 'measured')
    assert one.driver.problems()  # latched
    one.driver.reset()
    one.follow_until(target, lambda: not one.driver.not_ready(), 'follows again')


def test_drive_fault_switches_all_drives_off_until_reset_and_home(rig):
    one = rig()
    one.home()
    target = np.full(3, 3e5)
    one.follow_until(target, lambda: one.load.pressure.min() > 2.5e5, 'moved')
    began = one.clock.now_s()
    one.drives.fail(1, 0x2310)
    one.clock.until(lambda: one.driver.problems(), 5.0, 'reported')
    problem = one.driver.problems()[0]
    assert (problem.source, problem.code) == ('two', '0x2310')
    assert problem.since_s - began < REPORTED_S
    assert 'over-current' in one.driver.follow(target)
    one.clock.until(lambda: 'enabled' not in one.drives.states, 2.0, 'switched off')
    with pytest.raises(DriverError, match='0x2310'):
        one.driver.home()
    one.driver.reset()
    one.clock.until(lambda: one.drives.states == ('disabled',) * 3, 5.0, 'reset')
    one.clock.until(lambda: one.driver.not_ready() == UNHOMED, 5.0, 'not homed')
    assert one.driver.follow(target) == UNHOMED
    one.home()
    one.follow_until(target, lambda: one.load.pressure.min() > 2.5e5, 'moved again')


def test_lost_link_is_a_problem_in_motion_but_not_with_the_drives_off(rig):
    one = rig()
    one.drives.kill()
    one.clock.until(lambda: 'link' in one.driver.not_ready(), 5.0, 'lost')
    one.drives.revive()
    one.clock.until(lambda: one.driver.not_ready() == UNHOMED, 5.0, 'back by itself')
    one.home()
    target = np.full(3, 3e5)
    one.follow_until(target, lambda: one.load.pressure.min() > 2.5e5, 'moved')
    began = one.clock.now_s()
    one.drives.kill()
    one.clock.until(lambda: one.driver.problems(), 5.0, 'reported')
    assert one.driver.problems()[0].since_s - began < REPORTED_S
    one.clock.until(lambda: 'enabled' not in one.drives.states, 2.0, 'watchdogs of the drives')
    one.drives.revive()
    one.clock.until(lambda: one.driver.values()['connected'] == 'true', 5.0, 'connected')
    assert 'link' in one.driver.not_ready()  # latched: motion does not resume
    assert 'enabled' not in one.drives.states


def test_loop_without_gain_needs_no_pressures(rig):
    one = rig(gain=0.0, measured=False)
    one.home()
    target = np.array([3e5, 2e5, 4e5])
    one.follow_until(
        target, lambda: np.allclose(one.drives.torque, RATIO * target, atol=2e-3), 'torques'
    )
    assert one.driver.reading() is None
    assert one.driver.problems() == ()


@pytest.mark.parametrize('doing', ['enabling', 'homing'])
def test_stopped_homing_moves_nothing_more_until_it_is_requested_again(rig, doing):
    one = rig()
    one.driver.stop_homing()  # of an arm that is not being homed
    one.clock.until(one._try_home, 5.0, 'home')
    one.clock.until(lambda: one.driver.not_ready() == f'servo: {doing}', 5.0, doing)
    one.driver.stop_homing()
    assert one.driver.not_ready() == UNHOMED
    one.clock.sleep(0.1)  # the last torque is on its way
    stopped = one.load.pressure.copy()
    assert stopped.max() < PRELOAD - 1e4
    one.clock.sleep(1.0)
    np.testing.assert_allclose(one.load.pressure, stopped, atol=1e3)
    assert one.driver.not_ready() == UNHOMED
    one.home()
    one.driver.stop_homing()
    assert one.driver.not_ready() == ''


def test_unreached_preload_is_reported_with_the_chamber(rig):
    one = rig(home_timeout_s=0.5)
    one.load.error = np.array([1.0, 1.0, 0.0])  # a hose has come off
    one.clock.until(one._try_home, 10.0, 'home')
    one.clock.until(lambda: one.driver.problems(), 10.0, 'reported')
    assert str(one.driver.problems()[0]).startswith('homing: not reached three is')
    one.driver.reset()
    assert one.driver.not_ready() == UNHOMED


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        (np.full(2, 1e5), r'shape \(2,\)'),
        ([1e5, np.nan, 1e5], 'two = nan'),
        ([1e5, 1e5, 1.1e6], r'three = 1.1e\+06 Pa outside \[0, 1e\+06\] Pa'),
        ([-1.0, 1e5, 1e5], 'one = -1 Pa'),
    ],
)
def test_invalid_commands_raise_value_error(rig, command, message):
    one = rig()
    with pytest.raises(ValueError, match=message):
        one.driver.follow(np.asarray(command))


def test_close_disables_the_drives_without_lowering_the_torque(rig):
    one = rig()
    one.home()
    one.follow_until(np.full(3, 3e5), lambda: one.load.pressure.min() > 2.5e5, 'moved')
    one.drives.torque_writes()
    one.driver.close()
    one.driver.close()
    written = one.drives.torque_writes()
    assert set(one.drives.states) == {'disabled'}
    assert min(value for _, _, value in written) > 0.5


def test_failed_loop_switches_off_and_the_arm_is_not_homed_before_a_new_start(rig, monkeypatch):
    one = rig()
    one.home()
    monkeypatch.setattr(one.driver, '_turn', lambda now: 1 / 0)
    one.clock.until(one.driver.problems, REPORTED_S, 'report')
    one.clock.until(lambda: not one.driver._servo.enabled, REPORTED_S, 'drives off')
    monkeypatch.undo()
    one.driver.reset()
    with pytest.raises(DriverError, match=r'ZeroDivisionError.*; clean up and configure its node'):
        one.driver.home()
    one.driver.close()
    one.driver.start()
    one.home()
