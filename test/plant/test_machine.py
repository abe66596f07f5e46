"""Machines: drawn values, their random streams, and spreads that are refused."""

import numpy as np
import pytest
from plant_cases import plant_config
from pydantic import ValidationError

from softarm_ros.plant.machine import SpreadConfig, patterns, wrong_spread
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig

FRAME, STIFF = 'pose_sensor.frame_turn_deg[]', 'sections[].bending_stiffness_N_m2'
SPREADS = {
    STIFF: {'sd_percent': 8.0},
    FRAME: {'sd': 0.5},
    'stepper.slack_m': {'to': 1e-3},
}


def varied(spreads=None, number=None, **fields):
    block = {'spreads': SPREADS if spreads is None else spreads}
    return plant_config(
        2, machine=block | ({} if number is None else {'number': number}), **fields
    )


def values(config, seed):
    return {draw.field: draw.drawn for draw in config.drawn(seed)}


def test_machine_0_has_the_stated_values():
    assert varied().drawn(0) == []
    assert varied().of_machine(0) == plant_config(2)
    assert plant_config(2).of_machine(5) == plant_config(2)  # without the block all are equal


def test_machine_has_the_drawn_values():
    config = varied()
    made, drawn = config.of_machine(3), values(config, 3)
    assert made.sections[0].bending_stiffness_N_m2 == drawn['sections[0].bending_stiffness_N_m2']
    assert made.sections[1].bending_stiffness_N_m2 == drawn['sections[1].bending_stiffness_N_m2']
    assert made.mocap.frame_turn_deg == tuple(
        drawn[f'pose_sensor.frame_turn_deg[{k}]'] for k in range(3)
    )
    assert made.stepper.slack_m == drawn['stepper.slack_m']
    assert len(drawn) == 6
    left = made.model_copy(update={name: getattr(config, name) for name in ('sections', 'mocap')})
    assert left.stepper.model_copy(update={'slack_m': 0.0}) == config.stepper


def test_seed_selects_the_machine_unless_the_file_states_its_number():
    config, third = varied(), varied(number=3)
    assert config.drawn(3) == third.drawn(0) == third.drawn(8)
    assert config.drawn(3) != config.drawn(4)
    assert (config.machine_number(7), third.machine_number(7)) == (7, 3)
    assert varied(number=0).drawn(7) == []


def test_draw_does_not_depend_on_other_draws():
    alone = values(varied({FRAME: SPREADS[FRAME]}), 11)
    among = values(varied(), 11)
    assert alone == {name: among[name] for name in alone}
    longer = varied({FRAME: {'sd': 1.0}})
    np.testing.assert_allclose(
        list(values(longer, 11).values()), [2.0 * value for value in alone.values()]
    )


def test_draw_is_raised_to_the_value_of_its_at_least_field():
    coulomb, static = 'axis.coulomb_friction_N', 'axis.static_friction_N'
    plant = load_rig('hydraulic_arm').plant_for('sim')
    block = plant.machine
    spread = block.spreads[static].model_copy(update={'at_least': None})
    free = block.model_copy(update={'spreads': {**block.spreads, static: spread}})
    without, raised = plant.model_copy(update={'machine': free}), 0
    for seed in (*range(1, 60), 225, 243):
        before, drawn = values(without, seed), values(plant, seed)
        assert drawn == before | {static: max(before[static], before[coulomb])}
        raised += drawn[static] > before[static]
        plant.of_machine(seed)
    assert raised >= 2
    with pytest.raises(ValueError, match='static_friction_N'):
        without.of_machine(243)


def test_draws_have_the_stated_distribution():
    config = varied()
    drawn = [values(config, seed) for seed in range(1, 1501)]
    column = {name: np.array([d[name] for d in drawn]) for name in drawn[0]}
    stated = config.sections[0].bending_stiffness_N_m2
    # A normal distribution that is cut at two deviations has 0.88 of its deviation.
    for k in range(2):
        found = column[f'sections[{k}].bending_stiffness_N_m2'] / stated
        assert found.mean() == pytest.approx(1.0, abs=0.008)
        assert found.std() == pytest.approx(0.88 * 0.08, rel=0.07)
        assert 0.84 <= found.min() < 0.86 and 1.14 < found.max() <= 1.16
    slack = column['stepper.slack_m']
    assert slack.mean() == pytest.approx(5e-4, rel=0.05)
    assert 0.0 <= slack.min() < 2e-5 and 9.8e-4 < slack.max() <= 1e-3
    several = np.corrcoef(list(column.values()))
    assert np.abs(several - np.eye(len(column))).max() < 0.1  # three standard errors: 0.08


def test_spread_with_together_draws_one_value_for_all_sections():
    config = varied({STIFF: {'sd_percent': 8.0, 'together': True}})
    first, second = values(config, 5).values()
    assert first == second != config.sections[0].bending_stiffness_N_m2


def test_field_of_value_0_stays_0_under_a_percent_spread():
    field, share = 'cable_friction_coefficient', {'sd_percent': 20.0}
    config = varied({field: share}).model_copy(update={field: 0.0})
    assert wrong_spread(config, field, SpreadConfig.model_validate(share)) is None
    assert values(config, 3) == {field: 0.0}
    rough = config.model_copy(update={field: 0.2})
    assert 0.0 < abs(values(rough, 3)[field] - 0.2) <= 0.08


@pytest.mark.parametrize(
    ('pattern', 'spread', 'says'),
    [
        ('sections[].lenght_m', {'sd': 1.0}, "'sections[].lenght_m' names no number"),
        ('sections.length_m', {'sd': 1.0}, "'sections.length_m' names no number"),
        ('segments_per_section', {'sd': 1.0}, "'segments_per_section' names no number"),
        ('sections[0].length_m', {'sd': 1.0}, "'sections[0].length_m': expected a field"),
        ('base_tilt_deg[]', {'sd_percent': 5.0}, 'base_tilt_deg[0] = 0 does not vary'),
        ('stepper.slack_m', {'sd': 1e-4}, 'stepper.slack_m = -0.0002: Input should be greater'),
        (
            'cable_free_length_m',
            {'sd_percent': 5.0, 'at_least': 'sections[].length_m'},
            "at_least = 'sections[].length_m' names 2 numbers; expected one",
        ),
        ('cable_free_length_m', {'sd': 1e-3, 'at_least': 'cable'}, "'cable' names no number"),
    ],
)
def test_wrong_spread_names_the_field_and_accepts_valid_spreads(pattern, spread, says):
    assert says in wrong_spread(plant_config(2), pattern, SpreadConfig.model_validate(spread))
    for good, fields in SPREADS.items():
        known = wrong_spread(plant_config(2), good, SpreadConfig.model_validate(fields))
        assert known is None
        assert good in patterns(plant_config(2))


@pytest.mark.parametrize(
    ('spread', 'says'),
    [
        ({}, 'expected one of sd_percent, sd and to'),
        ({'sd': 1.0, 'to': 2.0}, 'expected one of sd_percent, sd and to'),
        ({'sd_percent': 41.0}, 'less than or equal to 40'),
    ],
)
def test_spread_without_exactly_one_valid_measure_is_refused(spread, says):
    with pytest.raises(ValidationError, match=says):
        SpreadConfig.model_validate(spread)


def test_rig_with_a_misspelt_spread_is_refused_with_its_path_and_a_suggestion():
    spread = "plant.machine={spreads: {'sections[].lenght_m': {sd: 1.0e-3}}}"
    with pytest.raises(RigError) as refused:
        load_rig('cable_arm', settings=[spread])
    (problem,) = refused.value.problems
    assert problem.path == ('plant', 'machine', 'spreads', 'sections[].lenght_m')
    assert "did you mean 'sections[].length_m'" in problem.message
