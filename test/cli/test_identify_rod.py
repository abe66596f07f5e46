"""`softarm identify --model cosserat`: axial stiffness and radii from poses at rest."""

import numpy as np
import pytest
from typer.testing import CliRunner

from softarm_ros.cli.identification.common import all_parameters, usual_groups
from softarm_ros.cli.identification.fit import chosen, fit
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.main import app
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.control.excited_rows import ExcitedRows
from softarm_ros.models.identifiable import parameters_of
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.loader import load_rig

GIVING = [
    'model={kind: cosserat, pretension_m: 0.002}',
    'arm.sections[0].axial_stiffness_N=1500',
    'arm.sections[0].body_mass_kg=0.03',
]


def seen_at_rest(rig, model, path):
    """Write 16 poses at rest of a single section, as a model predicts them; return the file."""
    rng, commands, tips = np.random.default_rng(2), [], []
    for size, turn in rng.uniform(0.0, (1.2, 2.0 * np.pi), (16, 2)):
        command = model.actuation_of(size * np.array([np.cos(turn), np.sin(turn)]))
        seen = model.forward(command).section_tips
        seen[:, :3, 3] += rng.normal(0.0, 1e-4, 3)
        commands.append(command)
        tips.append(seen)
    rows = ExcitedRows(np.full(16, np.nan), np.array(commands), np.array(tips))
    write_excitation(rig, rows, path)
    return path


def test_axial_stiffness_and_radii_of_a_rod_are_identified_from_its_poses(tmp_path):
    guess = load_rig('cable_arm_single', GIVING)
    true = {
        'arm.sections[0].axial_stiffness_N': 700.0,
        'arm.sections[0].cable_radius_m': 0.0121,
    }
    path = seen_at_rest(guess, with_values(guess, true).physics(), tmp_path / 'rod.csv')
    # A prior weighs as much as an error of 1 % of the arm; here it must not.
    parameters = [p.wider(20.0) for p in chosen(all_parameters(guess), ['axial', 'radii'])]
    found = fit(guess, read_recordings(guess, [path], 'nothing'), parameters, 16).values
    for field, value in true.items():
        assert found[field] == pytest.approx(value, rel=0.05), field


def test_each_cable_model_lists_its_own_parameters():
    runner = CliRunner()
    listed = {
        name: runner.invoke(app, ['identify', rig, *extra, '--parameters', '?']).stdout
        for name, rig, extra in (
            ('plain', 'cable_arm', []),
            ('rod', 'cable_arm', ['--model', 'cosserat', '--set', GIVING[1]]),
            ('pairs', 'trunk', []),
            ('rod on pairs', 'trunk', ['--model', 'cosserat']),
        )
    }
    assert 'axial_stiffness' in listed['rod'] and 'axial_stiffness' not in listed['plain']
    assert 'on base_x' in listed['pairs'] and 'on base_x' not in listed['rod on pairs']
    assert 'base passing_radius' in listed['rod on pairs']
    assert 'tip passing_radius' not in listed['rod on pairs']


def test_lengths_and_gains_of_arcs_on_single_cables_are_identified_by_default(tmp_path):
    guess = load_rig('cable_arm_single', ['model=constant_curvature'])
    true = {'arm.sections[0].cable_radius_m': 0.0145, 'arm.sections[0].length_m': 0.09}
    path = seen_at_rest(guess, with_values(guess, true).physics(), tmp_path / 'arcs.csv')
    parameters = [p.wider(20.0) for p in chosen(all_parameters(guess), usual_groups(guess))]
    found = fit(guess, read_recordings(guess, [path], 'nothing'), parameters, 16).values
    for field, value in true.items():
        assert found[field] == pytest.approx(value, rel=0.01), field


def test_fields_that_the_rig_file_does_not_state_are_not_parameters():
    arm = load_rig('cable_arm').arm
    groups = {p.group for p in parameters_of('cables', arm, 'cosserat')}
    assert groups == {'stiffness', 'lengths', 'radii', 'angles'}
    assert parameters_of('cables', arm) == parameters_of('cables', arm, 'cable_statics')
