"""`softarm identify RIG DATA...`: one engine for every kind of arm."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.command import Asked, errors_of, larger, listed, run
from softarm_ros.cli.identification.common import all_parameters, spelled_out
from softarm_ros.cli.identification.fit import chosen, fit, untold
from softarm_ros.cli.identification.intervals import intervals
from softarm_ros.cli.identification.learn import FOLDS, folds_of, learn, left_out
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.identification.written import updated_text
from softarm_ros.cli.main import app
from softarm_ros.cli.measured_run import mount_of
from softarm_ros.cli.prediction import corrected_by, predict
from softarm_ros.cli.read_run import read_run
from softarm_ros.cli.score import Errors, predictions, score
from softarm_ros.models.command_features import through_valve, with_play
from softarm_ros.models.identifiable import moved_by, parameters_of
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.field_values import values_of, with_values
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / 'reproduction' / 'rigs'
ROWS, PERIOD_S = 1200, 0.05


@pytest.fixture(scope='module')
def trunk():
    return load_rig('trunk')


def record(rig, path, commands, noise_m=0.0, move=None, rows=ROWS):
    """Write the tips of the rig's own model for commands (n, m) [m], as in its recordings."""
    config, mount = rig.recording, mount_of(rig.recording)
    tips = rig.physics().section_tips_of(commands)[:, :, :3, 3]
    rng = np.random.default_rng(11)
    # Errors that last for half a second each.
    tips = tips + np.repeat(rng.normal(0.0, noise_m, (rows // 10, *tips.shape[1:])), 10, axis=0)
    if move is not None:
        tips = tips + move
    seen = mount.position + tips @ mount.rotation.T
    time = PERIOD_S * np.arange(rows)
    late = time + config.delay_s
    heading = [config.time, *(config.commands[n] for n in rig.actuator_names)]
    heading += [c for n in rig.section_names for c in config.section_tips[n]]
    degrees = np.degrees(commands / 0.010)
    degrees = np.stack([np.interp(late, time, c) for c in degrees.T], axis=1)
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(heading)
        writer.writerows(np.column_stack([time, degrees, seen.reshape(rows, -1)]).tolist())
    return path


def excitation(rows=ROWS, seed=5):
    rng = np.random.default_rng(seed)
    speed, phase = rng.uniform(0.3, 1.5, 6), rng.uniform(0.0, 6.0, 6)
    time = PERIOD_S * np.arange(rows)[:, None]
    return 0.003 * (np.sin(speed * time + phase) + np.sin(2.3 * speed * time + 2.0 * phase))


@pytest.fixture(scope='module')
def changed(trunk, tmp_path_factory):
    """Return a trunk with other lengths, gains and mount, and a recording of it."""
    parameters = chosen(all_parameters(trunk), ['lengths', 'bends', 'mount'])
    known = values_of(trunk, list(dict.fromkeys(f for p in parameters for f in p.fields)))
    x = np.random.default_rng(3).normal(0.0, 0.5, len(parameters))
    truth = with_values(trunk, moved_by(parameters, known, x))
    path = tmp_path_factory.mktemp('changed') / 'changed.csv'
    return truth, parameters, x, record(truth, path, excitation(), 0.001)


@pytest.mark.parametrize('hold_out', ['blocks', 'later', 'file', 'nothing'])
def test_recordings_without_remaining_rows_are_refused(trunk, changed, hold_out):
    path = changed[-1]
    with pytest.raises(UsageError, match=r'no rows are left .* for --stood-s 1000 before few'):
        read_recordings(trunk, [path, path], hold_out, stood_s=1000.0)


def test_file_of_a_single_row_names_what_holds_it_out(trunk, changed, tmp_path):
    path = tmp_path / 'one.csv'
    path.write_text('\n'.join(changed[-1].read_text().splitlines()[:2]))
    with pytest.raises(UsageError, match=r'no rows are left .*\(1 rows, --hold-out later\)$'):
        read_recordings(trunk, [path], 'later')


@pytest.mark.parametrize('period_s', [2.5, 10.0])
def test_of_rows_as_far_apart_as_blocks_every_second_is_predicted(trunk, tmp_path, period_s):
    path = record(trunk, tmp_path / 'slow.csv', excitation(20), rows=20)
    heading, *lines = path.read_text(encoding='utf-8').splitlines()
    slow = [f'{period_s * i},{line.partition(",")[2]}' for i, line in enumerate(lines)]
    path.write_text('\n'.join([heading, *slow]), encoding='utf-8')
    (recorded,) = read_recordings(trunk, [path], 'blocks')
    assert list(recorded.train) == list(range(0, len(slow), 2))
    assert list(recorded.test) == list(range(1, len(slow), 2))


def test_rows_that_are_chosen_twice_identify_once(trunk, changed):
    (recorded,) = read_recordings(trunk, [changed[-1]], 'nothing', '20:30,0:10,5:25')
    assert list(recorded.train) == list(range(30))


def test_intervals_contain_the_true_parameters_and_the_fit_predicts_held_out_rows(trunk, changed):
    _, parameters, x, path = changed
    recorded = read_recordings(trunk, [path], 'later')
    found = fit(trunk, recorded, parameters, 300)
    ends = intervals(found)
    inside = (ends[:, 0] <= x) & (x <= ends[:, 1])
    assert np.mean(inside) >= 0.85, [p.name for p, i in zip(parameters, inside) if not i]
    # Most intervals are much narrower than the four spreads of the prior.
    assert np.median(ends[:, 1] - ends[:, 0]) < 1.0
    run_ = recorded[0].seen_by(found.rig(trunk), recorded[0].test)
    errors = score(predict(found.rig(trunk), found.rig(trunk).physics(), run_), run_).errors
    before = score(predict(trunk, trunk.physics(), run_), run_).errors
    assert all(e.rms < 0.3 * b.rms for e, b in zip(errors, before))
    assert 1.5 < errors[-1].rms < 2.4  # the noise alone is 1.7


def test_intervals_agree_with_the_spread_of_repeated_fits(trunk, changed):
    """One Newton step per draw gives about the same spread as a full fit of each draw."""
    _, _, _, path = changed
    parameters = chosen(all_parameters(trunk), ['lengths', 'mount'])
    recorded = read_recordings(trunk, [path], 'nothing')
    found = fit(trunk, recorded, parameters, 200)
    ends = intervals(found)
    rng = np.random.default_rng(0)
    rows = recorded[0].train
    blocks = recorded[0].blocks(rows)
    names = np.unique(blocks)
    draws = []
    for _ in range(25):
        kept = np.concatenate([rows[blocks == b] for b in rng.choice(names, len(names))])
        drawn = [type(recorded[0])(recorded[0].whole, kept, kept[:0])]
        draws.append(fit(trunk, drawn, parameters, 200).x)
    spread = np.std(draws, axis=0)
    told = (ends[:, 1] - ends[:, 0]) / (2.0 * 1.96)
    # `intervals` also draws the prior; the fits here do not.
    assert np.all(told > 0.6 * spread)
    assert np.median(told / np.maximum(spread, 1e-3)) < 3.0


def test_blocks_of_chosen_rows_are_those_of_the_division(trunk, changed):
    _, _, _, path = changed
    (recorded,) = read_recordings(trunk, [path], 'blocks', '1.25s:6.25s')
    assert len(np.unique(recorded.blocks(recorded.train))) == 1
    assert len(np.unique(recorded.blocks(recorded.test))) == 1


def test_combinations_that_constant_commands_do_not_determine_are_named(trunk, changed, tmp_path):
    """With equal commands, lengths and mount of a hanging arm cannot be distinguished."""
    path = record(trunk, tmp_path / 'still.csv', np.zeros((400, 6)), rows=400)
    recorded = read_recordings(trunk, [path], 'nothing')
    found = fit(trunk, recorded, chosen(all_parameters(trunk), ['lengths', 'mount', 'bends']), 200)
    combinations = untold(found)
    named = {name for one in combinations for name, _ in one.shares}
    assert len(combinations) >= 36  # the gains, which are not determined
    assert any('length' in name for name in named)
    _, parameters, _, moving = changed
    told = untold(fit(trunk, read_recordings(trunk, [moving], 'nothing'), parameters, 200))
    assert len(told) < 3


def test_an_undetermined_combination_names_at_least_one_parameter(trunk, changed):
    _, parameters, _, path = changed
    found = fit(trunk, read_recordings(trunk, [path], 'nothing'), parameters, 60)
    every = untold(found, least=0.0, named=1.1)
    assert [len(one.shares) for one in every] == [1] * len(parameters)


def test_compliance_is_identified_from_a_recording_with_a_tip_load(tmp_path):
    gives = {f'arm.sections[{k}].bend_per_moment_rad_N_m': 0.15 for k in range(3)}
    heavy = load_rig('trunk', ['tip_load_kg=0.3'])
    path = record(with_values(heavy, gives), tmp_path / 'heavy.csv', excitation(), 0.0005)
    found = fit(
        heavy,
        read_recordings(heavy, [path], 'nothing'),
        chosen(all_parameters(heavy), ['compliance']),
        200,
    )
    np.testing.assert_allclose(list(found.values.values()), 0.15, atol=0.03)
    # Statements about two files are distinguished by field, not only by value.
    stated = [Path(f'{path}:tip_load_kg=0'), Path(f'{path}:gravity_m_s2[2]=0')]
    recorded = read_recordings(heavy, stated, 'nothing', '0:20')
    assert fit(heavy, recorded, chosen(all_parameters(heavy), ['tip length']), 40).rows == 40


def test_identify_writes_a_rig_file_that_predicts_with_the_printed_errors(
    trunk, changed, tmp_path
):
    _, _, _, path = changed
    output = tmp_path / 'new.yaml'
    asked = Asked((path,), ('lengths', 'bends', 'mount'), 'later', None, (), 200, output)
    lines = list(run(trunk, asked))
    assert lines[-1] == f'written: {output}'
    new = load_rig(output)
    rows = read_recordings(new, [path], 'later')[0]
    run_ = rows.seen_by(new, rows.test)
    errors = score(predict(new, new.physics(), run_), run_).errors
    start = next(i for i, line in enumerate(lines) if line[23:].startswith('identified'))
    printed = [float(line[58:66]) for line in lines[start : start + 3]]
    np.testing.assert_allclose([e.rms for e in errors], printed, atol=0.02)
    text = output.read_text(encoding='utf-8')
    assert '[I] softarm identify, later held out: changed.csv' in text
    assert text.count('# [A]') == trunk.source.read_text(encoding='utf-8').count('# [A]')
    assert new.model_dump(exclude={'arm', 'recording'}) == trunk.model_dump(
        exclude={'arm', 'recording'}
    )


def test_most_predicted_thins_the_predicted_rows_and_is_reported(trunk, changed):
    _, _, _, path = changed
    (recorded,) = read_recordings(trunk, [path], 'later')
    held = len(recorded.test)
    head, *lines = run(trunk, Asked((path,), ('none',), 'later', most_predicted=held))
    assert f'{held} are predicted' in head
    assert not any('--most-predicted' in line for line in lines)
    shown = []
    asked = Asked((path,), ('none',), 'later', most_predicted=(held + 2) // 3)
    head, note, *fewer = run(trunk, asked, lambda what, done: shown.append(what))
    assert f'{-(-held // 3)} are predicted' in head
    assert note == (
        f'one in 3 of the {held} rows held out is predicted (--most-predicted {(held + 2) // 3})'
    )
    assert len(fewer) == len(lines)
    assert fewer != lines
    assert f'predicting {path.name} identified' in shown
    _, note, *_ = run(trunk, Asked((path,), ('none',), 'nothing', most_predicted=100))
    assert f'of the {len(recorded.whole)} rows that identify is predicted' in note


@pytest.mark.parametrize('name', ['Rigid Body 1', 'tip-left', '4'])
def test_a_marker_of_any_name_is_identified(trunk, changed, name, tmp_path):
    marker = '{section: tip, columns: [x3, y3, z3], offset_m: [0.0, 0.0, 0.0]}'
    line = '  section_tips:'
    text = trunk.text.replace(line, f'  markers: {{"{name}": {marker}}}\n{line}')
    path, output = tmp_path / 'marked.yaml', tmp_path / 'new.yaml'
    path.write_text(text, encoding='utf-8')
    asked = Asked((changed[-1],), ('markers',), 'nothing', most_rows=20, output=output)
    lines = list(run(load_rig(path), asked))
    assert any(f'marker {name} x' in line for line in lines)
    assert load_rig(output).recording.markers[name].offset_m != (0.0, 0.0, 0.0)


@pytest.fixture(scope='module')
def guessed(tmp_path_factory):
    """Return the trunk as a user would write it before any identification."""
    text = (ROOT / 'config' / 'rigs' / 'trunk.yaml').read_text(encoding='utf-8')
    text = re.sub(r'(?m)^      bends:.*\n(?:        - .*\n)*', '', text)
    text = re.sub(r'(?m)^( +rest_bend_deg:) .*', r'\1 [0.0, 0.0]', text)
    text = re.sub(r'(?m)^( +delay_s:) 0.22044.*', r'\1 0.2', text)
    path = tmp_path_factory.mktemp('guessed') / 'guessed.yaml'
    path.write_text(text, encoding='utf-8')
    rig = load_rig(path)
    assert not any(actuator.bends for actuator in rig.actuators)
    return rig


def test_the_simulated_trunk_is_identified_without_gains_in_the_rig_file(guessed, trunk, tmp_path):
    """The plant has another formulation than the model."""
    plant, mount = build_plant(trunk, 3), mount_of(trunk.recording)
    limits, rng = trunk.actuator_limits(), np.random.default_rng(2)
    speed, phase = rng.uniform(0.3, 1.5, (2, 6)), rng.uniform(0.0, 6.0, (2, 6))
    rows = []
    for k in range(1500):
        command = 0.3 * limits.position_max * np.sum(np.sin(0.02 * k * speed + phase), axis=0)
        plant.step(command, 0.02)
        poses = plant.poll_poses()
        if poses:
            tips = mount.position + poses[-1].section_tips[:, :3, 3] @ mount.rotation.T
            rows.append([0.02 * (k + 1), *np.degrees(command / 0.010), *tips.reshape(-1)])
    config = trunk.recording
    heading = [config.time, *(config.commands[n] for n in trunk.actuator_names)]
    heading += [c for n in trunk.section_names for c in config.section_tips[n]]
    path, output = tmp_path / 'simulated.csv', tmp_path / 'found.yaml'
    with path.open('w', newline='') as file:
        csv.writer(file).writerows([heading, *rows])
    lines = list(run(guessed, Asked((path,), (), 'blocks', None, (), 600, output)))
    assert any(line.startswith('base_1 on tip_y') for line in lines)
    found = load_rig(output)
    (recorded,) = read_recordings(found, [path], 'blocks')
    before, after = (
        score(predict(rig, rig.physics(), run_), run_).errors
        for rig in (guessed, found)
        for run_ in [recorded.seen_by(rig, recorded.test)]
    )
    assert all(a.rms < 0.25 * b.rms for a, b in zip(after, before))
    assert all(a.rms < bar for a, bar in zip(after, (1.0, 1.5, 4.0)))
    # Servos start 0.2 s late; the arm follows slightly later.
    assert 0.18 < found.recording.delay_s < 0.35
    # A cable bends the section it ends in, and hardly those beyond it or those it passes first.
    gains = {a.name: [bend.gain_rad_m for bend in a.bends] for a in found.actuators}
    assert all(len(gain) == 3 for gain in gains.values())
    assert gains['base_1'][0] > 5.0 * gains['base_1'][2]
    assert gains['tip_1'][2] > 5.0 * max(gains['tip_1'][:2])


def test_rows_that_the_model_refuses_are_reported_with_count_and_reason(trunk, tmp_path):
    path = record(trunk, tmp_path / 'far.csv', excitation(600), rows=600)
    rows = list(csv.reader(path.read_text().splitlines()))
    for row in rows[241:421]:
        row[1] = '1700'  # degrees of base_1, with which an arc would close
    with path.open('w', newline='') as file:
        csv.writer(file).writerows(rows)
    lines = list(run(trunk, Asked((path,), ('lengths',), 'later', most_rows=100)))
    head = next(i for i, line in enumerate(lines) if line.startswith('parameter'))
    searched, told, _ = lines[head - 3 : head]
    assert searched == '100 of the 300 rows are used in the search (--most-rows)'
    assert re.match(r'warning: the model refuses \d\d of the 100 rows of the search; ', told)
    refused = [line for line in lines if 'refused: an arc would close' in line]
    assert len(refused) == 2, lines  # old and identified
    count = int(refused[0].split()[0])
    assert sum(line.endswith(f'({290 - count} of 290 rows)') for line in lines) == 6, lines


def test_errors_of_a_file_that_the_model_refuses_are_nan(trunk, tmp_path):
    path = record(trunk, tmp_path / 'far.csv', excitation(600), rows=600)
    rows = list(csv.reader(path.read_text().splitlines()))
    for row in rows[1:]:
        row[1] = '1700'
    with path.open('w', newline='') as file:
        csv.writer(file).writerows(rows)
    (one,) = read_recordings(trunk, [path], 'later')
    for _, errors, low, high in (e for e in errors_of(trunk, trunk, None, one, one.test[:20])
                                 if e[0] != 'mean pose'):  # fmt: skip
        assert errors.rows == 0 and np.isnan([errors.rms, low, high]).all()


def test_a_tip_load_without_effect_on_the_prediction_is_reported(trunk, changed):
    _, _, _, path = changed
    heavy = path.with_name(f'{path.name}:tip_load_kg=0.1')
    lines = list(run(trunk, Asked((heavy,), ('none',), rows='0:400')))
    assert sum('tip_load_kg = 0.1 changes nothing of what' in line for line in lines) == 2, lines


def test_identify_warns_of_too_few_different_commands(trunk, tmp_path):
    """Five commands fit perfectly and predict nothing."""
    rng = np.random.default_rng(4)
    commands = np.repeat(rng.uniform(-0.004, 0.004, (10, 6)), 2, axis=0)
    move = rng.normal(0.0, 0.02, (20, 3, 3))
    resting = with_values(trunk, {'recording.delay_s': 0.0})
    path = record(resting, tmp_path / 'few.csv', commands, move=move, rows=20)
    text = path.read_text().splitlines()
    path.write_text('\n'.join(line.partition(',')[2] for line in text) + '\n')
    lines = list(run(trunk, Asked((path,), ('bends',), 'blocks')))
    (line,) = (line for line in lines if 'predicted worse' in line)
    assert 'worse than as it was: few.csv: 5 different commands' in line
    # A single pose gets the warning too; its own mean predicts it perfectly.
    (line,) = (
        line
        for line in run(trunk, Asked((path,), ('lengths',), 'nothing', '0'))
        if 'predicted worse' in line
    )
    assert 'worse than mean pose: few.csv' in line
    assert '1 different commands' in line


def test_errors_count_as_larger_beyond_noise_and_in_their_own_unit():
    def errors(tip_mm, axis_deg):
        return [
            Errors(what, unit, rms, rms, rms, 9)
            for what, unit, rms in (('tip', 'mm', tip_mm), ('axis', 'deg', axis_deg))
        ]

    assert not larger(errors(1.72, 0.07), errors(1.72, 0.0))
    assert not larger(errors(1.73, 0.07), errors(1.72, 0.0))
    assert larger(errors(1.8, 0.0), errors(1.72, 9.0))
    assert larger(errors(np.nan, 0.0), errors(1.72, 0.0))
    assert larger(errors(1.0, 0.2)[1:], errors(1.72, 0.1)[1:])


def test_a_recording_given_twice_is_refused(trunk, changed):
    _, _, _, path = changed
    twice = (path, path.with_name(f'{path.name}:tip_load_kg=0.1'))
    with pytest.raises(UsageError, match=f'{path.name} is given 2 times; expected each'):
        list(run(trunk, Asked(twice, hold_out='file')))
    bag = path.with_name('monday')
    with pytest.raises(UsageError, match='monday is given 2 times'):
        list(run(trunk, Asked((bag, bag / 'monday_0.mcap'), hold_out='file')))


# The arm behaves like the second set; the third has one more feature and is no better.
CHOICES = (('lag 0.2', 'lag 1.0'), ('play 0.3', 'lag 0.2'), ('play 0.3', 'lag 0.2', 'cube'))


def test_a_residual_that_describes_play_is_learned_written_and_scored(trunk, tmp_path):
    commands = 2.0 * excitation(2400)
    limits = trunk.actuator_limits()
    commands = np.clip(commands, limits.position_min, limits.position_max)
    half = 0.5 * (limits.position_max - limits.position_min)
    u = commands / half
    lost = u - with_play(u, 0.3, np.zeros(6))
    rng = np.random.default_rng(8)
    move = (lost @ rng.normal(0.0, 0.02, (6, 9))).reshape(-1, 3, 3)
    path = record(trunk, tmp_path / 'play.csv', commands, 0.0, move, 2400)
    output = tmp_path / 'learned.yaml'
    asked = Asked((path,), ('none',), 'later', None, CHOICES, 200, output)
    lines = list(run(trunk, asked))
    assert any(line.startswith('learned from play 0.3, lag 0.2: ') for line in lines)
    new = load_rig(output)
    whole = read_run(new, path)
    held = whole.rows(np.arange(1300, 2400))
    entries = {p.name: score(p, held) for p in predictions(new, ['constant_curvature'], held)}
    before = entries['constant_curvature'].errors
    after = entries['constant_curvature + learned'].errors
    assert all(a.rms < 0.1 * b.rms for a, b in zip(after, before))
    assert any(
        'the residual states' in note for note in entries['constant_curvature + learned'].notes
    )
    # The tracker's model includes the residual of the rig and keeps the name of the physics.
    assert new.model().name == 'constant_curvature'
    assert new.learned_residual() is not None
    output.with_suffix('.residual.json').write_text('{"features": []}', encoding='utf-8')
    with pytest.raises(RigError, match=r'learned\.residual\.json'):
        new.model()


def planar_run(path, base_psi, tip_psi):
    """Write turns of two segments; each straightens by its own pressure, and vents slowly."""
    time = 0.1 * np.arange(len(base_psi))
    psi = np.column_stack([base_psi, base_psi, 0 * time, tip_psi, tip_psi, 0 * time])
    filled = through_valve(psi, time, 0.3, 1.0, np.zeros(6)) / 20.3
    ease = [1.0 / (1.0 + filled[:, k : k + 3].mean(axis=1) / 0.1) for k in (0, 3)]
    bends = np.cumsum([0.10 * ease[0], 0.08 * ease[1]], axis=0)
    heading = ['time_s', *(f'pd{i}_psi' for i in (4, 5, 6, 1, 2, 3))]
    columns = [time, *psi.T]
    for body, bend in zip(('rb2', 'rb3'), bends):
        heading += [f'{body}_q{axis}' for axis in 'xyzw']
        columns += [0 * time, np.sin(bend / 2.0), 0 * time, np.cos(bend / 2.0)]
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(heading)
        writer.writerows(np.column_stack(columns).tolist())
    return path


def test_local_features_learn_a_section_from_its_own_actuators(tmp_path):
    """Learned from segments that are driven alike, tested on segments driven differently."""
    rig = load_rig(SOURCES / 'asu_pneumatic.yaml', ['recording.delay_s=0.0'])
    step = np.where(np.arange(400) % 200 < 100, 8.0, 0.0) * np.where(
        np.arange(400) < 200, 1.0, 0.7
    )
    alike = planar_run(tmp_path / 'alike.csv', step, step / 2.0)
    apart = planar_run(tmp_path / 'apart.csv', step, 8.0 - step)
    held = read_recordings(rig, [apart], 'nothing')[0].whole
    left = {}
    for words in ((), ('local',)):
        features = (*words, 'linear', 'valve 0.3 1.0', 'stiffened 0.1')
        learned = learn(rig, read_recordings(rig, [alike], 'nothing'), features, 'x')
        residual = learned.file.residual()
        physics = predict(rig, rig.physics(), held)
        remembered = residual.remembered(held.commands, held.time_s)
        found = corrected_by(rig, residual, remembered, physics, held)
        left[words] = max(e.rms for e in score(found, held).errors)
    assert left['local',] < 0.5 * left[()], left


def test_local_features_are_refused_for_sections_with_measured_positions(trunk, changed):
    recorded = read_recordings(trunk, [changed[3]], 'nothing')
    with pytest.raises(UsageError, match='--residual local: expected sections with actuators'):
        learn(trunk, recorded, ['local', 'cube'], 'x')


def test_each_fold_is_judged_by_a_model_and_a_residual_fitted_without_it(trunk, changed):
    """Here, models fitted without a fold are 30 mm off, alternately to either side."""
    recorded = read_recordings(trunk, [changed[3]], 'nothing')
    rows, known = recorded[0].train, []

    def again(rest):
        known.append(rest[0].train)
        missing = np.setdiff1d(rows, rest[0].train)
        place = trunk.recording.mount.position_m[0] + 0.03 * (-1.0) ** len(known)
        assert np.all(np.diff(missing) == 1)  # a fifth of the time
        return with_values(trunk, {'recording.mount.position_m[0]': place})

    left = left_out(trunk, recorded, again)
    unseen = [np.setdiff1d(rows, some) for some in known]
    assert len(known) == FOLDS
    np.testing.assert_array_equal(np.sort(np.concatenate(unseen)), rows)
    for k in range(FOLDS):
        moved = (left.without[k] - left.whole).reshape(len(rows), -1, 6)[:, :, :3]
        np.testing.assert_allclose(np.linalg.norm(moved, axis=2), 0.03, atol=1e-9)
    # A constant error on all rows is learned from the rows the model was fitted to. A constant
    # error only on the rows it was not fitted to cannot be learned, and counts.
    everywhere = learn(trunk, recorded, ['cube'], 'x', left)
    fold = folds_of(recorded)
    alone = np.stack(
        [np.where((fold == k)[:, None], left.without[k], left.whole) for k in range(FOLDS)]
    )
    there = learn(trunk, recorded, ['cube'], 'x', replace(left, without=alone))
    assert there.left > 1.5 * everywhere.left
    plain = learn(trunk, recorded, ['cube'], 'x')
    assert everywhere.penalty == plain.penalty
    assert everywhere.file.weights == plain.file.weights  # for the model of all rows


def test_repetitions_of_a_command_share_a_fold(trunk, tmp_path):
    """From a repetition in another fold, any residual would know the error by heart."""
    path = record(trunk, tmp_path / 'a.csv', excitation(300)[::10], rows=30)
    lines = [line.partition(',')[2] for line in path.read_text().splitlines()]  # without times
    path.write_text('\n'.join(lines[:1] + 3 * lines[1:11]))
    recorded = read_recordings(trunk, [path], 'nothing')
    fold = folds_of(recorded)
    np.testing.assert_array_equal(fold, np.tile(np.repeat(np.arange(FOLDS), 2), 3))
    once = [replace(one, train=one.train[:10]) for one in recorded]
    np.testing.assert_array_equal(folds_of(once), np.repeat(np.arange(FOLDS), 2))


def test_errors_on_rows_of_one_block_have_no_interval(trunk, tmp_path):
    path = record(trunk, tmp_path / 'a.csv', excitation(), 0.003)
    (one,) = read_recordings(trunk, [path], 'nothing')
    found = list(errors_of(trunk, trunk, None, one, one.train[:2]))
    assert all(errors.rms > 0.0 for _, errors, *_ in found)
    assert np.isnan([ends for _, _, *ends in found]).all()


def test_noise_is_not_learned_as_a_residual(trunk, tmp_path):
    path = record(trunk, tmp_path / 'noise.csv', excitation(), 0.003)
    learned = learn(trunk, read_recordings(trunk, [path], 'nothing'), ['cube', 'lag 0.3'], 'x')
    assert learned.left > 0.97
    assert learned.penalty >= 0.1


def test_a_residual_that_hardly_helps_is_not_written(trunk, tmp_path):
    commands = excitation()
    move = np.repeat(0.2 * commands[:, :3, None], 3, axis=2)  # less than the noise of 3 mm
    path = record(trunk, tmp_path / 'noise.csv', commands, 0.003, move)
    output = tmp_path / 'learned.yaml'
    asked = Asked((path,), ('none',), 'nothing', None, (('linear',),), 200, output)
    lines = list(run(trunk, asked))
    assert any(line.endswith('100 % of the error is left') for line in lines)
    assert 'warning: the residual does not help and is left out' in lines
    assert load_rig(output).residual is None
    assert not output.with_suffix('.residual.json').exists()


@pytest.mark.parametrize(
    'name', ['cable_arm', 'trunk', 'fishbone_arm', 'hydraulic_arm', 'pneumatic_arm', 'pam_arm']
)
def test_parameters_of_every_arm_move_within_bounds_and_change_fields_of_its_file(name, tmp_path):
    rig = spelled_out(load_rig(name))
    parameters = parameters_of(rig.mechanics_name, rig.arm)
    assert len({p.name for p in parameters}) == len(parameters) >= 4
    for parameter in parameters:
        known = values_of(rig, parameter.fields)
        low, high = parameter.bounds(known)
        assert low <= 0.0 <= high, parameter.name
        assert parameter.moved(known, 0.0) == pytest.approx(known)
    moved = [p for p in parameters if p.bounds(values_of(rig, p.fields))[1] >= 0.1]
    known = values_of(rig, list(dict.fromkeys(f for p in moved for f in p.fields)))
    there = moved_by(moved, known, np.full(len(moved), 0.1))
    text = updated_text(rig.source.read_text(encoding='utf-8'), there, 'x', rig)
    assert '# x' in text
    written = tmp_path / rig.source.name
    written.write_text(text, encoding='utf-8')
    assert values_of(load_rig(written), list(there)) == pytest.approx(there, rel=1e-5)


@pytest.mark.parametrize('name', sorted(path.stem for path in SOURCES.glob('*.yaml')))
def test_updated_rig_files_of_measured_arms_load_with_the_new_values(name, tmp_path):
    source = SOURCES / f'{name}.yaml'
    rig = spelled_out(load_rig(source))
    parameters = [p for p in all_parameters(rig) if p.group not in ('compliance', 'softening')]
    known = values_of(rig, list(dict.fromkeys(f for p in parameters for f in p.fields)))
    there = moved_by(parameters, known, np.full(len(parameters), 0.01))
    path = tmp_path / f'{name}.yaml'
    path.write_text(
        updated_text(source.read_text(encoding='utf-8'), there, 'x', rig), encoding='utf-8'
    )
    for beside in SOURCES.glob(f'{name}*.json'):
        (tmp_path / beside.name).write_bytes(beside.read_bytes())
    again = values_of(load_rig(path), list(there))
    assert again == pytest.approx(there, rel=1e-4, abs=1e-9)


def test_narrower_priors_change_parameters_less(trunk, changed):
    _, _, _, path = changed
    rig, recorded = spelled_out(trunk), read_recordings(trunk, [path], 'nothing')
    lengths = chosen(all_parameters(rig), ['lengths'])
    moved = []
    for factor in (0.01, 1.0):
        found = fit(rig, recorded, [p.wider(factor) for p in lengths], 40)
        moved.append(np.abs([found.values[f] / found.known[f] - 1.0 for f in found.known]).max())
    asked = Asked((path,), ('lengths',), 'nothing', most_rows=40, prior_factor=0.01)
    lines = [line.split() for line in run(trunk, asked)]
    lines = [line for line in lines if line[1:2] == ['length']]
    assert len(lines) == 3
    shown = max(abs(float(line[3]) / float(line[2]) - 1.0) for line in lines)
    assert shown == pytest.approx(moved[0], abs=1e-4)
    assert moved[0] < 0.5 * moved[1]


def test_wrong_arguments_of_identify_are_refused_with_one_line(trunk, changed, tmp_path, capsys):
    _, _, _, path = changed
    for arguments, message in (
        (['--hold-out', 'sooner'], "--hold-out 'sooner': expected later, file, blocks, nothing"),
        (['--hold-out', 'file'], 'expected two files or more'),
        (['--parameters', 'colour'], 'no such group; there are lengths, rest_bends, bends'),
        (['--parameters', 'a,,b'], "--parameters 'a,,b': expected names separated by commas"),
        (['--residual', ''], "--residual '': expected names separated by commas"),
        # Refused before reading, which would refuse rows '9:8'.
        (['--rows', '9:8', '--residual', 'creep 2'], "feature 'creep 2': expected one of"),
        (['--rows', '5000:', '--parameters', 'delay'], 'none of the 1200 rows'),
        (['--rows', '0:2', '--hold-out', 'nothing'], '18 measured coordinates for'),
        (['--output', str(path)], f'--output {path}: it is a recording; expected a new file'),
        ([f'{path}:tip_load_kg=0.1', '--output', str(path)], 'it is a recording'),
    ):
        with pytest.raises(SystemExit) as stop:
            app(['identify', 'trunk', str(path), *arguments])
        assert stop.value.code == 2
        error = capsys.readouterr().err
        assert message in error, error
        assert error.count('\n') == 1
    for arguments, message in (
        (['cable_arm', '--output', 'x.yaml'], '--output is written from recordings'),
        (['trunk'], 'identify it from a recording'),
        (['cable_arm', str(path)], 'has no block `recording`'),
        (['trunk', 'nowhere.csv'], 'nowhere.csv: cannot be read'),
    ):
        with pytest.raises(SystemExit) as stop:
            app(['identify', *arguments])
        assert stop.value.code == 2
        error = capsys.readouterr().err
        assert message in error, error
        assert error.count('\n') == 1
    with pytest.raises(UsageError, match='no recordings'):
        read_recordings(trunk, [], 'later')
    assert any('tip_1 on tip_x' in line for line in listed(trunk))
