"""Stepper driver with boards, in simulated time: AVR binary, and core compiled here."""

import numpy as np
import pytest
from manual_clock import ManualClock, wait_until
from memory_board import MemoryBoard, avr_binary
from stepper_cases import MOTORS, STEP_M, Rig, config, limits, rig_in_memory

from softarm_ros.drivers.cable_steppers import CableSteppers
from softarm_ros.drivers.messages import (
    Cause,
    HelloReply,
    Kind,
    ResetCause,
    Result,
    State,
    StepperState,
)
from softarm_ros.drivers.problems import DriverError
from softarm_ros.drivers.stepper_config import BoardLimitError, board_limits

ONE = np.ones(MOTORS)
FAR = 0.05 * ONE


@pytest.fixture(params=['native', 'avr'])
def rig(request):
    running = rig_in_memory(None if request.param == 'native' else avr_binary())
    yield running
    running.close()


def counted(rig):
    """Return microsteps as counted by the driver and by the coils, (m,) each."""
    reading = rig.driver.reading()
    steps = np.array([motor.step_m for motor in rig.driver.config.motors])
    return list(np.rint(reading.position / steps).astype(int)), list(rig.bench()['shafts'])


def test_nothing_moves_before_homing_and_a_command(rig):
    rig.driver.start()
    rig.says('not homed')
    assert 'not homed' in rig.driver.follow(FAR)
    rig.driver.home()
    rig.ready()
    rig.clock.sleep(0.1)
    assert rig.bench()['moved'] == (0,) * MOTORS
    assert rig.driver.values()['state'] == 'IDLE'


def test_commanded_steps_are_executed_exactly(rig):
    rig.home()
    phases = np.arange(MOTORS)

    def wave(t):
        return 0.006 * (np.cos(phases) - np.cos(2.0 * t + phases))

    assert rig.drive(wave, 1.5) is None
    rig.arrive(0.00731)
    target = [round(0.00731 / step) for step in np.where(phases == 2, -STEP_M, STEP_M)]
    rig.until(lambda: np.all(rig.driver.reading().velocity == 0.0))
    driver, coils = counted(rig)
    assert driver == coils == target
    assert rig.bench()['jumps'] == (0,) * MOTORS
    values = rig.driver.values()
    assert values['positions_microsteps'] == values['targets_microsteps']
    assert values['board_frames_lost'] == values['frames_corrupt'] == '0'


def test_hold_stops_the_motors_and_the_next_target_is_followed(rig):
    rig.home()
    assert rig.drive(lambda _: FAR, 0.6) is None
    held = rig.clock.now_s()
    for _ in range(60):
        rig.driver.hold()
        rig.clock.sleep(0.005)
    assert rig.turned_at - held < 0.1  # a cycle, a frame, 40 ms of braking
    assert not rig.driver.problems()
    assert rig.driver.values()['state'] == 'IDLE'
    driver, coils = counted(rig)
    assert driver == coils
    rig.arrive(0.0)


def test_unplugging_in_motion_stops_the_motors_until_reset_and_follow(rig):
    """Stopped within 250 ms, reported within 300 ms; reconnects, but moves only on command."""
    rig.home()
    assert rig.drive(lambda _: FAR, 0.6) is None
    pulled = rig.inject('unplug')
    refusal = rig.drive(lambda _: FAR, 2.0)
    assert 'link: lost' in refusal
    (problem,) = rig.driver.problems()
    assert problem.since_s - pulled < 0.3
    assert problem.outside
    rig.clock.sleep(0.35)
    stood = rig.turned_at - pulled
    print(f'reported after {1e3 * (problem.since_s - pulled):.0f} ms, stood {1e3 * stood:.0f} ms')
    assert stood < 0.25

    rig.inject('plug')
    rig.says('STOPPED cause 2')  # cause reported by the board: watchdog
    stopped = rig.bench()['shafts']
    assert 'link: lost' in rig.driver.follow(FAR)
    with pytest.raises(DriverError, match='reset it first'):
        rig.driver.home()
    rig.clock.sleep(0.3)
    assert rig.bench()['shafts'] == stopped

    rig.driver.reset()
    rig.ready()  # the step counts are still valid: no homing
    rig.clock.sleep(0.1)
    assert rig.bench()['shafts'] == stopped
    assert counted(rig)[0] == list(stopped)
    rig.arrive(0.0)
    assert rig.bench()['shafts'] == (0,) * MOTORS


def test_failed_thread_is_reported_until_the_driver_is_started_again(rig, monkeypatch):
    rig.home()
    monkeypatch.setattr(rig.driver, 'cycle', lambda *_: 1 / 0)
    rig.clock.until(rig.driver.problems, 1.0, 'a problem')
    rig.driver.reset()
    (problem,) = rig.driver.problems()
    assert str(problem).startswith('link: internal driver failed: ZeroDivisionError')
    monkeypatch.undo()
    rig.driver.close()
    rig.driver.start()
    rig.clock.until(lambda: rig.driver.values()['connected'] == 'true', 5.0, 'a new start')
    assert not rig.driver.problems()


def test_restarted_board_must_be_homed_again(rig):
    rig.home()
    rig.arrive(0.004)
    began = rig.inject('reset')
    rig.until(lambda: 'reset 2' in rig.driver.not_ready())
    first = min(problem.since_s for problem in rig.driver.problems())
    assert first - began < 0.3
    shafts = rig.bench()['shafts']
    rig.driver.reset()
    rig.says('not homed')
    assert 'not homed' in rig.driver.follow(FAR)
    rig.clock.sleep(0.2)
    assert rig.bench()['shafts'] == shafts
    assert rig.driver.reading() is None  # not 0, from which the restarted board counts
    rig.driver.home()
    rig.ready()
    rig.arrive(0.002)


def test_silent_motor_shield_is_reported_with_the_cause_from_the_board(rig):
    rig.home()
    assert rig.drive(lambda _: FAR, 0.3) is None
    began = rig.inject('shield 1 off')
    refusal = rig.drive(lambda _: FAR, 2.0)
    assert 'FAULT cause 4 a motor shield does not answer' in refusal
    assert rig.driver.problems()[0].since_s - began < 0.3
    assert rig.driver.problems()[0].outside
    rig.driver.reset()
    rig.says('not homed')
    rig.driver.home()
    rig.says('homing: COIL_BUS')
    rig.inject('shield 1 on')
    rig.driver.reset()
    rig.says('not homed')
    rig.driver.home()
    rig.ready()


def test_noisy_line_loses_frames_but_no_steps(rig):
    rig.home()
    rig.inject('noise 0.001')
    rig.inject('loss 0.0004')
    assert rig.drive(lambda t: np.minimum(0.008 * t, 0.015) * ONE, 2.5) is None
    rig.inject('noise 0')
    rig.inject('loss 0')
    rig.arrive(0.015)
    driver, coils = counted(rig)
    assert driver == coils

    def board_has_told():
        values = rig.driver.values()
        return int(values['board_frames_lost']) > 0 and int(values['board_frames_corrupt']) > 0

    rig.until(board_has_told)
    values = rig.driver.values()
    assert int(values['states_lost']) > 0
    assert int(values['frames_corrupt']) > 0
    assert not rig.driver.problems()


def test_slow_line_causes_no_problem_and_hold_always_disarms(rig):
    rig.inject('delay 40')  # as with Bluetooth
    rig.home()
    rig.arrive(0.003)
    values = rig.driver.values()
    assert 80.0 <= float(values['round_trip_ms'].split()[0]) < 130.0
    rig.driver.hold()  # no ARM stays in effect, even if its state comes late
    rig.until(lambda: rig.driver.values()['state'] == 'IDLE')
    rig.driver.follow(0.0 * ONE)
    rig.clock.sleep(0.02)
    rig.driver.hold()
    rig.clock.sleep(0.5)
    assert rig.driver.values()['state'] == 'IDLE'
    assert not rig.driver.problems()


def test_stale_commands_stop_the_motors(rig):
    rig.home()
    assert rig.drive(lambda _: FAR, 0.4) is None
    last = rig.clock.now_s()
    rig.says('command: stale')
    rig.clock.sleep(0.2)
    assert rig.turned_at - last < 0.25
    assert 'stale' in rig.driver.follow(FAR)
    rig.driver.reset()
    rig.ready()


def test_new_driver_takes_over_the_step_counts_of_the_board(rig):
    """A driver ends in motion without a message; the next one needs no homing and no reset."""
    rig.home()
    rig.arrive(0.004)
    rig.driver.follow(FAR)
    rig.inject('unplug')
    rig.driver.close()
    rig.driver.close()
    assert 'closed' in rig.driver.not_ready()
    rig.clock.sleep(0.3)  # the board stops by itself
    rig.inject('plug')
    again = CableSteppers(rig.driver.config, limits(), rig.clock, rig.board.open_port)
    again.start()
    rig.until(lambda: not again.not_ready())
    assert not again.problems()
    made = rig.bench()['moved']
    steps = np.array([motor.step_m for motor in again.config.motors])
    assert tuple(np.rint(again.reading().position / np.abs(steps)).astype(int)) == made
    assert made[0] >= round(0.004 / STEP_M)
    rig.clock.sleep(0.2)
    assert rig.bench()['moved'] == made
    again.close()


def test_board_of_another_kind_is_refused_by_name():
    clock = ManualClock()
    board = MemoryBoard('valves', clock)
    board.start()
    driver = CableSteppers(config(), limits(), clock, board.open_port)
    driver.start()
    expected = 'a board of valves is there, expected steppers'
    clock.until(lambda: expected in driver.not_ready(), 10.0, expected)
    with pytest.raises(DriverError, match=expected):
        driver.home()
    driver.close()
    board.close()
    assert clock.failures == []


def test_missing_port_is_named(tmp_path):
    driver = CableSteppers(config(tmp_path / 'missing'), limits())
    assert driver.not_ready() == 'steppers: not started'
    driver.start()
    wait_until(lambda: 'missing' in driver.not_ready(), 20.0, 'report')
    assert driver.reading() is None
    assert not driver.problems()
    driver.reset()
    driver.hold()
    driver.close()


@pytest.mark.parametrize(
    ('command', 'text'),
    [
        (np.zeros(5), r'shape \(5,\); expected \(6,\)'),
        (np.array([0, np.nan, 0, 0, 0, 0]), 'cable_1 = nan: expected a finite number of m'),
        (np.array([0, 0, 0, 0, 0, 0.0551]), r'cable_5 = 0.0551 m outside \[-0.045, 0.055\] m'),
        (np.array([-0.0451, 0, 0, 0, 0, 0]), 'cable_0 = -0.0451 m outside'),
    ],
)
def test_invalid_commands_are_refused_by_name(command, text):
    with pytest.raises(ValueError, match=text):
        CableSteppers(config(), limits()).follow(command)


def test_board_limits_are_the_cable_limits_in_microsteps():
    first, _, reversed_one, *_ = board_limits(config(), limits())
    assert first.max_speed == np.ceil(0.02 / STEP_M)
    assert first.acceleration == np.floor(0.5 / STEP_M)
    assert first.braking >= first.max_speed / 0.04
    assert (first.minimum, first.maximum) == (round(-0.045 / STEP_M), round(0.055 / STEP_M))
    assert (reversed_one.minimum, reversed_one.maximum) == (-first.maximum, -first.minimum)


@pytest.mark.parametrize(
    ('fields', 'speed', 'text'),
    [
        ({}, 0.2, r'motors\[0\].pulley_radius_m: 0.015 m .* 6791 microsteps/s .* at most 4000'),
        ({'acceleration_m_s2': 0.05}, 0.02, 'less than commands ask for, 0.1'),
        ({'acceleration_m_s2': 50.0}, 0.02, r'microsteps/s\^2 .* 100..120000'),
    ],
)
def test_limits_the_board_cannot_keep_are_refused(fields, speed, text):
    with pytest.raises(BoardLimitError, match=text):
        CableSteppers(config(**fields), limits(speed=speed))


@pytest.mark.parametrize('field', ['name', 'motor'])
def test_duplicate_motor_name_or_number_is_refused(field):
    motors = [motor.model_dump() for motor in config().motors]
    motors[1][field] = motors[0][field]
    with pytest.raises(ValueError, match=f'{field} .* is there twice'):
        config(motors=motors)


def test_exchanged_board_of_the_same_kind_must_be_homed_again():
    """Ports of two boards are exchanged: the other is homed, and has the counts of another arm."""
    clock = ManualClock()
    board, foreign = (MemoryBoard('steppers', clock) for _ in range(2))
    foreign.start()
    clock.sleep(0.5)
    board.start()
    at = [board]
    rig = Rig(board, clock, lambda *port: at[0].open_port(*port))
    other = Rig(foreign, clock, foreign.open_port)
    other.home()
    other.arrive(0.004)
    other.driver.close()
    rig.home()
    board.inject('unplug')
    rig.says('link')
    at[0] = foreign
    rig.says('or another is at its port')
    rig.driver.reset()
    rig.says('not homed')
    shafts = other.bench()['shafts']
    assert 'not homed' in rig.driver.follow(FAR)
    assert rig.driver.reading() is None  # not the position of the other arm
    clock.sleep(0.2)
    assert other.bench()['shafts'] == shafts
    rig.driver.home()
    rig.ready()
    assert np.all(rig.driver.reading().position == 0.0)
    rig.close()
    other.close()


class Agreeing:
    """A line that answers OK to everything."""

    def ask(self, frame_type, payload=b''):
        return Result.OK


@pytest.mark.parametrize(
    ('later_s', 'known'), [(3.0, True), (3.9, True), (4.5, False), (-60.0, False)]
)
def test_boards_with_equal_boot_id_are_distinguished_by_their_clock(later_s, known):
    """Boot ids are counts of starts; for 3 s the plug is out and may go to another board."""
    clock = ManualClock()
    driver = CableSteppers(config(), limits(), clock)
    reply = HelloReply(1, Kind.STEPPERS, (1, 0), MOTORS, ResetCause.POWER, 7)

    def tell(time_us):
        driver.connected(Agreeing(), reply)
        zeroed = (1 << MOTORS) - 1
        told = (time_us % 2**32, State.IDLE, Cause.NONE, 0, 0, zeroed, 0, (0,) * MOTORS)
        driver.state(StepperState(*told), clock.now_s())

    began_us = 2**32 - 1_000_000  # the counter wraps meanwhile
    tell(began_us)
    assert driver.reading() is not None
    driver.disconnected('the port is gone')
    clock.sleep(3.0)
    tell(began_us + round(1e6 * later_s))
    assert (driver.reading() is not None) is known
    assert [problem.code for problem in driver.problems()] == ([] if known else ['another'])
