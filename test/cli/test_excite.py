"""`softarm excite`, reading its files, and identification of the plant from them."""

import contextlib
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from softarm_ros.cli import live_excitation
from softarm_ros.cli.identification.common import all_parameters
from softarm_ros.cli.identification.fit import chosen, fit
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.main import app
from softarm_ros.cli.measured_excitation import heading_of
from softarm_ros.cli.measured_run import MeasurementError
from softarm_ros.cli.prediction import predict
from softarm_ros.cli.read_run import read_run
from softarm_ros.cli.score import predictions, score
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.excite import plan_excitation

LENGTH = 'arm.sections[0].length_m'


def excited(path: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, ['excite', *arguments, '--csv', str(path)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ('name', 'kind', 'wrong_m', 'hold_out'),
    [
        ('cable_arm_single', 'quasi-static', 0.084, 'blocks'),
        ('trunk', 'random', 0.092, 'blocks'),
        ('trunk', 'steps', 0.092, 'later'),
    ],
)
def test_identification_from_an_excitation_corrects_a_wrong_length(
    tmp_path, name, kind, wrong_m, hold_out
):
    path, setting = tmp_path / 'excited.csv', f'{LENGTH}={wrong_m}'
    output = excited(
        path, name, '--kind', kind, '--count', '10', '--dwell-s', '1.5', '--set', setting
    )
    assert 'poses at rest' in output or kind == 'steps'
    rig = load_rig(name, [setting])
    truth = values_of(load_rig(name), ['plant.sections[0].length_m'])['plant.sections[0].length_m']
    recorded = read_recordings(rig, [path], hold_out)
    found = fit(rig, recorded, chosen(all_parameters(rig), ['lengths']), 60)
    assert abs(found.values[LENGTH] - truth) < 0.35 * abs(wrong_m - truth)
    run = recorded[0].seen_by(rig, recorded[0].test)
    before, after = (
        score(predict(r, r.physics(), run), run).errors[0].rms for r in (rig, found.rig(rig))
    )
    assert after < 0.6 * before


def test_a_tip_load_bends_the_arm_and_is_stated_in_the_file(tmp_path):
    light, heavy = tmp_path / 'light.csv', tmp_path / 'heavy.csv'
    arguments = ('trunk', '--kind', 'random', '--count', '3', '--dwell-s', '1.5')
    excited(light, *arguments)
    excited(heavy, *arguments, '--load-kg', '0.2')
    rig = load_rig('trunk')
    first, second = read_run(rig, light), read_run(rig, heavy)
    np.testing.assert_array_equal(first.commands, second.commands)
    assert np.linalg.norm(first.points['tip'] - second.points['tip'], axis=1).max() > 2e-3
    assert first.time_s is None
    assert first.in_base
    assert first.as_it_was(rig) is rig
    held = second.as_it_was(rig)
    assert held.tip_load_kg == 0.2
    with pytest.raises(ValueError, match='was recorded with'):
        predict(rig, rig.physics(), second)
    bent = predict(held, held.physics(), second).points['tip']
    by_score = predictions(rig, [rig.default_model], second)[-1].points['tip']
    np.testing.assert_array_equal(bent, by_score)


def test_a_file_with_two_tip_loads_is_refused(tmp_path):
    path = tmp_path / 'mixed.csv'
    excited(path, 'trunk', '--kind', 'random', '--count', '2', '--dwell-s', '1.0')
    heading, first, second = path.read_text(encoding='utf-8').splitlines()
    cells = second.split(',')
    cells[heading.split(',').index('tip_load_kg')] = '0.3'
    path.write_text('\n'.join([heading, first, ','.join(cells)]), encoding='utf-8')
    with pytest.raises(MeasurementError, match='the same tip_load_kg'):
        read_run(load_rig('trunk'), path)


def test_a_tip_load_stated_behind_the_file_name_identifies_the_compliance(tmp_path):
    """The files themselves state no load. Wrong statements are refused."""
    paths = []
    for name, load in (('light', '0.0'), ('heavy', '0.3')):
        path = tmp_path / f'{name}.csv'
        excited(path, 'trunk', '--kind', 'random', '--count', '8', '--dwell-s', '1.5',
                '--load-kg', load)  # fmt: skip
        heading, *rows = path.read_text(encoding='utf-8').splitlines()
        at = heading.split(',').index('tip_load_kg')
        silent = [row.split(',') for row in rows]
        for cells in silent:
            cells[at] = '0.0'
        path.write_text('\n'.join([heading, *map(','.join, silent)]), encoding='utf-8')
        paths.append(path)
    rig, (light, heavy) = load_rig('trunk'), paths
    stated = heavy.with_name('heavy.csv:tip_load_kg=0.3')
    assert read_run(rig, heavy).around['tip_load_kg'] == 0.0
    run = read_run(rig, stated)
    assert run.around['tip_load_kg'] == 0.3
    assert run.as_it_was(rig).tip_load_kg == 0.3
    gives = chosen(all_parameters(rig), ['compliance'])
    found = {}
    for second in (heavy, stated):
        recorded = read_recordings(rig, [light, second], 'nothing')
        found[second] = np.array(list(fit(rig, recorded, gives, 200).values.values()))
    assert np.all(found[heavy] < 0.01)  # the start of the search: no load is stated
    assert found[stated].max() > 0.05, found
    with pytest.raises(MeasurementError, match=r"'mass=0.1' behind the name"):
        read_run(rig, heavy.with_name('heavy.csv:mass=0.1'))
    with pytest.raises(MeasurementError, match=r'tip_load_kg = -0.1: expected at least 0'):
        read_run(rig, heavy.with_name('heavy.csv:tip_load_kg=-0.1'))
    with pytest.raises(MeasurementError, match=r"'tip_load_kg=x' behind the name"):
        read_run(rig, heavy.with_name('heavy.csv:tip_load_kg=x'))


def test_a_spreadsheet_export_is_read_and_a_wrong_arm_or_time_is_refused(tmp_path):
    path = tmp_path / 'steps.csv'
    excited(path, 'cable_arm_single', '--kind', 'steps', '--count', '2', '--dwell-s', '0.5')
    rig, text = load_rig('cable_arm_single'), path.read_text(encoding='utf-8')
    run = read_run(rig, path)
    path.write_text('\ufeff' + text.replace('\n', '\r\n'), encoding='utf-8', newline='')
    np.testing.assert_array_equal(read_run(rig, path).commands, run.commands)
    with pytest.raises(MeasurementError, match=r'of another arm.*cable_1 command_m.*of trunk are'):
        read_run(load_rig('trunk'), path)
    heading, *rows = text.splitlines()
    path.write_text('\n'.join([heading, rows[1], rows[0], *rows[2:]]), encoding='utf-8')
    with pytest.raises(MeasurementError, match=r'steps.csv:3: time does not increase'):
        read_run(rig, path)
    path.write_text(text + '\n\n', encoding='utf-8')
    np.testing.assert_array_equal(read_run(rig, path).commands, run.commands)
    without = rows[2][rows[2].index(',') :]
    path.write_text('\n'.join([heading, *rows[:2], without, *rows[3:]]), encoding='utf-8')
    with pytest.raises(MeasurementError, match=r'steps.csv:4: no time; expected one in all rows'):
        read_run(rig, path)


def written_by_hand(path, change=lambda heading, rows: None):
    """Write a file of a straight `cable_arm_single`, changed by `change`, and read it."""
    rig = load_rig('cable_arm_single')
    heading, length = heading_of(rig, rig.section_names), rig.physics().rest_length_m
    pose = [0.0, 0.0, length, 0.0, 0.0, 0.0, 1.0]
    rows = [['', 0.0, 0.0, 0.0, 9.81, c, -c / 2, -c / 2, *pose] for c in (0.01, 0.02, 0.005)]
    change(heading, rows)
    lines = [','.join(str(cell) for cell in line) for line in (heading, *rows)]
    path.write_text('\n'.join(lines), encoding='utf-8')
    return read_run(rig, path)


def cell(line, column, value):
    def change(heading, rows):
        rows[line - 2][heading.index(column)] = value

    return change


def columns(pick, factor):
    def change(heading, rows):
        for row in rows:
            for k in (k for k, name in enumerate(heading) if pick in name):
                row[k] *= factor

    return change


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        (cell(3, 'cable_2 command_m', 'nan'), r":3: cable_2 command_m = 'nan': expected a number"),
        (cell(4, 'proximal x_m', ''), r":4: proximal x_m = '': expected a number"),
        (cell(4, 'proximal x_m', '1;5'), r":4: proximal x_m = '1;5': expected a number"),
        (cell(4, 'proximal x_m', '1_0'), r":4: proximal x_m = '1_0': expected a number"),
        (cell(3, 'time_s', 'inf'), r":3: time_s = 'inf': expected a number; only the time"),
        (cell(4, 'tip_load_kg', 0.2), r':4: tip_load_kg = 0.2 after 0; expected the same'),
        (lambda _, rows: [cells.__setitem__(1, -3.0) for cells in rows],
         r':2: tip_load_kg = -3: expected at least 0'),
        (lambda _, rows: rows.__setitem__(2, [3.0]), r':4: 1 cells; expected 15 numbers'),
        (lambda _, rows: rows.clear(), r'no rows below the heading'),
        (lambda names, _: names.__setitem__(8, 'proximal X_m'), r'proximal X_m, .*proximal x_m,'),
    ],
)  # fmt: skip
def test_a_wrongly_edited_file_is_refused_by_line_or_column(tmp_path, change, says):
    with pytest.raises(MeasurementError, match=says):
        written_by_hand(tmp_path / 'a.csv', change)


def test_implausible_units_are_noted(tmp_path):
    assert not written_by_hand(tmp_path / 'a.csv').notes
    (said,) = written_by_hand(tmp_path / 'a.csv', columns('proximal z_m', 1e3)).notes
    assert re.fullmatch(r'what .* at most .* mm from the mount in m; the arm is \d+ mm long', said)
    (said,) = written_by_hand(tmp_path / 'a.csv', columns('command_m', 1e-3)).notes
    assert re.fullmatch(r'commands reach 0\.0\d+ % of what the actuators can in m', said)


def test_the_same_seed_writes_the_same_file_within_the_speed_limits(tmp_path):
    texts = []
    for i in range(2):
        path = tmp_path / f'{i}.csv'
        excited(path, 'cable_arm_single', '--kind', 'steps', '--count', '3', '--dwell-s', '0.5')
        texts.append(path.read_text(encoding='utf-8'))
    assert texts[0] == texts[1]
    rig = load_rig('cable_arm_single')
    run = read_run(rig, path)
    assert np.all(np.diff(run.time_s) > 0.09)
    speed = np.abs(np.diff(run.commands, axis=0)) / np.diff(run.time_s)[:, None]
    assert np.all(speed < rig.actuator_limits().max_speed)
    assert speed.max() > 0.2 * rig.actuator_limits().max_speed.max()


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('--kind', 'jump'), 'expected quasi-static'),
        (('--amplitude', '2'), 'at most 1'),
        (('--dwell-s', '0'), 'above 0'),
        (('--csv', 'nowhere/x.csv'), 'nowhere/x.csv: cannot be written'),
        (('--live', '--load-kg', '0.1'), 'hang it yourself'),
        (('--live', '--csv', __file__), 'a recording of a running arm needs a new file'),
    ],
)
def test_invalid_options_of_excite_are_refused(tmp_path, arguments, message):
    result = CliRunner().invoke(
        app, ['excite', 'cable_arm_single', '--csv', str(tmp_path / 'x.csv'), *arguments]
    )
    assert result.exit_code != 0
    assert message in f'{result.output} {result.exception}'


def test_ctrl_z_ends_a_live_excitation_whose_arm_would_move_on_without_it(monkeypatch):
    pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
    from softarm_ros.nodes import excitation_client

    class Client(contextlib.nullcontext):
        rows = None

        def run(self, plan, stopped, progress):
            assert signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL, 'it would be suspended'
            signal.raise_signal(signal.SIGTSTP)
            return 'interrupted' if stopped() else ''

    monkeypatch.setattr(live_excitation, 'require_arm', lambda client, rig: None)
    monkeypatch.setattr(excitation_client, 'ExcitationClient', lambda rig: Client(Client()))
    rig = load_rig('cable_arm_single')
    plan = plan_excitation(rig, 'random', count=2, amplitude=0.3, dwell_s=0.5, seed=0)
    assert live_excitation.lead(rig, plan, print) == (None, 'interrupted')


def test_planned_places_are_within_the_actuator_limits():
    rig = load_rig('hydraulic_arm')
    plan = plan_excitation(rig, 'random', count=8, amplitude=0.6, dwell_s=1.0, seed=0)
    model, limits = rig.physics(), rig.actuator_limits()
    assert 1 <= len(plan.places) <= 8
    assert all(limits.hold(model.actuation_of(place)) for place in plan.places)


def test_a_file_of_an_arm_with_only_its_tip_measured_is_read_back(tmp_path):
    path = tmp_path / 'pam.csv'
    excited(path, 'pam_arm', '--kind', 'random', '--count', '2', '--dwell-s', '1.0')
    rig = load_rig('pam_arm')
    assert len(rig.section_names) > 1
    run = read_run(rig, path)
    assert list(run.points) == [rig.section_names[-1]]
    assert len(run) == 2
    assert np.all(np.isfinite(run.points[rig.section_names[-1]]))


@pytest.mark.parametrize('cell', ['', 'x', 'nan'])
def test_a_file_with_a_cell_that_is_not_a_number_is_refused(tmp_path, cell):
    rig = load_rig('cable_arm_single')
    heading = heading_of(rig, rig.section_names)
    path = tmp_path / 'damaged.csv'
    row = ['', *['0.0'] * (len(heading) - 2), cell]
    path.write_text('\n'.join([','.join(heading), ','.join(row)]), encoding='utf-8')
    with pytest.raises(MeasurementError, match=r'damaged\.csv'):
        read_run(rig, path)
