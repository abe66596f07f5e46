"""Servo driver with emulated drives on a line in memory, in simulated time."""

import numpy as np
import pytest
from manual_clock import ManualClock
from servo_cases import REGISTERS, servo_config
from streamed import Streamed

pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')

from modbus_memory import MemoryDrives
from pymodbus.constants import ExcCodes

from softarm_ros.drivers.cia402 import DriveState
from softarm_ros.drivers.problems import DriverError
from softarm_ros.drivers.servo import ServoDriver
from softarm_ros.drivers.servo_exchange import UnitExchange

REPORT_S = 0.3  # from a fault to the driver's report of it
SETUP = [{'register': {'address': 24, 'type': 'uint16'}, 'value': 4, 'comment': 'torque mode'}]


class Rig(Streamed):
    """Emulated drives and a driver; tests stream commands to it."""

    def __init__(self, **changes):
        config = servo_config(**{'setup': SETUP, **changes})
        self.clock = ManualClock()
        self.drives = MemoryDrives(config, self.clock, watchdog_s=0.2)
        self.driver = ServoDriver(config, self.clock, self.drives.client)
        self.driver.start()

    def enable(self):
        self.clock.until(lambda: self.driver.state().connected, 2.0, 'connection')
        self.driver.enable()
        self.clock.until(lambda: self.driver.state().enabled, 2.0, 'enabling')

    def stream(self, torque, seconds):
        end = self.clock.now_s() + seconds
        while self.clock.now_s() < end:
            self.driver.set_torque(torque)
            self.clock.sleep(0.01)

    def move(self, torque=0.5, seconds=0.2):
        self.enable()
        self.stream(np.full(6, torque), seconds)
        assert np.allclose(self.drives.torque, torque, atol=0.0005)

    def send(self, torque=0.5):
        self.driver.set_torque(np.full(6, torque))

    def still(self):
        return not self.drives.torque.any()

    def close(self):
        self.driver.close()
        self.drives.close()
        assert self.clock.failures == []


@pytest.fixture(params=[False, True], ids=['one unit', 'unit per axis'])
def rig(request):
    rig = Rig(per_axis_unit=request.param)
    yield rig
    rig.close()


@pytest.fixture
def six_units():
    rig = Rig(per_axis_unit=True)
    yield rig
    rig.close()


def test_torques_have_the_right_order_direction_and_scale(rig):
    rig.enable()
    torque = np.array([0.1, 0.2, -0.3, 0.4, -0.5, 1.5])
    rig.stream(torque, 0.2)
    assert np.allclose(rig.drives.torque, torque, atol=0.0005)
    state = rig.driver.state()
    assert np.allclose(state.torque, torque, atol=0.0011)
    assert np.sign(state.speed).tolist() == np.sign(torque).tolist()
    assert np.allclose(state.position, rig.drives.position, atol=2.0)
    assert state.enabled
    assert state.problems == ()
    assert (state.age_s < 0.2).all()
    assert rig.driver.counts().lost == 0
    assert rig.driver.counts().command_latency.count > 5


def test_nothing_moves_before_enabling(rig):
    rig.clock.until(lambda: rig.driver.state().connected, 2.0, 'connection')
    assert rig.driver.set_torque(np.ones(6)) == 'servo not enabled'
    rig.stream(np.ones(6), 0.2)
    assert set(rig.drives.states) == {'disabled'}
    assert {value for _, _, value in rig.drives.torque_writes()} == {0.0}


def test_command_from_before_enabling_is_not_followed(rig):
    rig.move()
    rig.driver.disable()
    rig.clock.until(rig.still, REPORT_S, 'standing still')
    rig.drives.torque_writes()
    rig.enable()
    rig.clock.sleep(0.1)
    assert {value for _, _, value in rig.drives.torque_writes()} == {0.0}


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ([0.0] * 5, 'shape'),
        ([0.0, np.nan, 0.0, 0.0, 0.0, 0.0], 'axis_2 = nan'),
        ([0.0, 0.0, 2.6, 0.0, 0.0, 0.0], r'axis_3 = 2.6 N m outside \[-2.5, 2.5\] N m'),
    ],
)
def test_invalid_torques_are_refused(values, message):
    driver = ServoDriver(servo_config())
    with pytest.raises(ValueError, match=message):
        driver.set_torque(values)


def test_drive_fault_stops_all_axes_and_keeps_its_code_until_reset(rig):
    rig.move()
    rig.drives.fail(3, 0x2310)
    assert rig.reported('axis_4', '0x2310') < REPORT_S
    rig.clock.until(rig.still, REPORT_S, 'standing still')
    problem = rig.driver.state().problems[0]
    assert str(problem) == 'axis_4: 0x2310 continuous over-current'
    with pytest.raises(DriverError, match='axis_4: 0x2310'):
        rig.driver.enable()
    rig.stream(np.ones(6), 0.2)
    assert rig.still()
    rig.driver.reset()
    rig.clock.until(lambda: 'fault' not in rig.drives.states, 1.0, 'reset')
    rig.clock.sleep(0.1)
    assert rig.driver.state().problems == ()
    assert set(rig.drives.states) == {'disabled'}
    rig.move()


def test_fault_code_of_32_bits_is_reported_whole():
    rig = Rig(registers=REGISTERS | {'fault_code': {'address': 22, 'type': 'uint32'}})
    try:
        rig.enable()
        rig.drives.fail(3, 0x0001_2310)
        assert rig.reported('axis_4', '0x12310') < REPORT_S
    finally:
        rig.close()


def test_persistent_drive_fault_is_reported_again_after_reset():
    rig = Rig(transition_timeout_s=0.3)
    try:
        rig.enable()
        rig.drives.fail(0, 0x7305, persists=True)
        rig.reported('axis_1', '0x7305')
        assert rig.driver.state().problems[0].outside  # whatever the computer was doing
        rig.driver.reset()
        assert rig.clock.until(lambda: rig.driver.state().problems, 1.0, 'report again') > 0.2
        rig.drives.heal(0)
        rig.driver.reset()
        rig.move()
    finally:
        rig.close()


def test_fault_name_of_the_rig_file_overrides_that_of_the_profile():
    config = servo_config(fault_names={0x2310: 'A.710 overload'})
    assert config.fault_name(0x2310) == 'A.710 overload'
    assert config.fault_name(0x4210) == 'drive over-temperature'
    assert config.fault_name(0x1234) == 'unknown fault'


def test_stale_commands_stop_all_axes(rig):
    rig.move()
    assert rig.clock.until(rig.still, REPORT_S, 'standing still') < REPORT_S
    rig.clock.until(lambda: rig.driver.state().problems, REPORT_S, 'report')
    assert str(rig.driver.state().problems[0]) == 'command: stale no command for 150 ms'
    assert not rig.driver.state().problems[0].outside
    rig.clock.until(lambda: set(rig.drives.states) == {'disabled'}, REPORT_S, 'power off')


def test_overspeed_stops_all_axes():
    rig = Rig(axes=6)
    try:
        rig.enable()
        took = rig.time_to(
            lambda: any(p.code == 'overspeed' for p in rig.driver.state().problems), 2.5
        )
        assert took < 3.0
        assert rig.clock.until(rig.still, REPORT_S, 'standing still') < REPORT_S
        assert abs(rig.drives.speed).max() < 120.0
    finally:
        rig.close()


def test_killed_server_stops_the_drives_and_motion_needs_a_reset(rig):
    rig.move()
    rig.drives.kill()
    assert rig.reported('link', '') < REPORT_S
    assert rig.clock.until(rig.still, REPORT_S, 'watchdog of the drives') < REPORT_S
    assert not rig.driver.state().connected
    assert [problem.outside for problem in rig.driver.problems()] == [True]
    assert rig.driver.state().drive_states[0] is DriveState.UNKNOWN
    rig.drives.revive()
    rig.drives.torque_writes()
    rig.clock.until(lambda: rig.driver.state().connected, 2.0, 'reconnection')
    rig.stream(np.ones(6), 0.3)
    assert {value for _, _, value in rig.drives.torque_writes()} == {0.0}
    assert not rig.driver.state().enabled
    with pytest.raises(DriverError, match='reset it first'):
        rig.driver.enable()
    rig.driver.reset()
    rig.move()
    assert rig.driver.counts().connections == 2


def test_unreachable_drives_stop_and_motion_needs_a_reset(rig):
    rig.move()
    rig.drives.faults.silent_units.update(range(7))
    assert rig.reported('link', '') < REPORT_S
    assert rig.clock.until(rig.still, REPORT_S, 'watchdog of the drives') < REPORT_S
    assert not any(problem.outside for problem in rig.driver.problems())  # or merely late
    rig.drives.faults.silent_units.clear()
    rig.clock.until(lambda: rig.driver.state().connected, 2.0, 'reconnection')
    rig.stream(np.ones(6), 0.2)
    assert rig.still()
    rig.driver.reset()
    rig.move()


def test_one_silent_drive_stops_the_others(six_units):
    rig = six_units
    rig.move()
    rig.drives.faults.silent_units.add(2)
    assert rig.reported('axis_2', 'timeout') < REPORT_S
    rig.clock.until(rig.still, REPORT_S, 'standing still')
    others = [state for i, state in enumerate(rig.drives.states) if i != 1]
    rig.clock.until(lambda: set(others) <= {'disabled', 'fault'}, REPORT_S, 'power off')
    assert rig.driver.state().connected


def test_drive_that_answers_again_is_switched_off_though_another_stays_silent(six_units):
    rig = six_units
    rig.move()
    rig.drives.faults.silent_units.update({2, 5})
    rig.reported('axis_2', 'timeout')
    rig.drives.faults.silent_units.remove(5)
    rig.clock.until(lambda: rig.driver.state().age_s[4] < 0.1, 1.0, 'answer of axis_5')
    assert rig.driver.state().drive_states[4] is not DriveState.ENABLED


def test_one_lost_answer_is_counted_and_does_not_stop_the_arm(rig):
    rig.move()
    rig.drives.faults.lose_answers = 1
    rig.stream(np.full(6, 0.5), 0.4)
    state = rig.driver.state()
    assert state.problems == ()
    assert rig.driver.counts().timeouts == 1
    assert rig.driver.counts().lost == 1
    assert np.allclose(rig.drives.torque, 0.5, atol=0.0005)


def test_late_answers_count_as_timeouts_and_stop_the_arm(rig):
    rig.move()
    rig.drives.faults.delay_s = 0.12  # twice response_timeout_s
    assert rig.time_to(lambda: rig.driver.state().problems) < REPORT_S
    rig.clock.until(rig.still, REPORT_S, 'standing still')
    assert rig.driver.counts().timeouts > 0
    rig.drives.faults.delay_s = 0.0
    rig.clock.until(lambda: rig.driver.state().connected, 2.0, 'reconnection')
    rig.driver.reset()
    rig.move()


def test_slow_answers_lengthen_the_cycle_and_the_caller_never_waits(rig):
    rig.move()
    rig.drives.faults.delay_s = 0.003
    longest = 0.0
    for _ in range(100):
        began = rig.clock.now_s()
        rig.driver.set_torque(np.full(6, 0.5))
        rig.driver.state()
        longest = max(longest, rig.clock.now_s() - began)
        rig.clock.sleep(0.005)
    assert rig.driver.state().problems == ()
    assert longest == 0.0
    assert rig.driver.counts().cycle.max_s > 0.036  # twelve requests
    assert rig.driver.counts().superseded > 0


def test_refused_registers_are_reported_with_the_modbus_code(rig):
    rig.move()
    rig.drives.faults.refuse = ExcCodes.ILLEGAL_ADDRESS
    assert rig.time_to(lambda: rig.driver.state().problems) < REPORT_S
    problem = rig.driver.state().problems[0]
    assert problem.code == 'modbus 0x02'
    assert 'illegal data address' in problem.text
    rig.clock.until(rig.still, REPORT_S, 'watchdog of the drives')


def test_drive_that_leaves_operation_by_itself_stops_all_axes(rig):
    rig.move()
    rig.drives.disable(0)  # as if its safe-torque-off circuit opened
    assert rig.reported('axis_1', 'state') < REPORT_S
    rig.clock.until(rig.still, REPORT_S, 'standing still')


def test_missing_device_is_reported():
    config, clock = servo_config(), ManualClock()
    drives = MemoryDrives(config, clock)
    drives.kill()
    driver = ServoDriver(config, clock, drives.client)
    driver.start()
    clock.until(lambda: driver.state().problems, 1.0, 'report')
    assert 'no connection to 127.0.0.1:502' in str(driver.state().problems[0])
    assert np.isinf(driver.state().age_s).all()
    driver.close()
    drives.close()
    assert clock.failures == []


def test_internal_error_is_reported_and_switches_the_drives_off(rig, monkeypatch):
    rig.move()
    monkeypatch.setattr(rig.driver, '_take', lambda readings: 1 / 0)
    assert rig.reported('link', 'internal') < REPORT_S
    rig.clock.until(rig.still, REPORT_S, 'standing still')
    assert not rig.driver.state().enabled
    monkeypatch.undo()
    rig.is_helped_by_a_new_start_alone(lambda: rig.driver.state().connected, 2.0)


def test_setup_registers_are_written_and_checked():
    rig = Rig()
    rig.clock.until(lambda: rig.driver.state().connected, 2.0, 'connection')
    rig.close()
    # The status word cannot be set, so the value read back differs.
    wrong = [{'register': {'address': 16, 'type': 'uint16'}, 'value': 7, 'comment': 'mode'}]
    rig = Rig(setup=wrong)
    rig.clock.until(lambda: rig.driver.state().problems, 1.0, 'report')
    assert 'register 16 (mode) reads' in str(rig.driver.state().problems[0])
    rig.close()


def test_close_switches_the_drives_off(rig):
    rig.move()
    rig.driver.close()
    assert rig.still()
    assert set(rig.drives.states) == {'disabled'}
    rig.driver.close()


@pytest.mark.parametrize(
    ('per_axis_unit', 'max_gap', 'requests'), [(False, 0, 12), (False, 25, 8), (True, 0, 12)]
)
def test_exchange_takes_the_expected_number_of_requests(per_axis_unit, max_gap, requests):
    config = servo_config(per_axis_unit=per_axis_unit, max_gap=max_gap)
    units = sorted({axis.unit for axis in config.axes})
    assert sum(UnitExchange(config, unit).requests for unit in units) == requests


def axis(name, base):
    return {'name': name, 'base': base, 'torque_limit_N_m': 1.0, 'speed_limit_rad_s': 1.0}


def setup(value, **register):
    return {'register': {'address': 24, 'type': 'uint16', **register}, 'value': value}


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'response_timeout_s': 0.2}, 'exceeds link_timeout_s'),
        ({'axes': [{'name': 'a', 'torque_limit_N_m': 40.0, 'speed_limit_rad_s': 1.0}]}, 'int16'),
        (
            {'axes': 2 * [{'name': 'a', 'torque_limit_N_m': 1, 'speed_limit_rad_s': 1}]},
            'different',
        ),
        (
            {'registers': REGISTERS | {'torque_command': {'address': 0, 'scale': 0.001}}},
            'register 0 of unit 1 is control_word of axis_1 and torque_command of axis_1',
        ),
        (
            {'axes': [axis('a', 0), axis('b', 1)]},
            'register 1 of unit 1 is torque_command of a and control_word of b',
        ),
        (
            {'axes': [axis('a', 65520)]},
            'axis a: base 65520 [+] address 16 leads to register 65536; the last one is 65535',
        ),
        ({'setup': [setup(70000)]}, '70000.* does not fit into uint16'),
        ({'setup': [setup(4.5)]}, 'value = 4.5: register 24 holds integers'),
        ({'setup': [setup(4, table='input')]}, 'register 24 is written: expected table holding'),
    ],
)
def test_inconsistent_servo_configurations_are_refused(change, message):
    fields = servo_config().model_dump(by_alias=True) | change
    with pytest.raises(ValueError, match=message):
        type(servo_config()).model_validate(fields)
