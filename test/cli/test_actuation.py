"""Recordings with measured actuators: reading, identification, and files without them."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from softarm_ros.cli.actuation import joined
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.command import Asked, run
from softarm_ros.cli.identification.drives import describe, drives_of
from softarm_ros.cli.identification.identified import identified
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.measured_run import mount_of
from softarm_ros.cli.prediction import predict
from softarm_ros.cli.read_run import read_run
from softarm_ros.cli.score import score
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.recording import RecordingConfig

ROWS, PERIOD_S, READ_EVERY = 1500, 0.02, 3
SHARES = np.array([0.76, 0.91, 0.95, 0.94, 0.98, 0.97])
DELAY_S = 0.22


def with_encoders(trunk):
    """Return the rig with columns of measured actuators, checked as in a rig file."""
    fields = trunk.recording.model_dump()
    fields['measured'] = {name: f'at_{name}' for name in trunk.actuator_names}
    return trunk.model_copy(update={'recording': RecordingConfig(**fields)})


@pytest.fixture(scope='module')
def trunk():
    return with_encoders(load_rig('trunk'))


def write(rig, path, left_out=(), noise_m=0.0, still=(), delay_s=DELAY_S):
    """Write commands, the angles that follow them (read every third row), and the model's tips."""
    time = PERIOD_S * np.arange(ROWS)
    rng = np.random.default_rng(4)
    speed, phase = rng.uniform(0.5, 2.0, 6), rng.uniform(0.0, 6.0, 6)

    def asked(t):
        wave = 0.003 * (np.sin(speed * t + phase) + np.sin(2.3 * speed * t + 2.0 * phase))
        return np.where([name in still for name in rig.actuator_names], 0.0, wave)

    there = SHARES * asked(time[:, None] - delay_s)
    read = there[READ_EVERY * (np.arange(ROWS) // READ_EVERY)]
    mount = mount_of(rig.recording)
    tips = rig.physics().section_tips_of(there)[:, :, :3, 3]
    seen = mount.position + (tips + rng.normal(0.0, noise_m, tips.shape)) @ mount.rotation.T
    columns = {rig.recording.time: time}
    for k, name in enumerate(rig.actuator_names):
        columns[rig.recording.commands[name]] = np.degrees(asked(time[:, None])[:, k] / 0.010)
        columns[rig.recording.measured[name]] = np.degrees(read[:, k] / 0.010)
    for k, name in enumerate(rig.section_names):
        columns.update(zip(rig.recording.section_tips[name], seen[:, k].T))
    kept = {name: c for name, c in columns.items() if name not in left_out}
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(kept)
        writer.writerows(np.column_stack(list(kept.values())).tolist())
    return path


def test_joined_interpolates_held_readings_and_keeps_an_actuator_at_rest():
    time = 0.01 * np.arange(60)
    moving = np.where(time < 0.4, time, 0.4)[:, None]
    moving[time > 0.52] = 0.9
    held = moving[5 * (np.arange(60) // 5)]
    found = joined(time, held)
    inside = time < 0.35
    assert np.abs(held - moving)[inside].max() > 0.035
    np.testing.assert_allclose(found[inside], moving[inside], atol=1e-9)
    # At rest from 0.4 s on: the motion read at 0.55 s began at most one reading earlier.
    np.testing.assert_allclose(found[(time > 0.4) & (time < 0.5)], 0.4, atol=1e-9)
    np.testing.assert_allclose(found[time >= 0.55], 0.9)
    np.testing.assert_array_equal(joined(None, held), held)
    np.testing.assert_array_equal(
        joined(time, np.repeat(moving[:1], 60, axis=0)), np.repeat(moving[:1], 60, axis=0)
    )


def test_measured_actuators_are_used_only_if_a_file_has_all_of_them(trunk, tmp_path):
    measured = read_run(trunk, write(trunk, tmp_path / 'a.csv'))
    assert measured.notes[0].startswith('actuators as measured: at_')
    errors = score(predict(trunk, trunk.physics(), measured), measured).errors
    assert all(e.rms < 0.5 for e in errors), errors
    assert measured.commanded is not None and len(measured.rows([3, 4]).commanded) == 2
    one_short = read_run(trunk, write(trunk, tmp_path / 'b.csv', ['at_tip_2']))
    assert one_short.notes[0] == 'no at_tip_2: actuators as commanded'
    assert one_short.commanded is None
    off = score(predict(trunk, trunk.physics(), one_short), one_short).errors
    assert off[-1].rms > 3.0


def test_reached_shares_and_delay_are_identified_and_predict_from_commands_alone(trunk, tmp_path):
    path = write(trunk, tmp_path / 'a.csv', noise_m=0.001)
    drives = drives_of(trunk, read_recordings(trunk, [path], 'later'))
    shares = [drives[f'recording.reached.{name}'] for name in trunk.actuator_names]
    np.testing.assert_allclose(shares, SHARES, atol=0.006)
    assert drives['recording.delay_s'] == pytest.approx(DELAY_S, abs=0.004)

    source = tmp_path / 'encoders.yaml'
    text = load_rig('trunk').source.read_text(encoding='utf-8')
    columns = ', '.join(f'{name}: at_{name}' for name in trunk.actuator_names)
    before = '  command_unit: deg\n'
    assert text.count(before) == 1
    source.write_text(text.replace(before, f'  measured: {{{columns}}}\n{before}'))
    output = tmp_path / 'new.yaml'
    asked = Asked((path,), ('lengths', 'delay'), 'later', most_rows=200, output=output)
    lines = list(run(load_rig(source), asked))
    assert any('each actuator reaches: base_1 0.7' in line for line in lines)
    assert not any(line.startswith('delay ') for line in lines)  # not identified from poses
    alone = list(run(load_rig(source), replace(asked, groups=('delay',))))  # from encoders alone
    assert any('each actuator reaches: base_1 0.7' in line for line in alone)
    assert not any(line.startswith('parameter') for line in alone)
    new = load_rig(output)
    assert new.recording.reached['base_1'] == pytest.approx(0.76, abs=0.006)
    bare = read_run(new, write(new, tmp_path / 'b.csv', list(new.recording.measured.values())))
    errors = score(predict(new, new.physics(), bare), bare).errors
    # The median excludes the first rows: the commands before them are not known.
    assert all(e.median < 0.2 for e in errors), errors


def test_drives_of_files_without_measured_actuators_are_empty(trunk, tmp_path):
    columns = list(trunk.recording.measured.values())
    recorded = read_recordings(trunk, [write(trunk, tmp_path / 'a.csv', columns)], 'later')
    assert drives_of(trunk, recorded) == {}


def test_a_measured_column_that_does_not_follow_its_command_is_refused_by_name(trunk, tmp_path):
    columns = dict(trunk.recording.measured)
    columns['tip_1'], columns['tip_2'] = columns['tip_2'], columns['tip_1']
    wrong = trunk.recording.model_copy(update={'measured': columns})
    path = write(trunk, tmp_path / 'a.csv')
    recorded = read_recordings(trunk.model_copy(update={'recording': wrong}), [path], 'later')
    with pytest.raises(UsageError, match=r'tip_. was measured to reach .* of its command'):
        drives_of(trunk, recorded)


def rows_of(path, new, first, last, constant=False):
    """Write rows of a file; if `constant`, all with the commands of the first of them."""
    heading, *rows = csv.reader(path.read_text().splitlines())
    kept = [list(row) for row in rows[first:last]]
    if constant:
        for row in kept:
            for k, name in enumerate(heading):
                if name.startswith('u'):
                    row[k] = kept[0][k]
    with new.open('w', newline='') as file:
        csv.writer(file).writerows([heading, *kept])
    return new


@pytest.mark.parametrize('count', [1, 2, 40])
def test_a_file_shorter_than_the_longest_delay_is_refused(trunk, tmp_path, count):
    whole = write(trunk, tmp_path / 'a.csv')
    short = rows_of(whole, tmp_path / 'short.csv', 300, 300 + count)
    with pytest.raises(UsageError, match=r'^short\.csv: no row .* is 1 s or more after the first'):
        drives_of(trunk, read_recordings(trunk, [short], 'nothing'))
    both = drives_of(trunk, read_recordings(trunk, [whole, short], 'nothing'))
    assert both == drives_of(trunk, read_recordings(trunk, [whole], 'nothing'))


def test_commands_that_never_change_do_not_tell_a_delay(trunk, tmp_path):
    path = write(trunk, tmp_path / 'a.csv')
    names = {trunk.recording.commands[name] for name in trunk.actuator_names}
    assert all(name.startswith('u') for name in names)
    still = rows_of(path, tmp_path / 'still.csv', 300, 500, constant=True)
    with pytest.raises(UsageError, match='its command never changes; record a motion'):
        drives_of(trunk, read_recordings(trunk, [still], 'nothing'))
    reached = rows_of(path, tmp_path / 'reached.csv', 300, 500, constant=True)
    heading, *rows = csv.reader(reached.read_text().splitlines())
    at, of = (
        [heading.index(columns[name]) for name in trunk.actuator_names]
        for columns in (trunk.recording.measured, trunk.recording.commands)
    )
    for row in rows:
        for k, c in zip(at, of):
            row[k] = str(0.9 * float(row[c]))
    with reached.open('w', newline='') as file:
        csv.writer(file).writerows([heading, *rows])
    drives = drives_of(trunk, read_recordings(trunk, [reached], 'nothing'))
    assert 'recording.delay_s' not in drives
    np.testing.assert_allclose(list(drives.values()), 0.9)


def test_an_actuator_that_was_not_moved_keeps_its_share(trunk, tmp_path):
    path = write(trunk, tmp_path / 'a.csv', still=('base_1', 'tip_2'))
    rig = with_values(trunk, {'recording.reached.base_1': 0.8})
    after = identified(rig, read_recordings(rig, [path], 'later'), None, 200)
    shares = [after.rig.recording.reached[name] for name in rig.actuator_names]
    np.testing.assert_allclose(shares, [0.8, *SHARES[1:5], 1.0], atol=0.006)
    assert after.drives['recording.delay_s'] == pytest.approx(DELAY_S, abs=0.004)
    lines = list(describe(rig, after.drives))
    assert lines[1:] == ['not moved: base_1, tip_2; the share of the rig file is kept']
    nothing = write(trunk, tmp_path / 'b.csv', still=rig.actuator_names)
    assert drives_of(trunk, read_recordings(trunk, [nothing], 'later')) == {}


def test_repetitions_of_a_command_stay_together_if_actuators_were_measured(trunk, tmp_path):
    """Poses at rest: each of ten commands three times, its measured positions never the same."""
    path = write(trunk, tmp_path / 'a.csv', [trunk.recording.time])
    heading, *rows = csv.reader(path.read_text().splitlines())
    at = heading.index('at_base_1')
    first = [float(rows[k][at]) for k in range(0, 300, 30)]
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(heading)
        for again in range(3):
            for k, angle in enumerate(first):
                told = rows[30 * k].copy()
                told[at] = angle + 0.01 * again
                writer.writerow(told)
    (recorded,) = read_recordings(trunk, [path], 'blocks')
    run = recorded.whole
    assert len(np.unique(run.commands, axis=0)) == 30
    used, predicted = ({tuple(c) for c in run.asked[r]} for r in (recorded.train, recorded.test))
    assert (len(used), len(predicted), len(used & predicted)) == (5, 5, 0)
    assert len(np.unique(recorded.blocks(np.arange(30)))) == 10


def test_a_delay_beyond_those_tried_is_reported(trunk, tmp_path):
    late = write(trunk, tmp_path / 'a.csv', delay_s=1.2)
    drives = drives_of(trunk, read_recordings(trunk, [late], 'later'))
    assert any('no delay above 1 s is tried' in line for line in describe(trunk, drives))
    near = write(trunk, tmp_path / 'b.csv', delay_s=0.9)
    drives = drives_of(trunk, read_recordings(trunk, [near], 'later'))
    assert len(list(describe(trunk, drives))) == 1


def test_missing_measured_and_unknown_reached_actuators_are_refused():
    some = 'recording.measured={base_1: a}'
    with pytest.raises(RigError, match='missing: base_2, middle_1, middle_2, tip_1, tip_2'):
        load_rig('trunk', [some])
    with pytest.raises(RigError, match='no such actuator'):
        load_rig('trunk', ['recording.reached={base: 0.9}'])
