"""`softarm score`: predictions of models and baselines, limits, rows, files and bags."""

import copy
import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from softarm_ros.cli import score as scoring
from softarm_ros.cli import score_figures
from softarm_ros.cli.baselines import MEAN, STRAIGHT
from softarm_ros.cli.chosen_rows import chosen_rows
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.main import app
from softarm_ros.cli.measured_run import MeasuredRun, MeasurementError, Mount
from softarm_ros.cli.prediction import Prediction, predict, within_limits
from softarm_ros.cli.read_run import read_run
from softarm_ros.cli.work_bar import WorkBar
from softarm_ros.control.controller import AnswerError
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.recording import MarkerConfig, MountConfig, RecordingConfig

MOUNT = {'position_m': (0.1, -0.2, 0.3), 'z_axis': (0.0, -1.0, 0.0), 'x_axis': (1.0, 0.0, 0.0)}
ROTATION = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
OFFSET = np.array([0.01, -0.02, 0.03])
PERIOD_S, DELAY_S = 0.02, 0.2


def mapped(rig, **fields):
    """Return the rig with a recording of its distal tip, a marker and an axis."""
    recording = RecordingConfig(
        time='t',
        commands={name: f'c_{name}' for name in rig.actuator_names},
        command_unit='mm',
        length_unit='mm',
        section_tips={'distal': ('x', 'y', 'z')},
        markers={
            'ball': {
                'columns': ('bx', 'by', 'bz'),
                'section': 'proximal',
                'offset_m': tuple(OFFSET),
            }
        },
        section_turns={'distal': ('qx', 'qy', 'qz', 'qw')},
        origin=('ox', 'oy', 'oz'),
        mount=MOUNT,
        delay_s=DELAY_S,
        **fields,
    )
    return rig.model_copy(update={'recording': recording})


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm')


def test_the_work_bar_is_shown_on_terminals_only_and_lines_are_always_printed(monkeypatch, capsys):
    def lines(bar):
        bar.show('reading [x]\udcff.csv', None)
        yield 'first'
        bar.show('predicting', 0.25)
        bar.show('predicting', 0.5)
        yield 'second'

    def printed(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with WorkBar() as bar:
            for line in bar.between(lines(bar)):
                print(line)
        return capsys.readouterr()

    monkeypatch.delenv('FORCE_COLOR', raising=False)
    assert printed() == ('first\nsecond\n', '')
    out, shown = printed(FORCE_COLOR='1', TERM='xterm')
    assert out == 'first\nsecond\n'
    assert 'reading [x]?.csv' in shown
    assert 'predicting' in shown


def test_predict_shows_the_growing_share_of_predicted_rows(rig):
    model, rows = rig.model(), commands_of(rig, 120)
    run = MeasuredRun('r', None, rows, {}, {}, {}, Mount(np.zeros(3), np.eye(3)))
    shown = []
    predict(rig, model, run, show=shown.append)
    assert shown == [0.0, 50 / 110, 100 / 110]  # the first ten are equal: the arm rests


def test_a_figure_can_show_any_file_and_marker_name(tmp_path):
    place, points = MarkerConfig(columns=('x', 'y', 'z'), section='distal'), np.eye(3)
    run = MeasuredRun(
        'a\udce9 $b^$.csv', None, points, {'L/R': points}, {'L/R': place}, {},
        Mount(np.zeros(3), np.eye(3)),
    )  # fmt: skip
    predicted = Prediction('m', {'L/R': 1.1 * points}, {})
    (figure,) = score_figures.draw(tmp_path, run, [predicted])
    assert figure.stat().st_size > 0


def test_the_figure_of_one_row_shows_it(tmp_path, monkeypatch):
    place, point = MarkerConfig(columns=('x', 'y', 'z'), section='distal'), np.ones((1, 3))
    run = MeasuredRun(
        'a.csv', np.zeros(1), point, {'tip': point}, {'tip': place}, {},
        Mount(np.zeros(3), np.eye(3)),
    )  # fmt: skip
    drawn = []
    monkeypatch.setattr(score_figures, 'save', lambda figure, path: drawn.append(figure) or path)
    score_figures.draw(tmp_path, run, [Prediction('m', {'tip': 2.0 * point}, {})])
    *coordinates, errors = drawn[0].axes
    assert all(line.get_marker() == '.' for plot in coordinates for line in plot.lines)
    assert errors.lines[0].get_ydata().tolist() == [0.0, 100.0]


def test_lines_of_figures_are_interrupted_at_gaps_in_time():
    time = np.delete(0.01 * np.arange(100), slice(30, 60))
    assert score_figures.gaps(time).tolist() == [30]
    assert not len(score_figures.gaps(time[:1]))


def commands_of(rig, count=60):
    """Return commands (n, m) [m]: the arm rests for the delay, then moves slowly within reach."""
    model = rig.model()
    stands = min(round(DELAY_S / PERIOD_S), max(count - 8, 0))
    at = np.concatenate([np.zeros(stands), np.linspace(0.0, 2.0 * np.pi, count - stands)])
    bends = 0.6 * np.stack([np.sin(at), 1.0 - np.cos(at), -np.sin(at), 0.5 * np.sin(2 * at)], 1)
    return np.array([model.actuation_of(bend) for bend in bends])


def quaternion(rotation):
    w = 0.5 * np.sqrt(1.0 + np.trace(rotation))
    r = rotation
    return [(r[2, 1] - r[1, 2]), (r[0, 2] - r[2, 0]), (r[1, 0] - r[0, 1]), 4 * w * w] / (4 * w)


def write(rig, path, commands, change=lambda i, values: values):
    """Write the poses of the default model for commands [m], measured DELAY_S after them."""
    model = rig.model()
    shift = round(DELAY_S / PERIOD_S)
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        names = ['x', 'y', 'z', 'bx', 'by', 'bz', 'qx', 'qy', 'qz', 'qw', 'ox', 'oy', 'oz']
        writer.writerow(['t', *(f'c_{name}' for name in rig.actuator_names), *names])
        for i, command in enumerate(commands):
            shape = model.forward(commands[max(i - shift, 0)])
            tip, ball = shape.section_tips[1], shape.section_tips[0]
            places = [tip[:3, 3], ball[:3, 3] + ball[:3, :3] @ OFFSET]
            origin = np.array([5.0, 6.0, 7.0 + 0.01 * i])
            seen = [1e3 * (MOUNT['position_m'] + ROTATION @ p) + origin for p in places]
            turn = quaternion(ROTATION @ tip[:3, :3])
            values = [PERIOD_S * i, *(1e3 * command), *seen[0], *seen[1], *turn, *origin]
            writer.writerow(change(i, values))
    return path


def test_a_model_predicts_its_own_poses_and_baselines_do_not(rig, tmp_path):
    mapped_rig = mapped(rig)
    run = read_run(mapped_rig, write(rig, tmp_path / 'a.csv', commands_of(rig)))
    rest, mean, model = scoring.predictions(mapped_rig, ['cable_statics'], run)
    own = scoring.score(model, run)
    assert [e.what for e in own.errors] == ['distal', 'ball', 'distal axis']
    assert [e.unit for e in own.errors] == ['mm', 'mm', 'deg']
    assert all(e.rows == 60 and e.rms < 1e-3 for e in own.errors), own
    for baseline in (rest, mean):
        found = scoring.score(baseline, run)
        assert all(e.rms > 3.0 for e in found.errors), found


def test_an_offset_of_3_mm_is_scored_as_3_mm(rig, tmp_path):
    def off(i, values):
        values[7] += 3.0  # distal x, mm
        return values

    mapped_rig = mapped(rig)
    run = read_run(mapped_rig, write(rig, tmp_path / 'a.csv', commands_of(rig), off))
    (model,) = scoring.predictions(mapped_rig, ['cable_statics'], run)[2:]
    found = {e.what: e for e in scoring.score(model, run).errors}
    for value in (found['distal'].rms, found['distal'].median, found['distal'].p90):
        assert value == pytest.approx(3.0, abs=1e-3)
    assert found['ball'].rms < 1e-3


def test_times_have_the_unit_of_the_rig_and_an_implausible_unit_is_noted(rig, tmp_path):
    def in_milliseconds(i, values):
        return [1e3 * values[0], *values[1:]]

    path = write(rig, tmp_path / 'a.csv', commands_of(rig), in_milliseconds)
    run = read_run(mapped(rig, time_unit='ms'), path)
    np.testing.assert_allclose(run.time_s, PERIOD_S * np.arange(60), atol=1e-12)
    assert run.notes == ()
    (note,) = read_run(mapped(rig), path).notes
    assert note.startswith('rows are 20 s apart by t in s; ')
    note = read_run(mapped(rig, time_unit='us'), path).notes[0]
    assert note.startswith('rows are 2e-05 s apart by t in us; ')


def test_unknown_commands_at_the_start_and_in_gaps_are_noted(rig, tmp_path):
    moving = commands_of(rig)[12:]
    (note,) = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', moving)).notes
    assert note.startswith('10 rows are of the first 0.2 s (recording.delay_s): what was')

    def later(i, values):
        return [values[0] + (0.4 if i >= 30 else 0.0), *values[1:]]

    (note,) = read_run(mapped(rig), write(rig, tmp_path / 'b.csv', commands_of(rig), later)).notes
    assert note.startswith('1 gaps of up to 0.42 s between rows: what was commanded there')


def test_duplicate_rows_count_once_and_decreasing_times_are_refused(rig, tmp_path):
    path = write(rig, tmp_path / 'a.csv', commands_of(rig))
    heading, *lines = path.read_text().splitlines()
    once = read_run(mapped(rig), path)
    lines[20] = lines[20].rsplit(',', 1)[0]  # an incomplete row, counted separately
    path.write_text('\n'.join([heading, *lines[:10], lines[9], lines[9], *lines[10:]]))
    run = read_run(mapped(rig), path)
    assert run.notes == (
        'left out: 2 rows of the same t as the row before',
        'left out: 1 incomplete rows',
    )
    np.testing.assert_array_equal(run.commands, np.delete(once.commands, 20, axis=0))
    path.write_text('\n'.join([heading, *lines[30:], *lines[:30]]))
    with pytest.raises(MeasurementError, match=r'a.csv: t goes back from 1.18 to 0 s at row 30'):
        read_run(mapped(rig), path)


def test_a_marker_at_the_origin_is_noted(rig, tmp_path):
    def lost(i, values):
        if i in (10, 11, 40):
            values[7:10] = 0.0, 0.0, 0.0
        return values

    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig), lost))
    (note,) = run.notes
    assert note.startswith('distal is at 0, 0, 0 in 3 of 60 rows; ')


def test_axes_of_a_flipped_body_are_left_out_and_counted(rig, tmp_path):
    def flipped(i, values):
        if i in (10, 11, 40):
            x, y, z, w = values[13:17]
            values[13:17] = [w, -z, y, -x]  # turned by 180 deg about x
        return values

    mapped_rig = mapped(rig)
    run = read_run(mapped_rig, write(rig, tmp_path / 'a.csv', commands_of(rig), flipped))
    assert 'left out: 3 axes of distal, turned by more than 60 deg at once' in run.notes
    (model,) = scoring.predictions(mapped_rig, ['cable_statics'], run)[2:]
    found = {e.what: e for e in scoring.score(model, run).errors}
    assert found['distal axis'].rows == 57
    assert found['distal axis'].rms < 1e-3


def test_axes_of_an_arm_that_gradually_bends_far_are_kept(rig, tmp_path):
    def bent(i, values):
        half = 0.5 * np.deg2rad(min(8.0 * i, 150.0))  # at rest, then bent by 150 deg for long
        values[13:17] = [np.sin(half), 0.0, 0.0, np.cos(half)]
        return values

    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig), bent))
    assert run.notes == ()
    assert np.all(np.isfinite(run.axes['distal']))


def test_of_two_axes_more_than_60_deg_apart_one_is_left_out(rig, tmp_path):
    def flipped(i, values):
        values[13:17] = [1.0, 0.0, 0.0, 0.0] if i == 1 else [0.0, 0.0, 0.0, 1.0]
        return values

    commands = commands_of(rig)[:2]
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands, flipped))
    assert run.notes == ('left out: 1 axes of distal, turned by more than 60 deg at once',)


def test_axes_before_and_after_a_pause_are_kept(rig, tmp_path):
    def bent(i, values):
        half = 0.5 * np.deg2rad(0.0 if i < 20 else 120.0)
        values[13:17] = [np.sin(half), 0.0, 0.0, np.cos(half)]
        if i == 40:
            values[13:17] = [0.0, 0.0, 0.0, 1.0]
        return [values[0] + (4.0 if i >= 20 else 0.0), *values[1:]]

    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig), bent))
    assert 'left out: 1 axes of distal, turned by more than 60 deg at once' in run.notes
    assert np.flatnonzero(~np.isfinite(run.axes['distal'][:, 0])).tolist() == [40]


def test_rows_without_a_time_are_left_out_and_counted(rig, tmp_path):
    def timeless(i, values):
        return values if i % 2 else ['', *values[1:]]

    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig), timeless))
    assert run.notes[-1] == 'left out: 30 incomplete rows'


def test_a_file_in_another_encoding_is_refused_with_the_expected_one(rig, tmp_path):
    path = write(rig, tmp_path / 'a.csv', commands_of(rig))
    path.write_text(path.read_text(encoding='utf-8'), encoding='utf-16')
    with pytest.raises(MeasurementError, match=r'a.csv: .* expected text in UTF-8'):
        read_run(mapped(rig), path)


def test_a_byte_that_is_not_utf_8_is_reported_by_its_line_in_a_long_file(rig, tmp_path):
    path = tmp_path / 'a.csv'
    path.write_bytes(b'a,b\n' + 20000 * b'1,2\n' + b'1,\xb5\n')
    with pytest.raises(MeasurementError, match=r'a.csv: .*line 20002 is not UTF-8'):
        read_run(mapped(rig), path)


@pytest.mark.parametrize('rows', ['0,99999', '99999', '0,-1', '0,99999s'])
def test_a_single_row_that_the_run_does_not_have_is_refused(rig, tmp_path, rows):
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig)))
    with pytest.raises(UsageError, match=rf"--rows '{rows}': .* a.csv has {len(run)} rows"):
        chosen_rows(run, rows, 1)


def test_commands_barely_beyond_a_limit_are_clipped_and_others_unchanged(rig):
    limits = rig.actuator_limits()
    span = limits.position_max - limits.position_min
    commands = np.array(
        [
            limits.position_max,
            limits.position_max + 0.005 * span,
            limits.position_max + 0.02 * span,
        ]
    )
    taken, clipped = within_limits(commands, limits)
    assert clipped == 1
    np.testing.assert_array_equal(taken[1], limits.position_max)
    np.testing.assert_array_equal(taken[2], commands[2])


def test_rows_that_a_model_refuses_are_counted_with_the_reason(rig, tmp_path):
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig)))
    beyond = run.commands.copy()
    beyond[5:8, 0] = 1.0
    run = replace(run, commands=beyond)
    found = predict(rig, rig.model(), run)
    assert len(found.notes) == 1
    assert found.notes[0].startswith('3 rows refused, as: ')
    assert scoring.score(found, run).errors[0].rows == 57
    run = replace(run, commands=np.ones_like(beyond))
    with pytest.raises(ValueError, match='refuses every row'):
        predict(rig, rig.model(), run)


@pytest.mark.parametrize('wrong', [lambda tips: tips[:1], lambda tips: np.nan * tips])
def test_a_model_that_returns_an_invalid_shape_raises_an_answer_error(rig, tmp_path, wrong):
    class Own(type(rig.model())):
        def forward(self, *args, **loads):
            shape = super().forward(*args, **loads)
            return SimpleNamespace(section_tips=wrong(shape.section_tips))

    model = copy.copy(rig.model())
    model.__class__ = Own
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig, 4)))
    with pytest.raises(AnswerError, match=r'model .* returned section_tips \[.*2 x 4 x 4 finite'):
        predict(rig, model, run)


def test_rows_beyond_the_actuator_limits_are_predicted_and_noted():
    trunk = load_rig('trunk')
    model, most = trunk.physics(), trunk.actuator_limits().position_max
    commands = np.array([0.5, 1.5, 1.005, -2.0])[:, None] * most
    tips = {'tip': model.section_tips_of(commands)[:, -1, :3, 3]}
    place = {'tip': MarkerConfig(columns=('', '', ''), section='tip')}
    run = MeasuredRun('a', None, commands, tips, place, {}, Mount(np.zeros(3), np.eye(3)))
    found = predict(trunk, model, run)
    clipped, beyond = found.notes
    assert clipped.startswith('1 rows up to 1 % of its range beyond')
    assert beyond == (
        '2 rows predicted beyond the limits of actuators; furthest: '
        'base_1 = -0.012 m outside [-0.006, 0.006] m'
    )
    error = scoring.score(found, run).errors[0]
    assert (error.rows, error.rms < 1.0) == (4, True)


@pytest.mark.parametrize(
    ('rows', 'count'), [(None, 60), ('50:', 10), (':5', 5), ('0,3,10:12', 4), ('1s:', 10)]
)
def test_the_rows_option_selects_rows(rig, tmp_path, rows, count):
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig)))
    assert len(chosen_rows(run, rows, 1)) == count


@pytest.mark.parametrize('rows', ['a', '1:2:3', '70:', '5x:', '1_0:20', '1_0s:'])
def test_invalid_values_of_the_rows_option_are_refused(rig, tmp_path, rows):
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig)))
    with pytest.raises(UsageError, match='--rows'):
        chosen_rows(run, rows, 1)


def test_settled_rows_command_unit_and_command_zero_are_applied(tmp_path):
    rig = load_rig('pneumatic_arm')
    recording = RecordingConfig(
        time='t',
        commands={name: f'p{i}' for i, name in enumerate(rig.actuator_names)},
        command_unit='bar',
        command_zero='first_row',
        section_tips={'distal': ('x', 'y', 'z')},
        settled_s=0.5,
        settled_within=0.01,
        mount={**MOUNT, 'position_m': (0.0, 0.0, 0.0)},
    )
    rig = rig.model_copy(update={'recording': recording})
    lines = ['t,p0,p1,p2,p3,p4,p5,x,y,z']
    for i in range(40):
        p = 1.03 if i < 20 else 1.13
        lines.append(f'{0.1 * i},{p},1.03,1.03,1.03,1.03,1.03,0,0,0.2')
    path = tmp_path / 'a.csv'
    path.write_text('\n'.join(lines))
    run = read_run(rig, path)
    # half a second from the start, and from the step at 2 s on
    np.testing.assert_allclose(run.time_s, 0.1 * np.array([*range(5, 20), *range(25, 40)]))
    np.testing.assert_allclose(run.commands[-1], [1e4, 0, 0, 0, 0, 0], atol=1e-6)
    assert run.notes == ('left out: 10 rows not settled',)
    cut = tmp_path / 'cut.csv'  # the commands of its first row are not those of the arm at rest
    cut.write_text('\n'.join([lines[0], *lines[35:], '4.0,1.03,1.03,1.03,1.03,1.03,1.03,0,0,0.2']))
    notes = read_run(rig, cut).notes
    assert notes[0].startswith(
        'commands of 1 rows are below the range after those of the first row are subtracted '
        '(recording.command_zero), proximal_chamber_1 by 1e+04 Pa: expected a first row of the arm'
    )
    short = tmp_path / 'short.csv'
    short.write_text('\n'.join(lines[:5]))
    with pytest.raises(MeasurementError, match=r'the file lasts 0.3 s, its .* up to 1.03, 1.03'):
        read_run(rig, short)
    wrong = recording.model_copy(update={'command_unit': 'mm'})
    with pytest.raises(MeasurementError, match="command_unit = 'mm': expected one of Pa, kPa, ba"):
        read_run(rig.model_copy(update={'recording': wrong}), path)


def test_quaternions_in_another_order_or_of_other_columns_are_reported(rig, tmp_path):
    path = write(rig, tmp_path / 'a.csv', commands_of(rig, 30))

    def notes(*columns):
        turns = {'distal': columns}
        config = mapped(rig).recording.model_copy(update={'section_turns': turns})
        found = read_run(rig.model_copy(update={'recording': config}), path).notes
        return [note for note in found if note.startswith(('the z axis of distal', *columns))]

    assert notes('qx', 'qy', 'qz', 'qw') == []
    (order,) = notes('qz', 'qw', 'qx', 'qy')
    assert 'from recording.mount.z_axis in the median; are qz, qw, qx, qy x, y, z, w' in order
    (other,) = notes('x', 'y', 'z', 'qw')
    assert other.startswith('x, y, z, qw have the length ')


def test_a_missing_recording_block_file_or_column_is_refused(rig, tmp_path):
    path = write(rig, tmp_path / 'a.csv', commands_of(rig, 3))
    with pytest.raises(MeasurementError, match=r"'cable_arm' has no block `recording`"):
        read_run(rig, path)
    with pytest.raises(MeasurementError, match=r'cannot be read .*No such file'):
        read_run(rig, tmp_path / 'b.csv')
    with pytest.raises(MeasurementError, match='no column c_distal_3'):
        text = path.read_text().replace('c_distal_3', 'other')
        path.write_text(text)
        read_run(mapped(rig), path)


def test_a_bag_is_scored_without_the_pretension_of_its_commands(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    bag = write_bag(rig, tmp_path / 'bag', commands_of(rig, 20))
    json_file, figures = tmp_path / 'score.json', tmp_path / 'figures'
    done = CliRunner().invoke(
        app,
        ['score', 'cable_arm', str(bag), '--json', str(json_file), '--report', str(figures)],
    )
    assert done.exit_code == 0, done.output
    scores = json.loads(json_file.read_text())['scores']
    assert [s['by'] for s in scores] == [STRAIGHT, MEAN, 'cable_statics']
    assert all(e['rms'] < 1e-3 and e['rows'] == 20 for e in scores[-1]['errors']), scores[-1]
    assert len(scores[-1]['errors']) == 4
    written = sorted(p.name for p in figures.iterdir())
    assert written == [
        'bag_distal.png',
        'bag_distal_axis.png',
        'bag_proximal.png',
        'bag_proximal_axis.png',
    ]
    assert 'pretension taken off the commands: 0.002' in done.output


def test_the_pretension_of_a_bag_is_the_recorded_one(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    commands = commands_of(rig, 6)
    about = {'rig_file': rig.text, 'rig_path': str(rig.source), 'settings': ''}
    bag = write_bag(rig, tmp_path / 'bag', commands, about=about)
    today = load_rig(rig.name, ['controller.pretension_m=0.004'])
    np.testing.assert_allclose(read_run(today, bag).commands, commands, atol=1e-12)


def write_bag(
    rig,
    folder,
    commands,
    change=lambda i, message: None,
    about=None,
    clock=lambda at: at,
    stamp=lambda at: at,
    lost=lambda topic, i: False,
):
    """Write a bag of commands [m] with the pretension on them, and the poses they lead to."""
    from rosbags.typesys import Stores, get_typestore

    from softarm_ros.nodes.bag_writer import BagWriter

    store = get_typestore(Stores.LATEST)
    types = store.types
    time = types['builtin_interfaces/msg/Time']
    header = types['std_msgs/msg/Header']
    joints, poses = 'sensor_msgs/msg/JointState', 'geometry_msgs/msg/PoseArray'
    bag = BagWriter(folder, {'rig': rig.name, 'open_loop': 'false', **(about or {})})
    bag.add_topic(f'/{rig.name}/actuators/command', joints)
    bag.add_topic(f'/{rig.name}/sections/poses', poses)
    empty = np.zeros(0)
    for i, command in enumerate(commands):
        at = 1_000_000_000 + 10_000_000 * i
        seconds, nanoseconds = divmod(stamp(at), 10**9)
        head = header(stamp=time(sec=seconds, nanosec=nanoseconds), frame_id=rig.base_frame)
        values = command + rig.tracker.pretension_m
        message = types[joints](head, list(rig.actuator_names), values, empty, empty)
        change(i, message)
        data = bytes(store.serialize_cdr(message, joints))
        if not lost('actuators/command', i):
            bag.write(f'/{rig.name}/actuators/command', clock(at), data)
        seen = []
        for tip in rig.model().forward(command).section_tips:
            point = types['geometry_msgs/msg/Point'](*tip[:3, 3])
            turn = types['geometry_msgs/msg/Quaternion'](*quaternion(tip[:3, :3]))
            seen.append(types['geometry_msgs/msg/Pose'](point, turn))
        message = types[poses](head, seen)
        change(i, message)
        data = bytes(store.serialize_cdr(message, poses))
        bag.write(f'/{rig.name}/sections/poses', clock(at + 1000), data)
    bag.close()
    return folder


@pytest.mark.parametrize(
    'clock',
    [lambda at: at + 10**18, lambda at: at + 10**12 * (at > 1_030_000_000)],
    ids=['that differs', 'that jumps'],
)
def test_bag_poses_of_another_clock_are_matched_to_commands_received_before(rig, tmp_path, clock):
    pytest.importorskip('rosbags', reason='needs rosbags')
    commands = commands_of(rig, 6)
    run = read_run(rig, write_bag(rig, tmp_path / 'bag', commands, clock=clock))
    np.testing.assert_allclose(run.commands, commands, atol=1e-12)
    assert any('s off their stamps, by clocks that differ or jumped' in n for n in run.notes)


def test_a_late_bag_pose_is_matched_to_the_last_command_received_before_it(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    commands = commands_of(rig, 6)

    def busy(at):  # the pose of the second command comes 2 s late
        return at + 2 * 10**9 if at == 1_010_001_000 else at

    run = read_run(rig, write_bag(rig, tmp_path / 'bag', commands, clock=busy))
    expected = commands.copy()
    expected[1] = commands[5]
    np.testing.assert_allclose(run.commands, expected, atol=1e-12)
    assert run.notes[0].startswith('1 of 6 poses were received up to 2 s off their stamps, ')


def test_bag_poses_between_a_gap_and_the_next_command_are_left_out_and_noted(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    commands = commands_of(rig, 8)

    def lost(topic, i):  # beside all messages of the gap, the first command after it
        return i == 4 and topic == 'actuators/command'

    def later(at):
        return at + 4 * 10**9 * (at >= 1_040_000_000)

    bag = write_bag(rig, tmp_path / 'bag', commands, clock=later, stamp=later, lost=lost)
    run = read_run(rig, bag)
    np.testing.assert_allclose(run.commands, np.delete(commands, 4, axis=0), atol=1e-12)
    assert run.notes[0] == (
        'left out: 1 poses after gaps of up to 4.01 s in the recording, before the next command'
    )


@pytest.mark.filterwarnings('error')
def test_bag_sections_without_orientation_are_scored_by_position(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')

    def point(i, message):
        for pose in getattr(message, 'poses', ()):
            turn = pose.orientation
            turn.x = turn.y = turn.z = turn.w = 0.0

    run = read_run(rig, write_bag(rig, tmp_path / 'bag', commands_of(rig, 6), point))
    assert run.axes == {} and len(run) == 6
    assert 'no orientation of proximal, distal was measured' in run.notes
    found = [scoring.score(p, run) for p in scoring.predictions(rig, ['cable_statics'], run)]
    assert [e.what for e in found[-1].errors] == ['proximal', 'distal']
    assert found[-1].errors[-1].rms < 1e-3


def test_bag_poses_in_another_frame_are_left_out_and_noted(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')

    def room(first):
        def change(i, message):
            if i >= first and hasattr(message, 'poses'):
                message.header.frame_id = 'world'

        return change

    commands = commands_of(rig, 6)
    run = read_run(rig, write_bag(rig, tmp_path / 'some', commands, room(4)))
    np.testing.assert_allclose(run.commands, commands[:4], atol=1e-12)
    told = r"2 messages on /cable_arm/sections/poses in frame 'world'; expected 'base' or"
    assert any(re.search(told, note) for note in run.notes), run.notes
    with pytest.raises(MeasurementError, match=told.replace('2 mess', '6 mess')):
        read_run(rig, write_bag(rig, tmp_path / 'all', commands, room(0)))


def test_a_bag_topic_of_another_type_is_refused(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    from softarm_ros.nodes.bag_writer import BagError, BagWriter

    bag = BagWriter(tmp_path / 'bag')
    bag.add_topic('/cable_arm/tip/pose', 'geometry_msgs/msg/TransformStamped')
    bag.write('/cable_arm/tip/pose', 1, bytes(100))
    bag.close()
    with pytest.raises(BagError, match=r'tip/pose is of .*TransformStamped; expected .*PoseSta'):
        read_run(rig, tmp_path / 'bag')


def test_the_tip_load_stated_in_a_bag_is_used_for_its_score(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    from softarm_ros.nodes.bag_about import about_run

    heavy = load_rig('cable_arm', ['tip_load_kg=0.05', 'model=heavy_cable_statics'])
    bag = write_bag(heavy, tmp_path / 'bag', commands_of(rig, 6), about=about_run(heavy, {}))
    run = read_run(rig, bag)
    assert run.around['tip_load_kg'] == 0.05
    arguments = ['score', 'cable_arm', str(bag), '--model', 'heavy_cable_statics']
    scores = tmp_path / 'score.json'
    done = CliRunner().invoke(app, [*arguments, '--json', str(scores)])
    assert done.exit_code == 0, done.output
    found = json.loads(scores.read_text())['scores'][-1]
    assert found['by'] == 'heavy_cable_statics'
    assert all(error['rms'] < 1e-3 for error in found['errors']), found
    assert read_run(rig, Path(f'{bag}:tip_load_kg=0.1')).around['tip_load_kg'] == 0.1
    assert 'recorded with tip_load_kg = 0.05 (rig file: 0)' in run.notes
    deaf = scoring.predictions(rig, ['constant_curvature', 'heavy_cable_statics'], run)[2:]
    ignored = 'tip_load_kg = 0.05 changes nothing of what constant_curvature predicts'
    assert [ignored in one.notes for one in deaf] == [True, False]


def test_a_bag_of_an_arm_in_water_is_told_beside_a_rig_in_air(tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    from softarm_ros.nodes.bag_about import about_run

    dry, wet = load_rig('pneumatic_arm'), load_rig('pneumatic_arm', ['medium=water'])
    bag = write_bag(wet, tmp_path / 'bag', np.zeros((6, 6)), about=about_run(wet, {}))
    told = 'warning: recorded in water, but predicted in air, as the rig file states; expected'
    for rig, expected in ((dry, [f'{told} --set medium=water']), (wet, [])):
        notes = read_run(rig, bag).notes
        assert [note for note in notes if 'water' in note] == expected


def test_axes_of_a_flipped_body_in_a_bag_are_left_out_and_counted(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')

    def flip(i, message):
        if i == 3 and hasattr(message, 'poses'):
            turn = message.poses[1].orientation  # by half a turn about x
            turn.x, turn.y, turn.z, turn.w = turn.w, turn.z, -turn.y, -turn.x

    run = read_run(rig, write_bag(rig, tmp_path / 'bag', commands_of(rig, 12), flip))
    assert np.flatnonzero(np.isnan(run.axes['distal']).any(axis=1)).tolist() == [3]
    assert np.isfinite(run.axes['proximal']).all() and len(run) == 12
    assert 'left out: 1 axes of distal, turned by more than 60 deg at once' in run.notes


def test_bag_poses_in_an_implausible_unit_are_noted(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')

    def as_mm(_, message):
        for pose in getattr(message, 'poses', ()):
            p = pose.position
            p.x, p.y, p.z = 1e3 * p.x, 1e3 * p.y, 1e3 * p.z

    run = read_run(rig, write_bag(rig, tmp_path / 'bag', commands_of(rig, 3), as_mm))
    assert any(re.search('mm from the mount in m; the arm is', note) for note in run.notes)


def test_a_rig_file_in_a_bag_that_is_no_longer_valid_is_noted(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    from softarm_ros.nodes.bag_about import about_run

    about = {**about_run(rig, {}), 'rig_file': 'name: cable_arm\nformer_field: 1\n'}
    run = read_run(rig, write_bag(rig, tmp_path / 'bag', commands_of(rig, 6), about=about))
    assert not run.around
    assert any('tip_load_kg and pretension of cable_arm used' in note for note in run.notes)


def test_bag_rows_with_nan_are_left_out_and_counted(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')

    def lost(i, message):
        if i == 3 and hasattr(message, 'poses'):
            message.poses[0].position.x = np.nan
        if i == 5 and hasattr(message, 'name'):
            message.position[2] = np.nan

    commands = commands_of(rig, 12)
    run = read_run(rig, write_bag(rig, tmp_path / 'bag', commands, lost))
    assert len(run) == 10
    assert 'left out: 2 incomplete rows' in run.notes
    np.testing.assert_allclose(run.commands, np.delete(commands, [3, 5], axis=0), atol=1e-12)
    with pytest.raises(MeasurementError, match='every row lacks a number'):
        read_run(
            rig,
            write_bag(rig, tmp_path / 'none', commands[:6], lambda i, message: lost(3, message)),
        )


def test_bag_poses_of_one_stamp_or_without_some_sections_are_left_out_and_counted(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')

    def stopped(i, message):
        if hasattr(message, 'poses'):
            message.header.stamp.sec = message.header.stamp.nanosec = 0

    def partly(i, message):
        if hasattr(message, 'poses') and i % 2:
            del message.poses[1:]

    commands = commands_of(rig, 6)
    run = read_run(rig, write_bag(rig, tmp_path / 'stopped', commands, stopped))
    assert len(run) == 1
    assert 'left out: 5 poses with the stamp of a later one' in run.notes
    run = read_run(rig, write_bag(rig, tmp_path / 'partly', commands, partly))
    np.testing.assert_allclose(run.commands, commands[::2], atol=1e-12)
    assert 'left out: 3 poses of only some sections' in run.notes


@pytest.mark.parametrize(
    ('field', 'value', 'said'),
    [
        (
            'name',
            ['a', 'b', 'c', 'd', 'e', 'f'],
            '6 positions of a, b, c, d, e, f; expected those of proximal_1, ',
        ),
        ('position', np.zeros(2), '2 positions of proximal_1, .*; expected those of proximal_1, '),
    ],
)
def test_bag_commands_of_other_actuators_are_refused(rig, tmp_path, field, value, said):
    pytest.importorskip('rosbags', reason='needs rosbags')

    def other(i, message):
        if hasattr(message, 'name'):
            setattr(message, field, value)

    bag = write_bag(rig, tmp_path / 'bag', commands_of(rig, 4), other)
    with pytest.raises(MeasurementError, match=f'actuators/command has {said}'):
        read_run(rig, bag)


def test_a_tip_force_without_bias_is_refused_and_without_a_column_ignored(rig, tmp_path):
    config = mapped(rig).recording.model_copy(update={'tip_force': ('fx', 'fy', 'fz')})
    arm = mapped(rig).model_copy(update={'recording': config})
    lines = write(rig, tmp_path / 'a.csv', commands_of(rig, 18)).read_text().splitlines()
    forces = ['fx,fy,fz', ',0,0', *(['0,0,1'] * 17)]

    def of(count):
        text = '\n'.join(
            ','.join([line, *force.split(',')[:count]]) for line, force in zip(lines, forces)
        )
        (tmp_path / 'b.csv').write_text(text)
        return read_run(arm, tmp_path / 'b.csv')

    with pytest.raises(MeasurementError, match='fx of the first row: empty; expected the bias'):
        of(3)
    assert 'no fz: force on the tip not taken into account' in of(2).notes
    assert of(0).notes == ('no fx, fy, fz: force on the tip not taken into account',)


def test_a_tip_load_beside_a_measured_tip_force_is_refused(rig, tmp_path):
    rows = commands_of(rig, 6)
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', rows))
    pushed = replace(run, tip_force=np.zeros((len(run), 3)))
    assert pushed.as_it_was(rig) is rig
    weighed = replace(pushed, around={'tip_load_kg': 0.1})
    with pytest.raises(MeasurementError, match=r'tip_load_kg = 0\.1 beside a measured force'):
        weighed.as_it_was(rig)
    with pytest.raises(MeasurementError, match='would count twice; expected 0'):
        pushed.as_it_was(with_values(rig, {'tip_load_kg': 0.1}))


def changed_text(rig, path, change):
    """Write a recording, change its text, and return the run that is read from it."""
    text = write(rig, path, commands_of(rig, 8)).read_text()
    path.write_text(change(text))
    return read_run(mapped(rig), path)


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        (lambda text: text.replace('0.02,', '"0",02,', 1), r'a.csv:3: 21 cells; expected 20, as'),
        (lambda text: text.replace(',', ';'), r"the heading is 't;.*: expected cells divided by"),
        (
            lambda text: text.replace('\n', ',0\n').replace('oz,0', 'oz,x'),
            'several columns x: expected one of each name',
        ),
        (lambda text: '"' + text + 200_000 * 'x', r'a.csv: cannot be read \(field larger than'),
        (
            lambda text: re.sub(r'(?m)^[0-9.]+,', ',', text),
            'a.csv: t is empty in all rows; a file of poses at rest has no such column',
        ),
        (
            lambda text: re.sub(r'(?m),[^,]+$', ',', text).replace('oy,', 'oy,oz', 1),
            '8 rows, there are numbers for time 8, commands 8, distal 0, ball 0, axis of distal 8',
        ),
        (
            lambda text: re.sub(r'(?m)^0\.04,[^,]+', '0.04,-1.7e308', text),
            r'= -1.7e\+308 at row 2 \(the first is 0\): expected at most 1e\+100; leave',
        ),
        (lambda text: re.sub(r'(?m)^0\.04,', '0_0.04,', text), r":4: t = '0_0\.04': expec"),
        (
            lambda text: re.sub(r'(?m)^0\.04,', '"0.04,', text),
            r":9: t = '0\.04,[^']{31,36}\.\.\.': expected a number",
        ),
    ],
)  # fmt: skip
def test_a_malformed_or_ambiguous_table_is_refused_with_the_reason(rig, tmp_path, change, says):
    with pytest.raises(MeasurementError, match=says):
        changed_text(rig, tmp_path / 'a.csv', change)


@pytest.mark.parametrize(
    'change',
    [
        lambda text: '# 3 March, new cables\n# by hand\n' + text,
        lambda text: '# 3 March, new cables\n#' + text,
        lambda text: re.sub(r'(?m)^0\.04,', '# pump on, 2 bar\n0.04,', text),
    ],
)
def test_lines_that_begin_with_a_hash_sign_are_comments(rig, tmp_path, change):
    plain = changed_text(rig, tmp_path / 'a.csv', lambda text: text)
    commented = changed_text(rig, tmp_path / 'a.csv', change)
    np.testing.assert_array_equal(commented.time_s, plain.time_s)


def test_a_row_without_any_reading_below_a_commented_heading_is_no_heading(rig, tmp_path):
    plain = changed_text(rig, tmp_path / 'a.csv', lambda text: text)
    heading, _, rows = (tmp_path / 'a.csv').read_text().partition('\n')
    blank = ',' * heading.count(',')
    gap = changed_text(rig, tmp_path / 'a.csv', lambda _: f'# {heading}\n{blank}\n{rows}')
    np.testing.assert_array_equal(gap.time_s, plain.time_s)


@pytest.mark.parametrize('mark', ['# ', '#'])
def test_a_heading_that_numpy_has_marked_as_a_comment_names_the_columns(rig, tmp_path, mark):
    plain = changed_text(rig, tmp_path / 'a.csv', lambda text: text)
    marked = changed_text(rig, tmp_path / 'a.csv', lambda text: mark + text)
    np.testing.assert_array_equal(marked.time_s, plain.time_s)


@pytest.mark.parametrize(
    ('columns', 'factor', 'note'),
    [
        (
            slice(7, None),
            1e3,
            r'at most .*e\+05 mm from .* by recording.length_unit = mm; the arm',
        ),
        (slice(7, None), 1e-3, r'at most 0\.\d+ mm from .* recording.length_unit = mm; the arm'),
        (slice(1, 7), 1e-3, r'reach 0\.0\d+ % of what .* by recording.command_unit = mm'),
        (slice(1, 7), 1e3, r'reach \d.*e\+04 % of what .* by recording.command_unit = mm'),
    ],
)
def test_implausible_units_are_noted(rig, tmp_path, columns, factor, note):
    at_base = mapped(rig)
    recording = at_base.recording.model_copy(
        update={'mount': MountConfig(**{**MOUNT, 'position_m': (0, 0, 0)})}
    )
    at_base = at_base.model_copy(update={'recording': recording})

    def other_unit(i, values):
        values = np.array(values)
        turn = values[13:17].copy()  # has no unit
        values[columns] *= factor
        values[13:17] = turn
        return values

    commands = commands_of(rig, 18)
    assert not read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands)).notes
    run = read_run(at_base, write(rig, tmp_path / 'b.csv', commands, other_unit))
    assert any(re.search(note, said) for said in run.notes), run.notes
    if factor == 1e-3 and columns.start == 7:  # a mount about as far away as the arm is long
        (said,) = read_run(mapped(rig), tmp_path / 'b.csv').notes
        assert re.search(r'at most 0\.\d+ mm from its origin by recording.length_unit = mm', said)


@pytest.mark.parametrize(
    'change',
    [
        lambda text: '\n\n' + text.replace('\n', '\n\n'),
        lambda text: text.replace('\n', ',\n'),
        lambda text: '\n'.join(
            ', '.join(f'"{cell}"' for cell in line.split(',')) for line in text.splitlines()
        ),
    ],
    ids=['empty lines', 'a comma at the end', 'quotes behind spaces'],
)  # fmt: skip
def test_tables_in_the_style_of_other_programs_are_read_alike(rig, tmp_path, change):
    plain = changed_text(rig, tmp_path / 'a.csv', str)
    other = changed_text(rig, tmp_path / 'b.csv', change)
    assert other.notes == plain.notes
    np.testing.assert_array_equal(other.points['ball'], plain.points['ball'])


def test_errors_of_a_model_that_refuses_every_row_are_null_in_json(rig, tmp_path):
    run = read_run(mapped(rig), write(rig, tmp_path / 'a.csv', commands_of(rig, 8)))
    nothing = {name: np.full_like(values, np.nan) for name, values in run.points.items()}
    axes = {name: np.full_like(values, np.nan) for name, values in run.axes.items()}
    found = scoring.score(Prediction('refuses', nothing, axes), run)
    assert all(e.rows == 0 and np.isnan(e.rms) for e in found.errors)
    written = tmp_path / 'score.json'
    scoring.save_json(written, rig, [found], {'a.csv': ('left out: 3 incomplete rows',)})
    assert json.loads(written.read_text())['notes'] == {'a.csv': ['left out: 3 incomplete rows']}
    assert json.loads(written.read_text())['scores'][0]['errors'][0]['rms'] is None
    assert 'NaN' not in written.read_text()


def scored(rig, *arguments):
    return CliRunner().invoke(app, ['score', rig.name, *(str(a) for a in arguments)])


def test_bags_with_the_same_name_have_separate_figures_and_scores(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    bags = [write_bag(rig, tmp_path / day / 'bag', commands_of(rig, 20)) for day in ('a', 'b')]
    figures, json_file = tmp_path / 'figures', tmp_path / 'score.json'
    done = scored(rig, *bags, '--json', json_file, '--report', figures)
    assert done.exit_code == 0, done.output
    assert len(list(figures.iterdir())) == 8
    assert len({s['run'] for s in json.loads(json_file.read_text())['scores']}) == 2


def test_recordings_of_similar_names_have_separate_figures(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    bags = [write_bag(rig, tmp_path / name, commands_of(rig, 4)) for name in ('a b', 'a-b')]
    figures = tmp_path / 'figures'
    done = scored(rig, *bags, '--report', figures)
    assert done.exit_code == 0, done.output
    assert len(list(figures.iterdir())) == 8


def test_large_errors_stay_in_separate_columns(rig):
    errors = scoring.Errors('tip', 'mm', 179345.53, 179253.89, 181288.78, 4)
    *_, line = scoring.table(rig, [scoring.Score('a.csv', 'statics', 4, (errors,), ())])
    assert line.split() == ['statics', 'tip', '179345.53', '179253.89', '181288.78', 'mm']


def test_a_figure_that_cannot_be_written_is_reported_after_all_scores(rig, tmp_path):
    pytest.importorskip('rosbags', reason='needs rosbags')
    bags = [write_bag(rig, tmp_path / name, commands_of(rig, 4)) for name in ('bag', 'next')]
    figures, json_file = tmp_path / 'figures', tmp_path / 'score.json'
    (figures / 'bag_proximal.png').mkdir(parents=True)
    done = scored(rig, *bags, '--report', figures, '--json', json_file)
    assert done.exit_code == 2, done.output
    assert f'--report {figures}: cannot be written' in done.output
    assert {s['run'] for s in json.loads(json_file.read_text())['scores']} == {'bag', 'next'}


def test_a_bag_named_by_its_own_folder_has_a_heading(rig, tmp_path, monkeypatch):
    pytest.importorskip('rosbags', reason='needs rosbags')
    monkeypatch.chdir(write_bag(rig, tmp_path / 'monday', commands_of(rig, 4)))
    assert 'cable_arm, monday: 4 rows' in scored(rig, '.').output


def test_scores_do_not_overwrite_a_recording_or_the_rig_file(rig, tmp_path):
    recording = tmp_path / 'a.csv'
    recording.write_text('t\n0\n')
    done = scored(rig, f'{recording}:tip_load_kg=0.1', '--json', recording)
    assert f'--json {recording}: it is a recording; expected a new file' in done.output
    assert recording.read_text() == 't\n0\n'
    done = scored(rig, recording, '--json', rig.source)
    assert 'it is the rig file; expected a new file' in done.output


def test_unwritable_outputs_are_refused_before_recordings_are_read(rig, tmp_path):
    none = tmp_path / 'none'
    done = scored(rig, none, '--json', none / 'score.json')
    assert 'score.json: cannot be written (No such file' in done.output
    (tmp_path / 'file').touch()
    done = scored(rig, none, '--report', tmp_path / 'file' / 'figures')
    assert 'figures: a file is in the way' in done.output
    done = scored(rig, none, '--report', '/proc')
    assert 'report folder /proc: cannot be written (' in done.output
