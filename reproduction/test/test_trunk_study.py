"""The recordings of the ASL trunk, predicted."""

import html

import numpy as np
import pytest

from softarm_reproduction import trunk_experiments
from softarm_reproduction.experiment_page import write_page
from softarm_reproduction.trunk_experiments import experiments
from softarm_reproduction.trunk_study import (
    RADII_TOO,
    data_folder,
    force_study,
    moving_study,
    nominal_rig,
    rest_study,
    servo_study,
)
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig_of

FOLDER = data_folder()
measured = pytest.mark.skipif(
    FOLDER is None, reason='no recordings asl_trunk; set SOFTARM_DATA to the folder around it'
)


@pytest.fixture(scope='module')
def rig():
    return load_rig_of(CableArm, 'trunk')


@pytest.fixture(scope='module')
def once():
    """Return a function that wraps a study of the recordings so that it runs only once."""
    carried_out = {}

    def of_study(study):
        def known(rig, folder, *split):
            key = (study.__name__, *split)
            if key not in carried_out:
                carried_out[key] = study(rig, folder, *split)
            return carried_out[key]

        return known

    return of_study


def of(predictions, name):
    return next(p.errors for p in predictions if p.name == name)


def test_nominal_trunk_has_parameters_from_geometry_only(rig):
    model = nominal_rig(rig).model()
    assert model.rest_length_m == pytest.approx(0.322)
    np.testing.assert_array_equal(model.rest_configuration, 0.0)
    gains = np.linalg.norm(model.bends_per_contraction.reshape(3, 2, 6), axis=1)
    # By geometry: one over the radius, and turned back by the next section, tendon for tendon.
    np.testing.assert_allclose(gains[0], [50.0, 50.0, 0.0, 0.0, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(gains[1], [50.0, 50.0, 50.0, 50.0, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(gains[2], [0.0, 0.0, 50.0, 50.0, 50.0, 50.0], atol=1e-9)


@measured
@pytest.mark.parametrize(
    ('split', 'bars_mm'), [('blocks', (2.0, 4.8, 11.0)), ('halves', (2.4, 5.7, 12.2))]
)
def test_identified_trunk_predicts_the_moving_run_within_the_bars(rig, once, split, bars_mm):
    study = once(moving_study)(rig, FOLDER, split)
    found = of(study.predictions, 'all identified')
    nominal = of(study.predictions, 'constant curvature, nominal')
    assert np.all(found.rms < 1e-3 * np.array(bars_mm))
    assert np.all(found.rms < 0.45 * nominal.rms)
    assert np.all(
        found.rms[1:] < of(study.predictions, 'linear from commands to tips, no arm').rms[1:]
    )
    radii = of(study.predictions, RADII_TOO)
    assert radii.rms[2] < 0.4 * nominal.rms[2]
    assert np.all(found.rms < radii.rms)
    assert np.all(found.rms < 0.5 * of(study.predictions, 'mean pose').rms)
    assert len(study.test) > 1500


@measured
def test_identified_trunk_predicts_other_sessions_better_than_the_baselines(rig, once):
    study = once(moving_study)(rig, FOLDER, 'blocks')
    rest = rest_study(rig, FOLDER, study.found)
    assert rest.commands == 10
    assert 2e-3 < rest.repeatability_m[2] < 20e-3
    found = of(rest.predictions, 'identified from the moving run')
    assert np.all(found.mean < 0.65 * of(rest.predictions, 'constant curvature, nominal').mean)
    force = once(force_study)(rig, FOLDER)
    assert (force.identified_from, force.predicted) == (550, 550)
    errors = of(force.predictions, 'all identified')
    assert np.all(errors.rms < 0.6 * of(force.predictions, 'mean pose').rms)


@measured
def test_servos_are_0_2_s_late_and_the_first_base_servo_has_a_low_gain(rig, once):
    servos = {servo.name: servo for servo in once(servo_study)(rig, FOLDER)}
    assert all(0.2 <= servo.delay_s <= 0.26 for servo in servos.values())
    assert servos['base_1'].gain < 0.8
    assert all(servos[name].gain > 0.9 for name in ('middle_1', 'middle_2', 'tip_1', 'tip_2'))


@measured
def test_page_shows_all_trunk_experiments(tmp_path, once, monkeypatch):
    for study in (moving_study, force_study, servo_study):
        monkeypatch.setattr(trunk_experiments, study.__name__, once(study))
    found = experiments(lambda text: None)
    assert len(found) == 5
    text = write_page('trunk', 'lead', found, tmp_path).read_text()
    assert all(html.escape(experiment.title) in text for experiment in found)
    assert {p.name for p in tmp_path.glob('*.png')} == {'moving_blocks.png', 'moving_halves.png'}


def test_missing_recordings_are_stated_as_not_reproduced(monkeypatch):
    monkeypatch.setattr(trunk_experiments, 'data_folder', lambda: None)
    (only,) = experiments(lambda text: None)
    assert only.basis == 'not reproduced'
    assert 'SOFTARM_DATA' in only.text
