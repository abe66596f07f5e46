"""Driver of a Dynamixel bus with emulated servos that move the simulated trunk."""

import numpy as np
import pytest
from manual_clock import ManualClock
from memory_line import MemoryLine
from passing_arm import PassingArm

from softarm_ros.drivers.dynamixel import control_table as table
from softarm_ros.drivers.dynamixel.driver import DynamixelServos
from softarm_ros.drivers.dynamixel.packets import Instruction, Packet, encode
from softarm_ros.drivers.problems import DriverError
from softarm_ros.emulation.emulated_servo_arm import EmulatedServoArm
from softarm_ros.rigs.arms.cable_driven import cable_limits
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

TARGET = np.array([0.003, -0.002, 0.004, 0.001, -0.006, 0.002])
SERVO = 'middle_1'  # id 1


class Running(PassingArm):
    """The simulated trunk with its servos in passing time, and the driver of the rig."""

    def __init__(self, rig, folder):
        clock = ManualClock()
        self.line = MemoryLine(clock)
        config = rig.devices.dynamixel
        self.config = config
        self.plant = build_plant(rig, 0)
        step = rig.plant.stepper.step_m
        arm = EmulatedServoArm(self.plant, step, config, clock=clock, make_line=self.line.made)
        arm.start(folder)
        limits = cable_limits(rig.actuator_limits())
        super().__init__(clock, arm, DynamixelServos(config, limits, clock, self.line.open_port))

    def ready(self):
        self.driver.start()
        self.until(lambda: not self.driver.not_ready())

    def said(self):
        return '; '.join(map(str, self.driver.problems()))

    def still(self, duration=0.3):
        """Return whether nothing moves after motion under way has ended."""
        self.clock.sleep(0.6)
        before = self.plant.actuator_state().position
        self.clock.sleep(duration)
        return np.array_equal(self.plant.actuator_state().position, before)


@pytest.fixture(scope='module')
def rig():
    return load_rig('trunk')


@pytest.fixture
def running(rig, tmp_path):
    started = Running(rig, tmp_path)
    yield started
    started.close()


def test_commanded_contractions_reach_the_cables_and_are_read_back(running, rig):
    running.ready()
    running.follow(TARGET, 1.5)
    step = rig.plant.stepper.step_m
    assert np.abs(running.plant.actuator_state().position - TARGET).max() < 1.01 * step
    reading = running.driver.reading()
    assert np.abs(reading.position - TARGET).max() < 1.01 * step
    assert 0.0 <= running.clock.now_s() - reading.stamp_s < 0.05
    # Servos report their force as a current, in units of 2.69 mA.
    unit_N = 2.69e-3 * 1.66 / 0.010
    true_N = running.plant.actuator_state().effort
    assert np.abs(reading.effort - true_N).max() < unit_N


def test_servos_stay_off_before_follow_and_do_not_move_when_switched_on(running):
    running.ready()
    assert running.still()
    assert running.arm.report()['servo_torque'] == '000000'
    reading = running.driver.reading()
    assert np.array_equal(reading.position, np.zeros(6))
    running.driver.follow(np.zeros(6))
    running.until(lambda: running.arm.report()['servo_torque'] == '111111')
    assert np.abs(running.plant.actuator_state().position).max() == 0.0


def test_servos_are_set_to_mode_limits_and_watchdog(running):
    running.ready()
    for servo in running.arm.bus.servos:
        assert servo.get(table.OPERATING_MODE) == table.CURRENT_BASED_POSITION
        assert servo.get(table.GOAL_CURRENT) == round(2.0 / 2.69e-3)
        assert servo.get(table.BUS_WATCHDOG) == 10
        speed = servo.get(table.PROFILE_VELOCITY) * table.VELOCITY_RAD_S * 0.010
        assert 0.03 <= speed < 0.0303


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        (np.zeros(5), r'shape \(5,\)'),
        (np.array([0.007, 0, 0, 0, 0, 0]), r'base_1 = 0.007 m outside \[-0.006, 0.006\] m'),
        (np.array([0, 0, 0, np.nan, 0, 0]), 'middle_2 = nan: expected a finite number of m'),
    ],
)
def test_invalid_commands_are_refused_and_move_nothing(running, command, message):
    running.ready()
    with pytest.raises(ValueError, match=message):
        running.driver.follow(command)
    assert running.still()


def test_hold_stops_the_arm_and_keeps_it_still(running):
    running.ready()
    running.follow(TARGET, 0.2)
    running.driver.hold()
    assert running.still()
    assert running.driver.not_ready() == ''


def test_stale_commands_stop_the_arm_and_are_reported(running):
    running.ready()
    running.follow(TARGET, 0.1)
    took = running.until(lambda: 'stale' in running.said(), 0.3)
    assert took <= 0.18
    assert running.still()
    assert 'command: stale' in running.driver.follow(TARGET)


# -- faults: reported in time and by name; nothing moves before reset and follow


def broken(running, fault, word, within_s):
    """Inject a fault in motion; return the problems that the driver reports."""
    running.ready()
    running.follow(TARGET, 0.2)
    running.arm.inject(fault)
    end = running.clock.now_s() + within_s
    while word not in running.said():
        assert running.clock.now_s() < end, f'{word}: not within {within_s} s: {running.said()}'
        running.driver.follow(TARGET)
        running.clock.sleep(0.01)
    assert running.driver.follow(TARGET)  # refused
    assert running.still()
    return running.said()


def recovered(running):
    running.driver.reset()
    running.until(lambda: not running.driver.not_ready())
    assert running.still()
    running.follow(TARGET, 2.0)
    assert np.abs(running.driver.reading().position - TARGET).max() < 2e-5


def test_silent_servo_is_named_and_the_others_are_not(running):
    said = broken(running, f'dynamixel silent {SERVO}', 'timeout', 0.3)
    assert said.startswith('middle_1: timeout id 1 has not answered for 150 ms: look at its plug')
    assert 'base_1' not in said and 'tip_2' not in said
    # Still silent: a reset does not help, and the missing id is named.
    running.driver.reset()
    running.until(
        lambda: 'no servo with id 1; on the bus: 2 3 4 5 6' in running.driver.not_ready()
    )
    running.arm.inject('dynamixel mend')
    recovered(running)


def test_overload_is_named_and_reset_restarts_the_servo(running):
    said = broken(running, f'dynamixel overload {SERVO}', 'hardware', 0.3)
    assert 'middle_1: hardware 0x20 overload: look for a jammed tendon' in said
    assert running.driver.problems()[0].outside
    recovered(running)


def test_an_error_read_during_the_reset_that_ends_it_is_not_reported_again(running, monkeypatch):
    broken(running, f'dynamixel overload {SERVO}', 'hardware', 0.3)
    servo = next(one for one in running.arm.bus.servos if one.id == 1)
    read, resets = servo.read, []

    def read_while_reset(at, count):
        if at == table.TORQUE_ENABLE.address and not resets:
            resets.append(running.driver.reset())
        return read(at, count)

    monkeypatch.setattr(servo, 'read', read_while_reset)
    running.until(lambda: resets)
    running.until(lambda: not running.driver.not_ready())
    assert not running.driver.problems()


def test_persistent_hardware_error_remains_after_reset(running):
    broken(running, f'dynamixel broken {SERVO}', 'hardware', 0.3)
    running.driver.reset()
    running.until(lambda: 'hardware 0x20' in running.driver.not_ready())
    assert running.still()
    running.arm.inject(f'dynamixel heal {SERVO}')
    recovered(running)


def test_servo_restarted_by_a_power_loss_stops_all_servos(running):
    said = broken(running, f'dynamixel restart {SERVO}', 'torque off', 0.3)
    assert 'middle_1: torque off it was switched off, or has restarted' in said
    recovered(running)


def test_failed_thread_is_reported_until_the_driver_is_started_again(running, monkeypatch):
    running.ready()
    running.follow(TARGET, 0.2)
    monkeypatch.setattr(running.driver, '_exchange', lambda bus: 1 / 0)
    running.until(running.driver.problems)
    running.driver.reset()
    assert running.said().startswith('link: internal driver failed: ZeroDivisionError')
    assert running.driver.follow(TARGET) and running.still()
    monkeypatch.undo()
    running.driver.close()
    running.driver.start()
    running.until(lambda: not running.driver.not_ready())
    assert not running.driver.problems()


def test_missing_servo_id_is_reported_with_the_ids_on_the_bus(running):
    running.arm.inject(f'dynamixel id {SERVO} 13')
    running.driver.start()
    running.until(
        lambda: 'no servo with id 1; on the bus: 2 3 4 5 6 13' in running.driver.not_ready()
    )
    assert not running.driver.problems()  # it was never there
    running.arm.inject('dynamixel mend')
    running.until(lambda: not running.driver.not_ready())


def test_late_answers_are_not_reported_as_a_missing_servo(running):
    broken(running, 'dynamixel delay 40', 'timeout', 0.5)
    running.driver.reset()
    late = 'base_1: id 3 is on the bus, but has not answered within answer_timeout_s = 0.03 s'
    running.until(lambda: late in running.driver.not_ready())
    running.arm.inject('dynamixel mend')
    recovered(running)


@pytest.mark.parametrize(
    'fault',
    ['delay -5', 'delay inf', 'delay soon', f'id {SERVO} 300', 'corrupt 2', 'corrupt often'],
)
def test_injected_nonsense_is_refused_with_its_range(running, fault):
    with pytest.raises(ValueError, match=r'expected (a probability of )?0 to \d+'):
        running.arm.inject(f'dynamixel {fault}')


def refuse(servo, monkeypatch, address):
    """Let a servo answer reads at an address with an error and without data."""
    read = servo.read
    refusal = 1, b''
    monkeypatch.setattr(
        servo, 'read', lambda at, count: refusal if at == address else read(at, count)
    )


def test_error_in_place_of_a_position_stops_all_servos_and_is_no_position(running, monkeypatch):
    running.ready()
    running.follow(TARGET, 2.0)
    before = running.driver.reading().position
    refuse(running.arm.bus.servos[0], monkeypatch, table.PRESENT_CURRENT.address)
    running.until(lambda: 'error 1' in running.said(), 0.3)
    assert 'base_1: error 1 id 3: read 10 at 126: the instruction failed' in running.said()
    assert running.still()
    assert np.abs(running.driver.reading().position - before).max() < 2e-5
    monkeypatch.undo()
    recovered(running)


def test_error_in_the_answer_to_a_ping_is_reported_and_tried_again(running, monkeypatch):
    answer, ping = running.line._answer, encode(Packet(1, Instruction.PING))
    garbled = encode(Packet(1, Instruction.STATUS, b'\x03'))
    monkeypatch.setattr(
        running.line, '_answer', lambda data: garbled if data == ping else answer(data)
    )
    running.driver.start()
    running.until(lambda: 'id 1: ping: CRC error in the packet' in running.driver.not_ready())
    monkeypatch.undo()
    running.until(lambda: not running.driver.not_ready())


def test_corrupt_answers_are_not_taken_as_positions(running):
    running.ready()
    running.arm.inject('dynamixel corrupt 0.05')
    worst = 0.0
    end = running.clock.now_s() + 3.0
    while running.clock.now_s() < end and not running.driver.problems():
        running.driver.follow(TARGET)
        running.clock.sleep(0.01)
        worst = max(worst, np.abs(running.driver.reading().position).max())
    assert running.driver.counts().lost > 10
    assert worst <= np.abs(TARGET).max() + 1e-4
    assert 'hardware' not in running.said()


def test_unplugging_in_motion_stops_servos_and_driver_until_reset(running):
    running.ready()
    running.follow(TARGET, 0.2)
    running.line.unplug()
    took = running.until(lambda: 'link: lost' in running.said(), 0.3)
    assert took < 0.2
    assert [problem.outside for problem in running.driver.problems()] == [True]
    # Each servo stops by its own watchdog, wherever it is.
    assert running.still()
    assert np.abs(running.plant.actuator_state().position).max() < np.abs(TARGET).max()
    assert running.arm.report()['servo_torque'] == '111111'
    running.line.plug()
    running.until(lambda: running.driver.values()['connected'] == 'true')
    assert 'link: lost' in running.driver.follow(TARGET)
    assert running.still()
    recovered(running)


def test_silence_of_all_servos_is_reported_as_a_lost_link(running):
    said = broken(running, 'dynamixel delay 400', 'link', 0.4)
    assert 'link: lost: no servo answered for 150 ms' in said
    assert [problem.outside for problem in running.driver.problems()] == [False]
    running.arm.inject('dynamixel delay 0')
    recovered(running)


def test_close_leaves_servos_under_torque_and_without_watchdog(running):
    running.ready()
    running.follow(TARGET, 0.3)
    running.driver.close()
    assert running.still()
    for servo in running.arm.bus.servos:
        assert servo.torque and servo.get(table.BUS_WATCHDOG) == 0


def test_home_declares_the_present_position_as_zero(running):
    running.ready()
    running.follow(TARGET, 1.0)
    with pytest.raises(DriverError, match='moving'):
        running.driver.home()
    running.driver.hold()
    assert running.still()
    running.driver.home()
    assert np.abs(running.driver.reading().position).max() == 0.0
    zeros = list(map(float, running.driver.values()['zero_deg'].split()))
    expected = [s.zero_deg + np.rad2deg(t / 0.010) for s, t in zip(running.config.servos, TARGET)]
    assert np.abs(np.array(zeros) - expected).max() < 0.2


def test_home_is_refused_until_the_servos_have_come_to_rest(running):
    running.ready()
    running.follow(TARGET, 0.25)
    running.driver.hold()
    with pytest.raises(DriverError, match=r'still moves by \d+ deg/s \(limit 4 deg/s\)'):
        running.driver.home()
    assert running.still()
    running.driver.home()
    assert np.abs(running.driver.reading().position).max() == 0.0


def test_unknown_fault_or_servo_is_refused_with_the_known_ones(running):
    with pytest.raises(ValueError, match='dynamixel silent SERVO'):
        running.arm.inject('dynamixel burn')
    with pytest.raises(ValueError, match="no servo 'x'; there are base_1"):
        running.arm.inject('dynamixel silent x')
