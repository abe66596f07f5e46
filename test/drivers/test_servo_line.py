"""Answers in pieces, cut, mutated or made up: no crash, and no torque that was not commanded."""

import random
import time

import numpy as np
import pytest
from servo_cases import servo_config, wait_until
from tcp_proxy import Proxy

pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')

from softarm_ros.drivers.servo import ServoDriver
from softarm_ros.emulation.modbus_drive import EmulatedDrives

TORQUE = np.full(6, 0.25)


@pytest.fixture
def line():
    """Return a function that puts a treatment on the line of a driver in operation."""
    parts = []

    def connect(treat):
        drives = EmulatedDrives(servo_config(), watchdog_s=0.2).start()
        proxy = Proxy(drives.port, lambda data: treatment['now'](data))
        treatment = {'now': lambda data: [data]}
        driver = ServoDriver(servo_config(port=proxy.port))
        driver.start()
        parts.extend([driver, proxy, drives])
        wait_until(lambda: driver.state().connected, 2.0, 'connection')
        driver.enable()
        wait_until(lambda: driver.state().enabled, 2.0, 'enabling')
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


def written(drives):
    return {round(torque, 6) for _, _, torque in drives.torque_writes()}


def test_answers_in_pieces_are_put_together(line):
    def pieces(data):
        for k in range(0, len(data), 3):
            yield data[k : k + 3]
            time.sleep(0.0002)

    drives, driver = line(pieces)
    stream(driver, 0.5)
    assert driver.state().problems == ()
    assert driver.counts().lost == 0
    assert written(drives) == {0.0, 0.25}


@pytest.mark.parametrize('seed', range(4))
def test_mutated_answers(line, seed):
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
def test_made_up_answers_stop_the_arm(line, seed):
    rng = random.Random(seed)
    drives, driver = line(lambda data: [rng.randbytes(rng.randrange(1, 300))])
    began = time.monotonic()
    while not driver.state().problems:
        driver.set_torque(TORQUE)
        time.sleep(0.002)
        assert time.monotonic() - began < 0.3
    stream(driver, 0.3)
    assert 'internal' not in {problem.code for problem in driver.state().problems}
    assert written(drives) <= {0.0, 0.25}
    wait_until(lambda: not drives.torque.any(), 0.5, 'standing still')


def test_an_answer_to_another_request_is_not_taken(line):
    held = []

    def previous(data):
        held.append(data)
        return held[-2:-1]  # always one too late

    drives, driver = line(previous)
    began = time.monotonic()
    while not driver.state().problems:
        driver.set_torque(TORQUE)
        time.sleep(0.002)
        assert time.monotonic() - began < 0.3
    wait_until(lambda: not drives.torque.any(), 0.5, 'standing still')
    assert 'internal' not in {problem.code for problem in driver.state().problems}
