"""Muscles on a bench: what the plant's are like is found, whatever the rig file says of them."""

import numpy as np
import pytest

from softarm_ros.cli.identify_muscles import (
    describe_muscles,
    identify_muscles,
    measure_muscles,
    tables,
)
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.loader import load_rig

OTHERS = (
    (),
    ('plant.pneumatics.filling_time_s=8.0', 'plant.pneumatics.supply_push_N=16.0'),
    ('plant.muscle_stiffness_N_m=4.0e+4', 'plant.softening=0.3'),
    ('plant.gas_springs=true',),
)


@pytest.fixture(scope='module', params=OTHERS, ids=['shipped', 'valves', 'softer', 'gas springs'])
def bench(request):
    rig = load_rig('pam_arm', ['plant.machine.number=0', *request.param])
    readings = measure_muscles(rig, seed=0)
    return rig, readings, identify_muscles(rig, readings)


def test_times_of_the_throttles_are_inside_their_intervals(bench):
    rig, _, found = bench
    truth = rig.plant_of(PamPlantConfig).pneumatics.filling_time_s
    for one in (found.emptying_time_s, found.filling_time_s):
        assert one.low < truth < one.high
        assert one.high - one.low < 0.06 * truth


def test_the_stiffness_at_the_length_of_the_straight_arm_is_inside_its_interval(bench):
    rig, _, found = bench
    plant = rig.plant_of(PamPlantConfig)
    full, softening = plant.full_stiffness_and_softening()
    span = plant.full_length_m - plant.min_length_m
    lost = softening * (plant.full_length_m - found.stiffness_at_m) / span
    assert found.stiffness_at_m == pytest.approx(0.1)
    assert found.stiffness_N_m.low < full * (1.0 - lost) < found.stiffness_N_m.high
    assert found.stiffness_N_m.high - found.stiffness_N_m.low < 0.1 * full
    assert found.softening_1_m.low < softening / span / (1.0 - lost) < found.softening_1_m.high


def test_how_much_stronger_the_supply_is_than_the_folds(bench):
    """Of push and pull the ratio alone shows in lengths."""
    rig, _, found = bench
    gas, drive = rig.plant_of(PamPlantConfig).pneumatics, MuscleArm.of(rig).valves
    truth = gas.supply_push_N / gas.max_pull_N
    ends = np.array([found.supply_push_N.low, found.supply_push_N.high]) / drive.max_pull_N
    assert 0.97 * ends[0] < truth < 1.03 * ends[1]


def test_tables_predict_where_other_muscles_come_to(bench):
    rig, readings, _ = bench
    other = measure_muscles(rig, seed=1)
    for curve, time, lengths in (
        (tables(readings)[0], other.deflating_s, other.deflating_m),
        (tables(readings)[1], other.inflating_s, other.inflating_m),
    ):
        shared = time <= curve.x[-1]
        np.testing.assert_allclose(curve(time[shared]), lengths[shared].mean(axis=1), atol=1e-3)


def test_it_says_what_to_write(bench):
    rig, readings, found = bench
    text = '\n'.join(describe_muscles(rig, readings, found))
    for name in ('deflating.lengths_m', 'inflating.times_s', 'supply_push_N', 'muscle_stiffness'):
        assert name in text
