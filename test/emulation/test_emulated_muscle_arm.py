"""The muscle arm with the valve firmware: outputs move muscles, faults reach the driver."""

import time

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.drivers.muscle_valves import MuscleValves
from softarm_ros.emulation.emulated_muscle_arm import EmulatedMuscleArm
from softarm_ros.runtime.addresses import addressed

# Runs against the wall clock; a busy machine may hold it up.

RIG = load_rig('pam_arm')
HOME = np.full(30, 0.1)
BENT = RIG.model().inverse((0.2, 0.06, 0.92)).actuation


class Bench:
    """Driver and emulated arm, advanced in real time by whoever waits."""

    def __init__(self, folder, emulator='native'):
        RIG.simulated_arm(0).step(None, 0.005)  # loads compiled code
        self.arm = EmulatedMuscleArm(RIG.simulated_arm(0), RIG.devices.valves, emulator)
        self.arm.start(folder)
        self.driver: MuscleValves = RIG.actuator_driver(addressed(RIG.devices, folder))
        self.driver.start()
        self.last_s = time.monotonic()

    def wait(self, what, seconds=8.0):
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, self.driver.not_ready()
            time.sleep(0.002)
            now = time.monotonic()
            self.arm.advance(now - self.last_s)
            self.last_s = now

    def home(self):
        self.wait(lambda: 'not homed' in self.driver.not_ready())
        self.driver.home()
        assert self.driver.not_ready() == ''

    def close(self):
        self.driver.close()
        self.arm.close()


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.close()


def test_lengths_come_about_as_the_driver_believes(bench):
    bench.home()
    assert 'native' in bench.arm.report()['emulator']
    start = bench.arm.plant.body.muscle_lengths()
    target = HOME.copy()
    target[[0, 4, 8]] -= 0.0015
    target[[1, 5, 6]] += 0.0015
    assert bench.driver.follow(target) is None
    bench.wait(lambda: np.abs(bench.driver.reading().position - target).max() < 1e-4)
    bench.driver.hold()
    bench.wait(lambda: bench.arm.report()['valves_open'] == '0')
    bench.wait(lambda: bench.driver._book.pending is None)
    report, values = bench.arm.report(), bench.driver.values()
    assert report['openings'] == values['pulses']
    assert int(report['openings']) >= 2 * 6
    assert report['both_valves_open'] == '0'
    assert 36.0 < float(values['round_trip_ms'].split()[0]) < 80.0  # 20 ms each way
    moved = bench.arm.plant.body.muscle_lengths() - start
    # Elastic muscles on an elastic rod: each way shows, none fully.
    assert np.all(moved[[0, 4, 8]] < -3e-4)
    assert np.all(moved[[1, 5, 6]] > 3e-4)
    assert abs(bench.arm.time_s - bench.arm.plant.time_s) <= RIG.plant.time_step_s + 1e-9


def test_a_posture_the_arm_cannot_have_is_a_problem_and_closes_all(bench):
    bench.home()
    assert bench.driver.follow(BENT) is None
    bench.wait(lambda: bench.arm.report()['valves_open'] != '0')
    assert bench.driver.follow(np.full(30, 0.094)) is None  # a rod cannot be compressed
    bench.wait(lambda: bench.driver.problems() != ())
    assert 'command: no stable equilibrium' in bench.driver.not_ready()
    bench.wait(lambda: bench.arm.report()['valves_open'] == '0')
    bench.driver.reset()
    bench.wait(lambda: bench.driver._book.pending is None)
    openings = bench.arm.report()['openings']
    assert bench.driver.follow(BENT) is None
    bench.wait(lambda: bench.arm.report()['openings'] != openings)


def test_an_unplugged_arm_stands_and_says_so(bench):
    bench.home()
    bench.driver.follow(BENT)
    bench.wait(lambda: bench.arm.report()['valves_open'] != '0')
    assert bench.arm.inject('valves unplug') == 'valves: unplug'
    pulled = time.monotonic()
    bench.wait(lambda: bench.driver.problems() != ())
    assert bench.driver.problems()[0].since_s - pulled < 0.3
    bench.wait(lambda: bench.arm.report()['valves_open'] == '0')
    bench.wait(lambda: time.monotonic() > pulled + 0.5)
    gas = bench.arm.plant.drives.relays.close_s.max()
    assert gas < bench.arm.time_s
    openings = bench.arm.report()['openings']
    bench.arm.inject('valves plug')
    bench.wait(lambda: bench.driver.values()['connected'] == 'true')
    bench.driver.reset()
    assert bench.driver.not_ready() == ''  # the board kept its power
    assert bench.arm.report()['openings'] == openings
    bench.driver.follow(HOME)
    bench.wait(lambda: bench.arm.report()['openings'] != openings)


@pytest.mark.parametrize('fault', ['valves explode', 'steppers unplug', 'valves delay x', ''])
def test_faults_that_there_are_not(bench, fault):
    with pytest.raises(ValueError, match=r'known: .*unplug'):
        bench.arm.inject(fault)
