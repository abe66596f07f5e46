"""`softarm identify --data`: reading, splitting, identifying a simulated arm, the file written."""

import csv
from pathlib import Path

import numpy as np
import pytest

from softarm_reproduction.trunk_study import nominal_rig
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identified_rig import known_parameters, updated_text
from softarm_ros.cli.identify_from_data import (
    TipErrors,
    identify_rig,
    intervals,
    resampled,
    run,
)
from softarm_ros.cli.main import app
from softarm_ros.cli.recording_file import (
    RecordingError,
    read_recording,
    recording_of,
    split_rows,
)
from softarm_ros.models.cable_driven.pair_identification import PairRecording, predict
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig_of

TRUNK = Path(__file__).parents[2] / 'config' / 'rigs' / 'trunk.yaml'
ROWS = 1500
PERIOD_S = 0.02


@pytest.fixture(scope='module')
def rig():
    return load_rig_of(CableArm, 'trunk')


def write(path, heading, rows):
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(heading)
        writer.writerows(rows)
    return path


def heading_of(rig, timed=True):
    config = recording_of(rig)
    return [
        *([config.time] if timed else []),
        *(config.commands[name] for name in rig.actuator_names),
        *(column for name in rig.section_names for column in config.section_tips[name]),
    ]


def some_rows(rig, count=20, timed=True):
    rng = np.random.default_rng(0)
    width = len(heading_of(rig, timed))
    rows = rng.uniform(-5.0, 5.0, (count, width))
    if timed:
        rows[:, 0] = 0.01 * np.arange(count)
    return rows.tolist()


# -- reading --------------------------------------------------------------------------------


def test_columns_are_found_wherever_they_stand(rig, tmp_path):
    heading, rows = heading_of(rig), some_rows(rig)
    straight = read_recording(rig, write(tmp_path / 'a.csv', heading, rows))
    turned = [['note', *reversed(row)] for row in rows]
    mixed = read_recording(rig, write(tmp_path / 'b.csv', ['more', *reversed(heading)],
                                      [['1', *row[1:]] for row in turned]))  # fmt: skip
    np.testing.assert_array_equal(straight.measured.tips, mixed.measured.tips)
    np.testing.assert_array_equal(straight.measured.contractions, mixed.measured.contractions)
    np.testing.assert_array_equal(straight.measured.time_s, mixed.measured.time_s)
    first = np.array(rows[0])
    np.testing.assert_array_equal(straight.measured.tips[0].reshape(-1), first[7:])
    # Degrees of a servo with a pulley of 10 mm.
    expected = np.radians(first[1:7]) * 0.010
    np.testing.assert_allclose(straight.measured.contractions[0], expected, rtol=1e-12)


def test_without_a_column_of_time_rows_are_poses(rig, tmp_path):
    path = write(tmp_path / 'a.csv', heading_of(rig, False), some_rows(rig, timed=False))
    assert read_recording(rig, path).measured.time_s is None


def test_incomplete_rows_are_left_out_and_counted(rig, tmp_path):
    rows = some_rows(rig)
    rows[3][8] = ''
    rows[7][9] = 'nan'
    recording = read_recording(rig, write(tmp_path / 'a.csv', heading_of(rig), rows))
    assert recording.skipped == 2
    assert len(recording.measured.tips) == 18
    assert recording.measured.time_s[3] == pytest.approx(0.04)


def test_what_cannot_be_read_is_told(rig, tmp_path):
    path = tmp_path / 'a.csv'
    with pytest.raises(RecordingError, match=r'a\.csv: cannot be read'):
        read_recording(rig, path)
    write(path, heading_of(rig)[:-1], [row[:-1] for row in some_rows(rig)])
    with pytest.raises(RecordingError, match='no column z3; there are time_s_assumed'):
        read_recording(rig, path)
    rows = some_rows(rig)
    rows[4][2] = 'much'
    with pytest.raises(RecordingError, match=r"a\.csv:6: u5_cmd_deg = 'much': expected a number"):
        read_recording(rig, write(path, heading_of(rig), rows))
    rows = some_rows(rig)
    rows[5][0] = rows[4][0]
    with pytest.raises(RecordingError, match='time_s_assumed does not increase at 0'):
        read_recording(rig, write(path, heading_of(rig), rows))
    with pytest.raises(RecordingError, match='expected a heading and rows'):
        read_recording(rig, write(path, heading_of(rig), []))
    empty = [['' for _ in row] for row in some_rows(rig)]
    with pytest.raises(RecordingError, match='no row has all of'):
        read_recording(rig, write(path, heading_of(rig), empty))


def test_a_rig_without_the_block_is_told():
    with pytest.raises(RecordingError, match="'cable_arm' has no block `recording`"):
        recording_of(load_rig_of(CableArm, 'cable_arm'))


# -- splitting ------------------------------------------------------------------------------


def test_predicted_blocks_are_apart_from_identified_ones():
    time = 0.01 * np.arange(3000)
    recording = PairRecording(time, np.zeros((3000, 6)), np.zeros((3000, 3, 3)))
    train, test = split_rows(recording, 2.5, 0.5)
    assert not set(train) & set(test)
    assert len(train) == 1500
    nearest = np.abs(time[test][:, None] - time[train]).min()
    assert nearest > 0.5 - 1e-9


def test_repetitions_of_a_command_stay_together():
    commands = np.repeat(np.random.default_rng(0).uniform(-1.0, 1.0, (10, 6)), 3, axis=0)
    order = np.random.default_rng(1).permutation(30)
    recording = PairRecording(None, commands[order], np.zeros((30, 3, 3)))
    train, test = split_rows(recording)
    assert sorted([*train, *test]) == list(range(30))
    seen = {tuple(row) for row in recording.contractions[train]}
    assert len(seen) == 5
    assert not seen & {tuple(row) for row in recording.contractions[test]}


def test_errors_are_distances():
    measured = np.zeros((2, 1, 3))
    predicted = np.array([[[3.0, 4.0, 0.0]], [[0.0, 0.0, 1.0]]])
    errors = TipErrors.of(predicted, measured)
    assert (errors.mean[0], errors.max[0]) == (3.0, 5.0)
    assert errors.rms[0] == pytest.approx(np.sqrt(13.0))


# -- a simulated arm is recorded and identified ---------------------------------------------


@pytest.fixture(scope='module')
def recorded(rig, tmp_path_factory):
    """Drive the simulated trunk and record it, in the frame of cameras somewhere in the room."""
    config = recording_of(rig)
    mount = known_parameters(rig, config)
    plant = rig.simulated_arm(3)
    limits = rig.actuator_limits()
    rng = np.random.default_rng(2)
    speed, phase = rng.uniform(0.3, 1.5, (2, 6)), rng.uniform(0.0, 6.0, (2, 6))
    rows = []
    for k in range(ROWS):
        t = k * PERIOD_S
        command = 0.3 * limits.position_max * np.sum(np.sin(speed * t + phase), axis=0)
        plant.step(command, PERIOD_S)
        poses = plant.poll_poses()
        if not poses:
            continue
        tips = poses[-1].section_tips[:, :3, 3] @ mount.mount_rotation.T + mount.mount_position
        degrees = np.degrees(command / 0.010)
        rows.append([t + PERIOD_S, *degrees, *tips.reshape(-1)])
    folder = tmp_path_factory.mktemp('recorded')
    return write(folder / 'simulated.csv', heading_of(rig), rows)


def test_what_was_recorded_from_an_arm_that_is_not_the_model_is_predicted(rig, recorded):
    guessed = nominal_rig(rig)
    result = identify_rig(guessed, recorded)
    assert np.all(result.after.rms < 0.25 * result.before.rms)
    assert np.all(result.after.rms < 0.25 * result.resting.rms)
    assert np.all(result.after.rms < [1e-3, 1.5e-3, 4e-3])
    # Servos start 0.2 s late; the arm follows a little later still.
    assert 0.18 < result.found.delay_s < 0.35
    # An arm that gives way: less gain than its geometry has, on the section meant.
    gains = np.linalg.norm(result.found.bends.reshape(3, 2, 6), axis=1)
    assert np.array_equal(np.argmax(gains[:, :2], axis=0), [0, 0])
    assert np.array_equal(np.argmax(gains[:, 4:], axis=0), [2, 2])


def test_the_command_writes_a_rig_that_predicts_as_told(rig, recorded, tmp_path):
    guess = tmp_path / 'guess.yaml'
    guess.write_text(TRUNK.read_text(encoding='utf-8'), encoding='utf-8')
    output = tmp_path / 'identified.yaml'
    lines = list(run(str(guess), recorded, output))
    assert lines[-1] == f'written: {output}'
    new = load_rig_of(CableArm, output)
    result = identify_rig(rig, recorded)
    measured = result.recording.measured
    written = known_parameters(new, recording_of(new))
    np.testing.assert_allclose(
        predict(written, measured), predict(result.found, measured), atol=2e-5
    )
    row = next(line for line in lines if line.startswith('identified'))
    told = [float(word) for word in row.split()[1:]]
    expected = np.stack([result.after.mean, result.after.rms, result.after.max], axis=1)
    np.testing.assert_allclose(told, 1e3 * expected.reshape(-1), atol=0.006)
    assert new.model().actuation_of(new.model().rest_configuration).tolist() == [0.0] * 6


def test_the_later_half_is_held_out(rig, recorded):
    result = identify_rig(nominal_rig(rig), recorded, 'later')
    time = result.recording.measured.time_s
    assert time[result.identified_from].max() < time[result.predicted].min() - 0.4
    assert len(result.identified_from) == pytest.approx(0.5 * len(time), abs=2)
    assert np.all(result.after.rms < 0.5 * result.before.rms)


def test_what_to_hold_out_is_checked(rig, recorded, tmp_path):
    with pytest.raises(UsageError, match="--hold-out 'sooner': expected blocks or later"):
        identify_rig(rig, recorded, 'sooner')
    path = write(tmp_path / 'rest.csv', heading_of(rig, False), some_rows(rig, 40, False))
    with pytest.raises(UsageError, match='rows are poses at rest'):
        identify_rig(rig, path, 'later')


def test_intervals_hold_the_truth_where_errors_last(rig, tmp_path):
    """Errors that last for half a second each: of 2000 rows 80 are independent."""
    truth = known_parameters(rig, recording_of(rig))
    rng = np.random.default_rng(5)
    time = PERIOD_S * np.arange(2000)
    speed, phase = rng.uniform(0.3, 1.5, (2, 6)), rng.uniform(0.0, 6.0, (2, 6))
    contractions = 0.004 * np.sum(np.sin(speed * time[:, None, None] + phase), axis=1)
    tips = predict(truth, PairRecording(time, contractions, np.zeros((2000, 3, 3))))
    tips += np.repeat(rng.normal(0.0, 0.002, (80, 3, 3)), 25, axis=0)
    columns = [time, np.degrees(contractions / 0.010), tips.reshape(2000, -1)]
    path = write(tmp_path / 'a.csv', heading_of(rig), np.column_stack(columns).tolist())
    result = identify_rig(rig, path)
    draws = resampled(rig, result, 12)
    rows = {name: (value, low, high) for name, value, low, high in intervals(rig, truth, draws)}
    assert len(rows) == 1 + 3 * 3 + 6 * 3 * 2
    assert all(high > low for _, low, high in rows.values())
    # Twelve draws make intervals a little too narrow: 46 values of which 95 % are to be inside.
    inside = np.mean([low <= value <= high for value, low, high in rows.values()])
    assert inside > 0.75, rows
    assert draws[0].delay_s == resampled(rig, result, 1)[0].delay_s


def test_too_few_commands_are_warned_of(rig, tmp_path):
    """Five commands fit perfectly and predict nothing."""
    rng = np.random.default_rng(4)
    degrees = np.repeat(rng.uniform(-25.0, 25.0, (10, 6)), 2, axis=0)
    truth = known_parameters(rig, recording_of(rig))
    contractions = np.radians(degrees) * 0.010
    tips = predict(truth, PairRecording(None, contractions, np.zeros((20, 3, 3))))
    tips += rng.normal(0.0, 0.02, tips.shape)
    rows = np.column_stack([degrees, tips.reshape(20, -1)]).tolist()
    path = write(tmp_path / 'few.csv', heading_of(rig, False), rows)
    lines = list(run('trunk', path, None))
    assert any(line.startswith('warning: worse than without') for line in lines)
    assert any('5 different commands' in line for line in lines)


# -- the file -------------------------------------------------------------------------------


def test_all_but_the_identified_stays_as_it_was(rig):
    text = TRUNK.read_text(encoding='utf-8')
    found = known_parameters(rig, recording_of(rig))
    new = updated_text(text, rig, found, 'x.csv')
    old_lines, new_lines = text.splitlines(), new.splitlines()
    assert len(old_lines) == len(new_lines)
    differing = [
        (old, new)
        for old, new in zip(old_lines, new_lines)
        if old.split('#')[0] != new.split('#')[0]
    ]
    # The same numbers are written again: nothing but the marks may differ, and the last digit.
    for old, now in differing:
        assert old.split(':')[0] == now.split(':')[0]
    assert text.count('[I] identified from') == new.count('[I] identified from x.csv') == 16


def test_entries_that_are_references_become_their_own(rig, tmp_path):
    text = TRUNK.read_text(encoding='utf-8')
    found = known_parameters(rig, recording_of(rig))
    found.rest[:] = np.radians([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    path = tmp_path / 'new.yaml'
    path.write_text(updated_text(text, rig, found, 'x.csv'), encoding='utf-8')
    rests = [section.rest_bend_deg for section in load_rig_of(CableArm, path).arm.sections]
    np.testing.assert_allclose(rests, [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)], rtol=1e-5)


# -- the command line -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['identify', 'cable_arm', '--output', 'x.yaml'], '--output is written from recordings'),
        (['identify', 'trunk'], 'identify it from a recording'),
        (['identify', 'cable_arm', '--data', 'x.csv'], 'has no block `recording`'),
        (['identify', 'trunk', '--data', 'nowhere.csv'], 'nowhere.csv: cannot be read'),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        app(arguments)
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count('\n') == 1
