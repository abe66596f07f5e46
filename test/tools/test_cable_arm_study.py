import numpy as np
import pytest

from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.tools.cable_arm_study import (
    BASELINE,
    PROPOSED,
    circle_at,
    line_at,
    section_sweep,
)
from softarm_ros.tools.identify import identify, measure_single_cable

RIG = load_rig('cable_arm')


@pytest.fixture(scope='module')
def identification():
    return identify(RIG, measure_single_cable(RIG, seed=0))


def test_the_rig_file_holds_what_identification_gives(identification):
    section = RIG.sections[0]
    assert identification.bending_stiffness == pytest.approx(
        section.bending_stiffness_N_m2, rel=1e-3
    )
    assert identification.cutting_in_stiffness == pytest.approx(
        section.cutting_in_stiffness_N_m2, rel=1e-3
    )


def test_identification_is_not_the_plants_own_parameters(identification):
    plant = RIG.plant.sections[0]
    assert abs(identification.bending_stiffness / plant.bending_stiffness_N_m2 - 1.0) > 0.02
    assert abs(identification.cutting_in_stiffness / plant.cutting_in_stiffness_N_m2 - 1.0) > 0.02
    assert identification.contraction_rms < 0.2 * identification.baseline_rms


def open_loop_errors(make, bending_deg):
    path = make(RIG.model(PROPOSED), np.deg2rad(bending_deg), 0.03)
    rig = RIG.model_copy(update={'trajectories': {'path': path}, 'default_trajectory': 'path'})
    return {
        model: run_direct(rig, model=model, open_loop=True).error().mean
        for model in (BASELINE, PROPOSED)
    }


@pytest.mark.parametrize('make', [circle_at, line_at])
def test_cable_statics_is_better_where_sections_bend_a_lot(make):
    errors = open_loop_errors(make, 100.0)
    assert errors[PROPOSED] < 0.7 * errors[BASELINE]


@pytest.mark.parametrize('make', [circle_at, line_at])
def test_the_models_agree_where_sections_bend_little(make):
    errors = open_loop_errors(make, 15.0)
    assert errors[PROPOSED] == pytest.approx(errors[BASELINE], rel=0.1)


def test_closed_loop_tracks_and_repeats_exactly_for_a_seed():
    first = run_direct(RIG, 'line_small', seed=4)
    error = first.error()
    assert first.completed
    assert 1e-4 < error.mean < 3e-3  # an error of zero would be as wrong as a large one
    second = run_direct(RIG, 'line_small', seed=4)
    np.testing.assert_array_equal(first.samples.tip, second.samples.tip)
    other = run_direct(RIG, 'line_small', seed=5)
    assert not np.array_equal(first.samples.tip, other.samples.tip, equal_nan=True)


def test_single_section_bends_too_little_with_the_baseline():
    rows = section_sweep(
        load_rig('cable_arm_single'), np.deg2rad([45.0, 90.0]).tolist(), [0.0, np.pi / 3], seed=0
    )
    errors = {(r.model, round(np.rad2deg(r.bending)), round(r.direction, 2)): r for r in rows}
    for direction in (0.0, 1.05):
        base = errors[BASELINE, 90, direction].bending_error
        assert base > errors[BASELINE, 45, direction].bending_error > 0.0
        assert abs(errors[PROPOSED, 90, direction].bending_error) < 0.6 * base
