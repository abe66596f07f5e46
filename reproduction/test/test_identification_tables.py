"""The tables of docs/identification.md: machines drawn, and measured arms predicted."""

import re
from pathlib import Path

import numpy as np
import pytest

from softarm_reproduction.excitation_table import lines_of as excited_lines
from softarm_reproduction.identification_coverage import identified_machine
from softarm_reproduction.identification_table import CASES, RIGS, lines_of, main, recordings
from softarm_reproduction.tentacle_both_tendons import markers
from softarm_reproduction.trunk_trials import Fold, corrected, repeats
from softarm_ros.cli.identification.fit import chosen
from softarm_ros.cli.measured_run import mount_of
from softarm_ros.cli.read_run import read_run
from softarm_ros.cli.score import predictions
from softarm_ros.models.identifiable import parameters_of
from softarm_ros.rigs.loader import load_rig

DATA = Path(__file__).parents[3] / 'shared' / 'data'
MEASURED = pytest.mark.skipif(not DATA.is_dir(), reason=f'no measurements in {DATA}')


def test_drawn_machines_differ_and_are_identified():
    rig = load_rig('trunk').model_copy(update={'recording': None})
    parameters = chosen(parameters_of('cable_pairs', rig.arm), ['lengths', 'rest_bends'])
    machines = [identified_machine(rig, parameters, seed, 20) for seed in range(4)]
    assert np.std([m.truth for m in machines], axis=0).min() > 0.1
    assert np.mean([m.inside for m in machines]) > 0.8
    widths = [m.ends[:, 1] - m.ends[:, 0] for m in machines]
    assert np.median(widths) < 0.5


def test_identification_from_excitation_halves_tip_errors_and_finds_the_lengths(tmp_path):
    lines = [
        line.split(' | ') for line in excited_lines(load_rig('trunk'), 'random', 12, tmp_path)
    ]
    tips = [line for line in lines if line[-1].startswith('mm')]
    assert len(tips) == 3
    assert all(float(line[3]) < 0.5 * float(line[2]) for line in tips), lines
    lengths = [line for line in lines if line[1].endswith(' length')]
    assert len(lengths) == 3
    for line in lengths:
        assert abs(float(line[3].split()[0]) - float(line[4])) < 0.02 * float(line[4])


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (('{}/none',), '/none: no such folder; expected that of the recordings'),
        (('{}', '--write', '{}/none'), '--write .*/none: no such folder; expected one for rig'),
        (('{}', '--only', 'arm'), "--only arm: none of 'trunk, second half', .* begins so"),
    ],
)
def test_missing_folders_and_unknown_cases_are_refused(
    tmp_path, monkeypatch, capsys, arguments, said
):
    words = [word.format(tmp_path) for word in arguments]
    monkeypatch.setattr('sys.argv', ['identification_table', *words])
    with pytest.raises(SystemExit):
        main()
    assert re.search(said, capsys.readouterr().err)


@MEASURED
def test_no_row_is_used_for_both_identification_and_prediction():
    for case in CASES:
        rig = load_rig(RIGS / f'{case.rig}.yaml', case.settings)
        used: dict[str, set[int]] = {}
        for one in recordings(rig, DATA, case.train, True):
            used.setdefault(one.whole.source, set()).update(one.train.tolist())
            assert not set(one.train) & set(one.test)
        for one in recordings(rig, DATA, case.test, False):
            assert not len(one.train)
            assert not used.get(one.whole.source, set()) & set(one.test.tolist())


@MEASURED
def test_trunk_with_100_g_is_predicted_better_if_its_compliance_is_identified():
    case = next(case for case in CASES if case.name.startswith('trunk with 100 g'))
    lines = list(lines_of(case, DATA))
    tips = {line.split(' | ')[1]: float(line.split(' | ')[3].split()[0]) for line in lines
            if '| tip |' in line}  # fmt: skip
    assert tips['identified'] < 0.9 * tips['as it was'] < 0.5 * tips['mean pose']


def test_kernel_corrects_smooth_errors_and_leaves_rows_far_away_unchanged():
    rng = np.random.default_rng(0)
    bends, weights = rng.standard_normal((400, 6)), rng.standard_normal((6, 9))
    near, far = 0.5 * rng.standard_normal((50, 6)), np.full((50, 6), 30.0)
    fold = Fold(bends, np.sin(bends @ weights / 4.0), (near, far), (
        np.sin(near @ weights / 4.0), np.ones((50, 9)),
    ))  # fmt: skip
    left_near, left_far = corrected(fold, 2.0, 0.1)
    assert np.std(left_near) < 0.2 * np.std(fold.left[0])
    np.testing.assert_allclose(left_far, fold.left[1], atol=1e-6)


@MEASURED
def test_repeatability_of_the_trunk_steps_has_the_documented_values():
    line = repeats(load_rig(RIGS / 'asl_trunk.yaml'), DATA)
    assert line == '10 commands of the steps, 30 times in all: 0.766 / 7.32 / 4.53 mm'


@MEASURED
def test_few_parameter_groups_transfer_to_the_other_tendon_better_than_many():
    def tip(name: str) -> float:
        case = next(case for case in CASES if case.name == name)
        line = next(one for one in lines_of(case, DATA) if '| identified | p4 |' in one)
        return float(line.split(' | ')[3].split()[0])

    name = 'tentacle, tendon 2 from tendon 1'
    assert 2.0 * tip(f'{name}, few groups') < tip(name)


@MEASURED
def test_scores_of_the_identified_tentacle_use_the_markers_of_its_model():
    rig = load_rig(RIGS / 'identified' / 'tendon_tentacle.yaml')
    run = read_run(rig, DATA / 'tendon_tentacle/static_means.csv')
    predicted = predictions(rig, ['cosserat'], run)[-1].points
    model, places, names = rig.model(), rig.recording.markers, rig.section_names
    mount = mount_of(rig.recording)
    found = markers(rig, run, run.commands)
    for row, command in enumerate(run.commands):
        tips = model.forward(command).section_tips
        for k, (name, place) in enumerate(places.items()):
            at = tips[names.index(place.section)] @ [*place.offset_m, 1.0]
            expected = mount.rotation @ at[:3] + mount.position
            np.testing.assert_allclose(predicted[name][row], expected, atol=1e-6)
            np.testing.assert_allclose(found[row, k], expected, atol=1e-6)
