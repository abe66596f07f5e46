"""Muscles on a bench: those of the plant are identified, whatever the rig file states."""

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
    ('plant.skeleton_stiffness_N_m=300.0', 'plant.pneumatics.max_pull_N=20.0'),
)


@pytest.fixture(scope='module', params=OTHERS, ids=['shipped', 'valves', 'softer'])
def bench(request):
    rig = load_rig('pam_arm', ['plant.machine.number=0', *request.param])
    readings = measure_muscles(rig, seed=0)
    return rig, readings, identify_muscles(rig, readings)


def test_intervals_contain_the_throttle_times(bench):
    rig, _, found = bench
    truth = rig.plant_of(PamPlantConfig).pneumatics.filling_time_s
    for one in (found.emptying_time_s, found.filling_time_s):
        assert one.low < truth < one.high
        assert one.high - one.low < 0.06 * truth


def test_the_interval_contains_the_stiffness_of_the_folds(bench):
    rig, _, found = bench
    truth = rig.plant_of(PamPlantConfig).skeleton_stiffness_N_m
    assert found.skeleton_N_m.low < truth < found.skeleton_N_m.high
    assert found.skeleton_N_m.high - found.skeleton_N_m.low < 0.05 * truth


def test_the_law_predicts_how_closed_muscles_give_under_weights(bench):
    """These readings were not fitted; they would reveal a muscle of another law."""
    _, readings, found = bench
    assert found.law_misses_m < 1e-4
    given = readings.pulled_m[:, -1] - readings.pulled_m[:, 0]
    assert given.min() > 0.015
    # A linear spring, as stiff as gas and folds at the first length, is off by a millimetre.
    stiffness = found.law.skeleton_N_m * (2.0 - found.law.shortest_m / readings.pulled_m[:, 0])
    assert np.abs(10.0 / stiffness - given).max() > 1e-3


def test_maximum_pull_and_supply_push_are_identified(bench):
    """Leaks while the pump holds a muscle empty reduce them; muscles differ by less than that."""
    rig, _, found = bench
    gas = rig.plant_of(PamPlantConfig).pneumatics
    for one, truth in (
        (found.max_pull_N, gas.max_pull_N),
        (found.supply_push_N, gas.supply_push_N),
    ):
        assert one.value == pytest.approx(truth, rel=0.015)
        assert one.low < one.value < one.high


def test_the_leak_time_of_closed_muscles_is_identified(bench):
    rig, _, found = bench
    truth = rig.plant_of(PamPlantConfig).pneumatics.leak_time_s
    assert found.leak_time_s.value == pytest.approx(truth, rel=0.005)


def test_the_filling_table_continues_by_the_law_where_bags_are_full(bench):
    _, readings, found = bench
    _, rising = tables(readings, found, (33, 33))
    law, throttle = found.law, (2.0 * found.law.longest_m - found.law.shortest_m)
    throttle /= found.filling_time_s.value
    end = law.longest_m + law.supply_push_N / law.skeleton_N_m
    for free in (0.108, 0.114, 0.124):
        slope = float(rising.slope(rising.inverse([free]))[0])
        assert slope == pytest.approx(
            throttle * (end - free) / (2.0 * free - law.shortest_m), rel=0.03
        )
    assert rising.y[-1] == pytest.approx(law.most_m)


def test_tables_predict_the_lengths_of_other_muscles(bench):
    rig, readings, found = bench
    other = measure_muscles(rig, seed=1)
    falling, rising = tables(readings, found, (17, 17))
    full = readings.deflating_m[0].mean()
    since_full = falling.inverse([full])[0] + other.deflating_s
    whole = (other.inflating_m < other.deflating_m[0] - 2e-3).all(axis=1)
    for curve, time, lengths in (
        (falling, since_full, other.deflating_m),
        (rising, other.inflating_s[whole], other.inflating_m[whole]),
    ):
        shared = time <= curve.x[-1]
        assert shared.sum() >= 5
        np.testing.assert_allclose(curve(time[shared]), lengths[shared].mean(axis=1), atol=1.5e-3)


def test_the_description_names_the_fields_to_write(bench):
    rig, readings, found = bench
    text = '\n'.join(describe_muscles(rig, readings, found))
    for name in ('deflating.lengths_m', 'inflating.times_s', 'supply_push_N', 'empty_length_m'):
        assert name in text


@pytest.mark.parametrize('bench', [()], indirect=True, ids=['shipped'])
def test_the_rig_file_states_the_identified_values(bench):
    rig, readings, found = bench
    for field, value in (bench_fields(rig, readings, found) | measured_parts(rig, 0)).items():
        assert values_of(rig, [field])[field] == pytest.approx(value, rel=3e-3, abs=1e-5), field


def test_identified_values_are_written(tmp_path):
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
