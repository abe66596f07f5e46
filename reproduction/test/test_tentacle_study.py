"""Cosserat rod and the measured tentacle: prediction of the runs that it was not fitted to."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest

from softarm_reproduction.data_folder import folder_of
from softarm_reproduction.tentacle_study import (
    AUTHORS_RMS_MM,
    both_halves,
    load_runs,
    report,
    rod_markers,
    tentacle,
)

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get('SOFTARM_DATA', ROOT.parent / 'shared' / 'data')) / 'tendon_tentacle'
needs_data = pytest.mark.skipif(
    not (DATA / 'static_means.csv').is_file(),
    reason=f'no measured data at {DATA}; set SOFTARM_DATA to the folder that holds it',
)


@needs_data
def test_rod_predicts_the_other_half_of_the_runs_better_than_the_authors_fit():
    results = both_halves(load_runs(DATA))
    print(report(results))
    for result in results:
        assert len(result.trained_on) == 7
        assert (result.rod_test_mm < AUTHORS_RMS_MM).all()
        assert (result.rod_test_mm < result.arc_test_mm).all()
        assert result.rod_test_mm[3] < 0.6 * AUTHORS_RMS_MM[3]
        assert 250e3 < result.modulus_Pa < 500e3
        assert 800.0 < result.density_kg_m3 < 1600.0


@needs_data
def test_two_steps_per_piece_are_exact_to_10_micrometres():
    for run in load_runs(DATA):
        coarse, fine = tentacle(371e3, 1150.0), tentacle(371e3, 1150.0, steps=20)
        difference = rod_markers(coarse, run.tensions) - rod_markers(fine, run.tensions)
        assert np.abs(difference).max() < 1e-5


def test_other_tendon_mirrors_the_tip_position():
    rod = tentacle(371e3, 1150.0)
    first = rod.solve(np.array([4.0, 0.0])).tip
    second = rod.solve(np.array([0.0, 4.0])).tip
    assert second[:3, 3] == pytest.approx(first[:3, 3] * [-1.0, 1.0, 1.0], abs=1e-9)


@pytest.mark.parametrize(
    ('study', 'missing'),
    [
        ('tentacle_study', 'tendon_tentacle/static_means.csv or static_means.csv'),
        ('stiffflop_study', 'stiffflop_pneumatic/noload.csv or noload.csv'),
        ('mocap_study', r'asu_pneumatic/\*.csv or \*.csv'),
        ('stereo_real_study', r'aarhus_stereo_tendon/calib/left_\*.png or calib/left_\*.png'),
        ('tentacle_both_tendons', 'tendon_tentacle/static_means.csv'),
        ('trunk_trials', r'asl_trunk/servo_\*.csv'),
    ],
)
def test_folder_without_recordings_is_refused(study, missing, monkeypatch, tmp_path):
    module = importlib.import_module(f'softarm_reproduction.{study}')
    monkeypatch.setattr('sys.argv', [study, str(tmp_path)])
    arguments = [[str(tmp_path)]] if study == 'tentacle_study' else []
    with pytest.raises(SystemExit, match=f'DATA_DIR {tmp_path}: no {missing} in it'):
        module.main(*arguments)


def test_data_folder_is_that_of_an_arm_or_its_parent(tmp_path):
    one = tmp_path / 'arm'
    one.mkdir()
    (one / 'run.csv').touch()
    assert folder_of(tmp_path, 'arm', '*.csv') == folder_of(one, 'arm', '*.csv') == one
