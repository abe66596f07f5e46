"""The driver of a Dynamixel bus at emulated servos that turn the simulated trunk."""

import numpy as np
import pytest
from manual_clock import ManualClock
from memory_line import MemoryLine
from passing_arm import PassingArm

from softarm_ros.drivers.dynamixel.driver import DynamixelServos
from softarm_ros.drivers.problems import DriverError
from softarm_ros.emulation.emulated_servo_arm import EmulatedServoArm
from softarm_ros.rigs.arms.cable_driven import cable_limits
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

TARGET = np.array([0.003, -0.002, 0.004, 0.001, -0.006, 0.002])
SERVO = 'middle_1'  # id 1


class Running(PassingArm):
    """The simulated trunk behind servos, whose time goes by, and the driver of the rig."""

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
        """Return whether nothing moves, once what was under way has been done."""
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


def test_contractions_reach_the_cables_and_come_back(running, rig):
    running.ready()
    running.follow(TARGET, 1.5)
    step = rig.plant.stepper.step_m
    assert np.abs(running.plant.actuator_state().position - TARGET).max() < 1.01 * step
    reading = running.driver.reading()
    assert np.abs(reading.position - TARGET).max() < 1.01 * step
    assert 0.0 <= running.clock.now_s() - reading.stamp_s < 0.05
    # Servos say what they pull by their current, in units of 2.69 mA.
    unit_N = 2.69e-3 * 1.66 / 0.010
    true_N = running.plant.actuator_state().effort
    assert np.abs(reading.effort - true_N).max() < unit_N


def test_nothing_moves_before_follow_and_it_starts_from_where_the_arm_is(running):
    running.ready()
    assert running.still()
    assert running.arm.report()['servo_torque'] == '000000'
    reading = running.driver.reading()
    assert np.array_equal(reading.position, np.zeros(6))
    running.driver.follow(np.zeros(6))
    running.until(lambda: running.arm.report()['servo_torque'] == '111111')
    assert np.abs(running.plant.actuator_state().position).max() == 0.0


def test_mode_limits_and_watchdog_are_in_the_servos(running):
    from softarm_ros.drivers.dynamixel import control_table as table

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
def test_what_cannot_be_is_refused(running, command, message):
    running.ready()
    with pytest.raises(ValueError, match=message):
        running.driver.follow(command)
    assert running.still()


def test_hold_stops_and_stays(running):
    running.ready()
    running.follow(TARGET, 0.2)
    running.driver.hold()
    assert running.still()
    assert running.driver.not_ready() == ''


def test_commands_that_stop_are_stale(running):
    running.ready()
    running.follow(TARGET, 0.1)
    took = running.until(lambda: 'stale' in running.said(), 0.3)
    assert took <= 0.18
    assert running.still()
    assert 'command: stale' in running.driver.follow(TARGET)


# -- faults: noticed in time, named, nothing moves before reset and follow


def broken(running, fault, word, within_s):
    """Break something in motion; return what the driver says."""
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


def test_a_silent_servo_is_named_and_the_others_go_on_answering(running):
    said = broken(running, f'dynamixel silent {SERVO}', 'timeout', 0.3)
    assert said.startswith('middle_1: timeout id 1 has not answered for 150 ms: look at its plug')
    assert 'base_1' not in said and 'tip_2' not in said
    # Still silent: it cannot be used after a reset, and what is missing is said.
    running.driver.reset()
    running.until(
        lambda: 'no servo with id 1; on the bus: 2 3 4 5 6' in running.driver.not_ready()
    )
    running.arm.inject('dynamixel mend')
    recovered(running)


def test_an_overload_is_named_and_the_servo_started_anew_by_reset(running):
    said = broken(running, f'dynamixel overload {SERVO}', 'hardware', 0.3)
    assert 'middle_1: hardware 0x20 overload: look for a jammed tendon' in said
    recovered(running)


def test_an_error_that_persists_stays_after_reset(running):
    broken(running, f'dynamixel broken {SERVO}', 'hardware', 0.3)
    running.driver.reset()
    running.until(lambda: 'hardware 0x20' in running.driver.not_ready())
    assert running.still()
    running.arm.inject(f'dynamixel heal {SERVO}')
    recovered(running)


def test_a_servo_that_lost_its_power_for_a_moment_stops_all(running):
    said = broken(running, f'dynamixel restart {SERVO}', 'torque off', 0.3)
    assert 'middle_1: torque off it was switched off, or has restarted' in said
    recovered(running)


def test_a_wrong_id_is_said_with_those_on_the_bus(running):
    running.arm.inject(f'dynamixel id {SERVO} 13')
    running.driver.start()
    running.until(
        lambda: 'no servo with id 1; on the bus: 2 3 4 5 6 13' in running.driver.not_ready()
    )
    assert not running.driver.problems()  # it was never there
    running.arm.inject('dynamixel mend')
    running.until(lambda: not running.driver.not_ready())


def test_wrong_bits_are_no_positions(running):
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


def test_the_cable_out_in_motion_stops_servos_and_driver(running):
    running.ready()
    running.follow(TARGET, 0.2)
    running.line.unplug()
    took = running.until(lambda: 'link: lost' in running.said(), 0.3)
    assert took < 0.2
    # Each servo by its own watchdog, wherever it was.
    assert running.still()
    assert np.abs(running.plant.actuator_state().position).max() < np.abs(TARGET).max()
    assert running.arm.report()['servo_torque'] == '111111'
    running.line.plug()
    running.until(lambda: running.driver.values()['connected'] == 'true')
    assert 'link: lost' in running.driver.follow(TARGET)
    assert running.still()
    recovered(running)


def test_all_silent_is_the_line(running):
    said = broken(running, 'dynamixel delay 400', 'link', 0.4)
    assert 'link: lost: no servo answered for 150 ms' in said
    running.arm.inject('dynamixel delay 0')
    recovered(running)


def test_closing_leaves_the_servos_held_and_without_watchdog(running):
    from softarm_ros.drivers.dynamixel import control_table as table

    running.ready()
    running.follow(TARGET, 0.3)
    running.driver.close()
    assert running.still()
    for servo in running.arm.bus.servos:
        assert servo.torque and servo.get(table.BUS_WATCHDOG) == 0


def test_home_makes_this_the_rest(running):
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


def test_an_unknown_fault_lists_those_there_are(running):
    with pytest.raises(ValueError, match='dynamixel silent SERVO'):
        running.arm.inject('dynamixel burn')
    with pytest.raises(ValueError, match="no servo 'x'; there are base_1"):
        running.arm.inject('dynamixel silent x')
