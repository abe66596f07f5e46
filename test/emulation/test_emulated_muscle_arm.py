"""The muscle arm with the valve firmware's core: outputs move muscles, in simulated time."""

import numpy as np
import pytest
from manual_clock import ManualClock
from memory_board import MemoryBoard
from passing_arm import PassingArm

from softarm_ros import load_rig
from softarm_ros.drivers.muscle_valves import MuscleValves
from softarm_ros.emulation.emulated_muscle_arm import EmulatedMuscleArm
from softarm_ros.models.arm_model import ModelError
from softarm_ros.runtime.arm_assembly import build_plant

RIG = load_rig('pam_arm')
HOME = RIG.model().rest_configuration
STEP_S = 0.002
REFUSED_M = 0.095


def tensions(lengths):
    """Return the tensions of the model, which here refuses postures with all muscles short."""
    if lengths.max() < REFUSED_M:
        raise ModelError('no stable equilibrium')
    return RIG.model().muscle_tensions(lengths)


class Bench(PassingArm):
    """Driver and emulated arm, in the time of a clock."""

    def __init__(self, folder):
        clock = ManualClock()
        board = MemoryBoard('valves', clock)
        valves = RIG.devices.valves
        arm = EmulatedMuscleArm(build_plant(RIG, 0), valves, clock=clock, board=board)
        arm.start(folder)
        model = RIG.model()
        driver = MuscleValves(
            valves,
            RIG.arm.valves,
            RIG.actuator_names,
            model.rest_configuration,
            RIG.actuator_limits().max_speed,
            tensions,
            clock,
            board.open_port,
        )
        driver.start()
        super().__init__(clock, arm, driver, STEP_S)

    def wait(self, what, seconds=8.0):
        self.clock.until(what, seconds, self.driver.not_ready())

    def home(self):
        self.wait(lambda: 'not homed' in self.driver.not_ready())
        self.driver.home()
        assert self.driver.not_ready() == ''


@pytest.fixture(scope='module')
def bent():
    return RIG.model().inverse((0.2, 0.06, 0.92)).actuation


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.close()


def test_pulses_and_gas_match_the_lengths_estimated_by_the_driver(bench):
    bench.home()
    drives = bench.arm.plant.drives
    start, gas = bench.arm.plant.body.muscle_lengths(), drives.gas
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
    # Soft muscles on an elastic rod: both directions show, but little motion.
    assert np.all(moved[[0, 4, 8]] < -1e-4)
    assert np.all(moved[[1, 5, 6]] > 1e-4)
    assert np.abs(moved).max() < 1.5e-3
    # The gas itself changes as the driver counts, within the differences between throttles.
    folds = RIG.plant.skeleton_stiffness_N_m
    empty = RIG.plant.full_length_m - RIG.plant.pneumatics.max_pull_N / folds
    before, after = (
        0.5 * (empty + np.sqrt(empty**2 + 4.0 * g / folds)) for g in (gas, drives.gas)
    )
    way = target - HOME
    np.testing.assert_allclose(after - before, way, atol=0.15 * np.abs(way).max())
    assert abs(bench.arm.time_s - bench.arm.plant.time_s) <= RIG.plant.time_step_s + 1e-9


def test_impossible_posture_is_reported_and_closes_all_valves(bench, bent):
    bench.home()
    assert bench.driver.follow(bent) is None
    bench.wait(lambda: bench.arm.report()['valves_open'] != '0')
    assert bench.driver.follow(np.full(30, REFUSED_M - 0.001)) is None
    bench.wait(lambda: bench.driver.problems() != ())
    assert 'command: no stable equilibrium' in bench.driver.not_ready()
    bench.wait(lambda: bench.arm.report()['valves_open'] == '0')
    bench.driver.reset()
    bench.wait(lambda: bench.driver._book.pending is None)
    openings = bench.arm.report()['openings']
    assert bench.driver.follow(bent) is None
    bench.wait(lambda: bench.arm.report()['openings'] != openings)


def test_unplugged_arm_closes_its_valves_and_the_loss_is_reported(bench, bent):
    bench.home()
    bench.driver.follow(bent)
    bench.wait(lambda: bench.arm.report()['valves_open'] != '0')
    assert bench.arm.inject('valves unplug') == 'valves: unplug'
    pulled = bench.clock.now_s()
    bench.wait(lambda: bench.driver.problems() != ())
    assert bench.driver.problems()[0].since_s - pulled < 0.3
    bench.wait(lambda: bench.arm.report()['valves_open'] == '0')
    bench.wait(lambda: bench.clock.now_s() > pulled + 0.5)
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
def test_unknown_faults_are_refused_with_the_known_ones(bench, fault):
    with pytest.raises(ValueError, match=r'known: .*unplug'):
        bench.arm.inject(fault)
