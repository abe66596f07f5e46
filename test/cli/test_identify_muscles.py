"""Muscles on a bench: what the plant's are like is found, whatever the rig file says of them."""

import numpy as np
import pytest

from softarm_ros.cli.identified_muscles import bench_fields, identified_fields, measured_parts
from softarm_ros.cli.identify_muscles import (
    describe_muscles,
    identify_muscles,
    measure_muscles,
    tables,
)
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.field_values import values_of
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
    assert found.stiffness_at_m == pytest.approx(0.1, rel=0.01)
    assert found.stiffness_N_m.low < full * (1.0 - lost) < found.stiffness_N_m.high
    assert found.stiffness_N_m.high - found.stiffness_N_m.low < 0.1 * full
    assert found.softening_1_m.low < softening / span / (1.0 - lost) < found.softening_1_m.high


def test_pull_and_push_are_told_by_what_the_pump_lifts(bench):
    """Less by what leaks while the pump holds a muscle empty; muscles differ by less than that."""
    rig, _, found = bench
    gas = rig.plant_of(PamPlantConfig).pneumatics
    for one, truth in (
        (found.max_pull_N, gas.max_pull_N),
        (found.supply_push_N, gas.supply_push_N),
    ):
        assert one.value == pytest.approx(truth, rel=0.015)
        assert one.low < one.value < one.high


def test_how_fast_closed_muscles_leak(bench):
    rig, _, found = bench
    truth = rig.plant_of(PamPlantConfig).pneumatics.leak_time_s
    assert found.leak_time_s.value == pytest.approx(truth, rel=0.005)


def test_the_filling_table_does_not_slow_down_where_some_bags_are_full(bench):
    _, readings, found = bench
    _, rising = tables(readings, (13, 11))
    full = readings.deflating_m[0].mean()
    skeleton = found.max_pull_N.value / (full - rising.y[0])
    head = full + found.supply_push_N.value / skeleton - 0.108
    slope = float(rising.slope(rising.inverse([0.108]))[0])
    assert slope == pytest.approx(head / found.filling_time_s.value, rel=0.05)
    assert rising.y[-1] == pytest.approx(full)


def test_tables_predict_where_other_muscles_come_to(bench):
    rig, readings, _ = bench
    other = measure_muscles(rig, seed=1)
    for curve, time, lengths in (
        (tables(readings, (13, 11))[0], other.deflating_s, other.deflating_m),
        (tables(readings, (13, 11))[1], other.inflating_s, other.inflating_m),
    ):
        shared = time <= curve.x[-1]
        np.testing.assert_allclose(curve(time[shared]), lengths[shared].mean(axis=1), atol=1e-3)


def test_it_says_what_to_write(bench):
    rig, readings, found = bench
    text = '\n'.join(describe_muscles(rig, readings, found))
    for name in ('deflating.lengths_m', 'inflating.times_s', 'supply_push_N', 'muscle_stiffness'):
        assert name in text


@pytest.mark.parametrize('bench', [()], indirect=True, ids=['shipped'])
def test_the_rig_file_states_what_is_identified(bench):
    rig, readings, found = bench
    for field, value in (bench_fields(rig, readings, found) | measured_parts(rig, 0)).items():
        assert values_of(rig, [field])[field] == pytest.approx(value, rel=3e-3, abs=1e-5), field


def test_what_is_found_is_written(tmp_path):
    settings = ['plant.machine.number=0', 'plant.pneumatics.filling_time_s=9.0']
    rig, path = load_rig('pam_arm', settings), tmp_path / 'new.yaml'
    lines = list(identified_fields(rig, 1, path))
    assert lines[-1] == f'written: {path}'
    new = load_rig(path)
    readings = measure_muscles(rig, 1)
    found = identify_muscles(rig, readings)
    for field, value in (bench_fields(rig, readings, found) | measured_parts(rig, 1)).items():
        assert values_of(new, [field])[field] == pytest.approx(value, rel=1e-5), field
    assert MuscleArm.of(new).valves.table()
