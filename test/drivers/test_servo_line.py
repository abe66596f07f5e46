"""
The servo driver with real pymodbus over loopback: no crash, no torque that was not commanded.

Answers come in pieces, cut, mutated, late or random. test_servo.py checks in simulated time how
soon that is reported.
"""

import contextlib
import random
import time

import numpy as np
import pytest
from manual_clock import wait_until
from servo_cases import servo_config
from tcp_proxy import Proxy

pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')

from softarm_ros.drivers.problems import DriverError
from softarm_ros.drivers.servo import ServoDriver
from softarm_ros.emulation.modbus_drive import EmulatedDrives

TORQUE = np.full(6, 0.25)
VISCOUS_N_M_S = 0.02  # friction of the emulated axes
PATIENCE_S = 20.0  # for a busy computer
# Only deliberate delays exceed these times, not those of a busy computer.
TIMES = {'response_timeout_s': 0.3, 'link_timeout_s': 0.6, 'command_timeout_s': 1.0}
# For tests in which nothing is to be late.
PATIENT = {'response_timeout_s': 5.0, 'link_timeout_s': 10.0, 'command_timeout_s': 10.0}


@pytest.fixture
def line():
    """Return a function that starts drives and a driver and then treats the data on their line."""
    parts = []

    def connect(treat=lambda data: [data], times=TIMES, **layout):
        watchdog_s = times['command_timeout_s']
        drives = EmulatedDrives(servo_config(**layout), watchdog_s=watchdog_s).start()
        proxy = Proxy(drives.port, lambda data: treatment['now'](data))
        treatment = {'now': lambda data: [data]}
        driver = ServoDriver(servo_config(port=proxy.port, **layout, **times))
        driver.start()
        parts.extend([driver, proxy, drives])
        wait_until(lambda: driver.state().connected, PATIENCE_S, 'connection')
        driver.enable()
        wait_until(lambda: driver.state().enabled, PATIENCE_S, 'enabling')
        treatment['now'] = treat
        return drives, driver

    yield connect
    for part in parts:
        part.close()


def stream(driver, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        driver.set_torque(TORQUE)
        time.sleep(0.005)


def stream_until(driver, condition):
    def streamed():
        driver.set_torque(TORQUE)
        return condition()

    wait_until(streamed, PATIENCE_S, 'end of streaming')


def written(drives):
    return {round(torque, 6) for _, _, torque in drives.torque_writes()}


@pytest.mark.parametrize('per_axis_unit', [False, True])
def test_torques_arrive_over_tcp(line, per_axis_unit):
    drives, driver = line(times=PATIENT, per_axis_unit=per_axis_unit)
    torque = np.array([0.1, 0.2, -0.3, 0.4, -0.5, 1.5])

    def settled():
        """Return whether friction balances the torque, so that the speed is constant."""
        driver.set_torque(torque)
        state = driver.state()
        shown = np.allclose(state.torque, torque, atol=0.0011) and np.abs(state.position).min() > 0
        return shown and np.allclose(state.speed, torque / VISCOUS_N_M_S, rtol=0.01)

    wait_until(settled, PATIENCE_S, 'torques and the speeds they lead to')
    assert np.allclose(drives.torque, torque, atol=0.0005)
    assert np.allclose(driver.state().speed, drives.speed, rtol=0.02)
    assert driver.state().problems == ()


def test_second_driver_of_the_same_drives_is_refused_and_does_not_stop_them(line):
    drives, driver = line(times=PATIENT)
    stream_until(driver, lambda: np.allclose(drives.torque, TORQUE, atol=0.0005))
    second = ServoDriver(driver.config)
    second.start()
    try:
        stream_until(driver, lambda: second.state().problems)
        stream(driver, 0.1)
        said = str(second.state().problems[0])
    finally:
        second.close()
    where = f'{driver.config.host}:{driver.config.port}'
    assert said == f'link: {where} is driven by another program of this computer; end that first'
    assert np.allclose(drives.torque, TORQUE, atol=0.0005)
    assert driver.state().problems == ()


def test_ended_server_is_a_lost_link_and_reconnecting_moves_nothing(line):
    drives, driver = line()
    drives.kill()
    stream_until(driver, lambda: driver.state().problems)
    assert {problem.source for problem in driver.state().problems} == {'link'}
    wait_until(lambda: not drives.torque.any(), PATIENCE_S, 'watchdog of the drives')
    drives.revive()
    wait_until(lambda: driver.state().connected, PATIENCE_S, 'reconnection')
    drives.torque_writes()
    stream(driver, 0.2)
    assert written(drives) == {0.0}  # a link that comes back by itself moves nothing


def test_late_answers_count_as_timeouts_and_motion_resumes_after_reset(line):
    drives, driver = line()
    stream(driver, 0.1)
    drives.faults.delay_s = 1.2 * TIMES['response_timeout_s']
    stream_until(driver, lambda: driver.state().problems)
    assert driver.counts().timeouts > 0
    wait_until(lambda: not drives.torque.any(), PATIENCE_S, 'standing still')
    drives.faults.delay_s = 0.0

    def enabled_again():
        if driver.state().problems:  # from answers that were still late
            driver.reset()
        with contextlib.suppress(DriverError):
            driver.enable()
        return driver.state().enabled

    wait_until(enabled_again, PATIENCE_S, 'enabling')
    stream_until(driver, lambda: np.allclose(driver.state().torque, TORQUE, atol=0.0011))


def test_answers_in_pieces_are_reassembled(line):
    def pieces(data):
        for k in range(0, len(data), 3):
            yield data[k : k + 3]
            time.sleep(0.0002)

    drives, driver = line(pieces, PATIENT)
    stream(driver, 0.5)
    assert driver.state().problems == ()
    assert driver.counts().lost == 0
    assert written(drives) == {0.0, 0.25}


@pytest.mark.parametrize('seed', range(4))
def test_mutated_answers_cause_no_internal_error_and_no_other_torque(line, seed):
    rng = random.Random(seed)

    def mutate(data):
        changed = bytearray(data)
        if rng.random() < 0.3:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.05:
            del changed[rng.randrange(len(changed)) :]
        return [bytes(changed)] if changed else []

    drives, driver = line(mutate)
    stream(driver, 0.6)
    assert 'internal' not in {problem.code for problem in driver.state().problems}
    assert written(drives) <= {0.0, 0.25}


@pytest.mark.parametrize('seed', range(4))
def test_random_answers_stop_the_arm(line, seed):
    rng = random.Random(seed)
    drives, driver = line(lambda data: [rng.randbytes(rng.randrange(1, 300))])
    stream_until(driver, lambda: driver.state().problems)
    stream(driver, 0.3)
    assert 'internal' not in {problem.code for problem in driver.state().problems}
    assert written(drives) <= {0.0, 0.25}
    wait_until(lambda: not drives.torque.any(), PATIENCE_S, 'standing still')


@pytest.mark.parametrize('byte', [9, 11], ids=['address', 'count'])
def test_write_that_is_confirmed_for_other_registers_stops_the_arm(line, byte):
    def confirm_others(data):
        answer = bytearray(data)
        if answer[7] == 16:  # function: write registers; then address and count, 2 bytes each
            answer[byte] ^= 1
        return [bytes(answer)]

    drives, driver = line(confirm_others)
    stream_until(driver, lambda: driver.state().problems)
    told = str(driver.state().problems[0])
    assert ' written to ' in told and 'in the answer to: write ' in told
    wait_until(lambda: not drives.torque.any(), PATIENCE_S, 'standing still')


def test_answers_to_other_requests_stop_the_arm(line):
    held = []

    def previous(data):
        held.append(data)
        return held[-2:-1]  # always the previous answer

    drives, driver = line(previous)
    stream_until(driver, lambda: driver.state().problems)
    wait_until(lambda: not drives.torque.any(), PATIENCE_S, 'standing still')
    assert 'internal' not in {problem.code for problem in driver.state().problems}
