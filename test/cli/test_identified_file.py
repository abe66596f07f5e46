"""The rig file that `softarm identify` writes: only the identified values change."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.command import Asked, run
from softarm_ros.cli.identification.common import all_parameters, spelled_out
from softarm_ros.cli.identification.written import updated_text, write
from softarm_ros.cli.main import app
from softarm_ros.models.identifiable import moved_by
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.field_values import values_of, with_values
from softarm_ros.rigs.loader import load_rig
from softarm_ros.whole_file import NotWrittenError, half_of

PAIRS = """\
name: pairs
description: Two sections with two pairs of cables each
gravity_m_s2: [0.0, 0.0, 9.81]
arm:
  kind: cable_driven
  sections:
    - &section
      name: low
      length_m: 0.1
      endcap_length_m: 0.004
      cable_radius_m: 0.02
      passing_radius_m: 0.0
      bending_stiffness_N_m2: 0.03
      cutting_in_stiffness_N_m2: 1.0e+6
      max_bending_angle_deg: 90.0
    - {<<: *section, name: high}
  actuators:
    - &pair
      name: a
      section: low
      angle_deg: 0.0
      pair: true
      position_min_m: -0.02
      position_max_m: 0.02
      max_speed_m_s: 0.03
      max_acceleration_m_s2: 0.3
    - {<<: *pair, name: b, angle_deg: 90.0}
    - &last
      <<: *pair
      name: c
      section: high
    - {<<: *last, name: d, angle_deg: 90.0}
model: constant_curvature
sensors:
  pose_topic: {rate_hz: 100.0}
recording:
  commands: {a: ua, b: ub, c: uc, d: ud}
  section_tips: {low: [x1, y1, z1], high: [x2, y2, z2]}
  mount: {position_m: [0.0, 0.0, 0.0], z_axis: [0.0, 0.0, 1.0], x_axis: [1.0, 0.0, 0.0]}
controller: {feedback_gain_1_s: 1.0, damping: 1.0e-3, max_correction_speed_m_s: 0.05}
trajectories:
  line: {type: line, start: [-0.02, 0.0, 0.2], end: [0.02, 0.0, 0.2]}
default_trajectory: line
"""
SHARED = PAIRS.replace(
    '      max_bending', '      rest_bend_deg: &bend [1.0, 2.0]\n      max_bending'
).replace('name: high}', 'name: high, rest_bend_deg: *bend}')


def written_rig(tmp_path, text=PAIRS):
    path = tmp_path / 'pairs.yaml'
    path.write_text(text, encoding='utf-8')
    return load_rig(path)


@pytest.fixture
def recording(tmp_path):
    """Return a file of poses at rest of the arm's own model."""
    rig, rng = written_rig(tmp_path), np.random.default_rng(0)
    lines = ['ua,ub,uc,ud,x1,y1,z1,x2,y2,z2']
    for command in rng.uniform(-0.01, 0.01, (12, 4)):
        tips = rig.physics().forward(command).section_tips[:, :3, 3]
        lines.append(','.join(f'{value:.6f}' for value in [*command, *tips.ravel()]))
    path = tmp_path / 'rest.csv'
    path.write_text('\n'.join(lines), encoding='utf-8')
    return path


@pytest.mark.parametrize('text', [PAIRS, SHARED], ids=['merged blocks', 'a shared list'])
@pytest.mark.parametrize(
    'name', ['low length', 'low rest_bend_x', 'high rest_bend_y', 'a on low_x', 'c on high_y']
)
def test_writing_a_value_shared_by_yaml_anchors_changes_only_its_own_field(name, text, tmp_path):
    rig = spelled_out(written_rig(tmp_path, text))
    parameters = all_parameters(rig)
    (one,) = [p for p in parameters if p.name == name]
    there = moved_by([one], values_of(rig, one.fields), np.array([0.5]))
    path = tmp_path / 'new.yaml'
    path.write_text(
        updated_text(rig.source.read_text(encoding='utf-8'), there, 'x', rig), encoding='utf-8'
    )
    fields = list(dict.fromkeys(f for p in parameters for f in p.fields))
    expected = values_of(with_values(rig, there), fields)
    assert values_of(spelled_out(load_rig(path)), fields) == pytest.approx(
        expected, rel=1e-5, abs=1e-9
    )


@pytest.mark.parametrize(
    'block', ['residual:\n  file: a.json\n', 'residual: {\n  file: a.json\n}\n']
)
def test_a_multi_line_residual_block_is_replaced_and_wrong_residuals_are_refused(
    block, recording, tmp_path
):
    pytest.importorskip('sklearn', reason='needs scikit-learn')
    longer = written_rig(tmp_path, PAIRS.replace('length_m: 0.1\n', 'length_m: 0.11\n'))
    first = tmp_path / 'first.yaml'
    list(
        run(
            longer,
            Asked((recording,), ('none',), 'nothing', residual=(('linear',),), output=first),
        )
    )
    (tmp_path / 'first.residual.json').rename(tmp_path / 'a.json')
    old = written_rig(tmp_path, PAIRS + block)
    new, _ = write(old, tmp_path / 'new.yaml', {'arm.sections[0].length_m': 0.11}, None, 'x')
    assert load_rig(new).residual.file == 'new.residual.json'
    residual = tmp_path / 'new.residual.json'
    text = residual.read_text()
    for features, groups, says in (
        (['linear', 'cube'], [0, 0, 1, 1], 'features linear, cube are 8 numbers; mean has 4'),
        (['spline 3'], [0, 0, 1, 1], "features: feature 'spline 3': expected one of linear,"),
        (['linear'], [0, 0, 2, 2], r'groups = \[0, 0, 2, 2\]: expected 0 to 1'),
    ):
        changed = {**json.loads(text), 'features': features, 'groups': groups}
        residual.write_text(json.dumps(changed))
        with pytest.raises(RigError, match=says):
            load_rig(new).learned_residual()
    negative = json.loads(text)['covariance']
    negative[0][0] = -1.0
    residual.write_text(json.dumps({**json.loads(text), 'covariance': negative}))
    with pytest.raises(RigError, match='covariance: smallest eigenvalue -1; expected none below'):
        load_rig(new).learned_residual()
    for damaged in ('', '[' * 100_000, text.replace('{', f'{{"x": {"1" * 5000},', 1)):
        residual.write_text(damaged)
        with pytest.raises(RigError, match='is not JSON: '):
            load_rig(new).learned_residual()
    residual.write_text(text)
    with pytest.raises(RigError, match='learned for model constant_curvature; the rig has coss'):
        load_rig(new, ['model=cosserat']).learned_residual()


def test_a_residual_of_a_model_that_the_new_rig_file_does_not_name_is_refused(recording, tmp_path):
    pytest.importorskip('sklearn', reason='needs scikit-learn')
    rig = load_rig(written_rig(tmp_path, PAIRS).source, ['model=cosserat'])
    asked = Asked((recording,), ('none',), residual=(('linear',),), output=tmp_path / 'new.yaml')
    with pytest.raises(UsageError, match='expected `model: cosserat` in the file instead'):
        list(run(rig, asked))


def test_an_unwritable_output_is_refused_before_recordings_are_read(tmp_path):
    rig = written_rig(tmp_path)
    asked = Asked((tmp_path / 'none.csv',), output=tmp_path / 'none' / 'new.yaml')
    with pytest.raises(NotWrittenError, match=r'new.yaml: cannot be written \(No such file'):
        list(run(rig, asked))


def test_an_output_without_a_name_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        app(['identify', str(written_rig(tmp_path).source), 'none.csv', '--output', '/'])
    assert stop.value.code == 2
    assert '/: cannot be written' in capsys.readouterr().err


def test_an_output_that_is_the_rig_file_is_refused(tmp_path, capsys):
    rig, link = written_rig(tmp_path), tmp_path / 'link.yaml'
    link.symlink_to(rig.source)
    text = rig.source.read_text()
    with pytest.raises(SystemExit) as stop:
        app(['identify', str(rig.source), 'none.csv', '--output', str(link)])
    assert stop.value.code == 2
    assert f'--output {link}: it is the rig file; expected a new file' in capsys.readouterr().err
    assert rig.source.read_text() == text


def test_an_output_whose_residual_is_that_of_the_rig_file_is_refused(tmp_path, capsys):
    rig = written_rig(tmp_path, PAIRS + 'residual: {file: first.residual.json}\n')
    (tmp_path / 'first.residual.json').write_text('{}')
    first = tmp_path / 'first.yaml'
    with pytest.raises(SystemExit) as stop:
        app(['identify', str(rig.source), 'none.csv', '--output', str(first)])
    assert stop.value.code == 2
    error = ' '.join(capsys.readouterr().err.split())
    assert 'first.residual.json: it is the residual of the rig file; expected a new file' in error
    assert (tmp_path / 'first.residual.json').read_text() == '{}'


def test_an_output_that_links_to_a_device_is_refused(tmp_path):
    rig, pipe = written_rig(tmp_path), tmp_path / 'device'
    pipe.symlink_to('/dev/null')
    with pytest.raises(UsageError, match='device: expected the name of a file'):
        list(run(rig, Asked((tmp_path / 'none.csv',), output=pipe)))


def test_writing_through_a_symbolic_link_keeps_the_link(tmp_path):
    rig, link = written_rig(tmp_path), tmp_path / 'link.yaml'
    link.symlink_to(rig.source)
    write(rig, link, {'arm.sections[0].length_m': 0.11}, None, 'x')
    assert link.is_symlink()
    assert load_rig(rig.source).arm.sections[0].length_m == 0.11


def test_a_failed_write_leaves_the_old_rig_file_unchanged(tmp_path):
    """As on a full disk: here a folder has the name of the temporary file."""
    rig = written_rig(tmp_path)
    half_of(tmp_path / 'pairs.yaml').mkdir()
    with pytest.raises(NotWrittenError, match='cannot be written'):
        write(rig, rig.source, {'arm.sections[0].length_m': 0.11}, None, 'x')
    assert rig.source.read_text(encoding='utf-8') == PAIRS


@pytest.mark.parametrize('left', [None, '', PAIRS.replace('sections:', 'parts:')])
def test_a_rig_file_changed_or_deleted_during_the_work_is_not_read_again(left, tmp_path):
    rig = written_rig(tmp_path)
    rig.source.unlink()
    if left is not None:
        rig.source.write_text(left, encoding='utf-8')
    new = tmp_path / 'new.yaml'
    write(rig, new, {'arm.sections[0].length_m': 0.11}, None, 'x')
    assert load_rig(new).arm.sections[0].length_m == 0.11


def test_a_residual_deleted_during_the_work_is_named(tmp_path):
    rig = written_rig(tmp_path, PAIRS + 'residual: {file: gone.json}\n')
    new = tmp_path / 'new.yaml'
    with pytest.raises(UsageError, match=r'gone\.json: the residual cannot be read any more'):
        write(rig, new, {'arm.sections[0].length_m': 0.11}, None, 'x')
    assert not new.exists()


def test_identify_reports_settings_that_the_written_file_does_not_contain(recording, tmp_path):
    rig, new = written_rig(tmp_path), tmp_path / 'new.yaml'
    more = ('--parameters', 'lengths', '--hold-out', 'nothing', '--output', str(new))
    setting = ('--set', 'arm.sections[0].endcap_length_m=0.02')
    for given in ((), setting):
        done = CliRunner().invoke(
            app, ['identify', str(rig.source), str(recording), *more, *given]
        )
        assert done.exit_code == 0, done.output
        assert (f'not {" ".join(setting)}: pass it' in done.output) == bool(given)


def test_identified_values_far_from_the_plant_are_written_and_the_plant_is_named(tmp_path):
    rig, new = load_rig('cable_arm'), tmp_path / 'new.yaml'
    field = 'arm.sections[1].cutting_in_stiffness_N_m2'
    with pytest.raises(UsageError) as refused:
        write(rig, new, {field: 500.0}, None, 'x')
    said = str(refused.value)
    assert said.startswith(f'{new} is written with the identified values, but cannot be loaded')
    assert 'plant.sections[1].cutting_in_stiffness_N_m2 = 28520' in said
    text = new.read_text()
    assert 'cutting_in_stiffness_N_m2: 500.0' in text
    new.write_text(
        text.replace('cutting_in_stiffness_N_m2: 2.852e+4', 'cutting_in_stiffness_N_m2: 4.0e+3')
    )
    assert load_rig(new).arm.sections[1].cutting_in_stiffness_N_m2 == 500.0


def test_the_written_file_finds_the_calibration_beside_the_old_one(tmp_path):
    from softarm_ros.runtime.arm_assembly import sensor_config

    old = load_rig('hydraulic_arm')
    new = tmp_path / 'new.yaml'
    write(old, new, {}, None, 'x')
    found = sensor_config(load_rig(new), 'stereo_cameras').base_calibration
    assert found == sensor_config(old, 'stereo_cameras').base_calibration
    assert 'base_calibration: /' not in new.read_text(encoding='utf-8')
    kept = tmp_path / 'again.yaml'
    write(load_rig(new), kept, {}, None, 'x')
    assert kept.read_text(encoding='utf-8') == new.read_text(encoding='utf-8')
