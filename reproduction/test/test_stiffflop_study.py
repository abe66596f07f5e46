"""The study of the measured pneumatic module: on synthetic data, and on the measurements."""

import os
from pathlib import Path

import numpy as np
import pytest

from softarm_reproduction.stiffflop_study import (
    KNOTS_PA,
    Identified,
    Recording,
    _predict,
    identify,
    read_recording,
    study,
    within_knots,
)
from softarm_ros.models.pneumatic.config import PressureCurveConfig

DATA = Path(os.environ.get('SOFTARM_DATA', Path(__file__).parents[2].parent / 'shared' / 'data'))
FOLDER = DATA / 'stiffflop_pneumatic'
measured = pytest.mark.skipif(
    not (FOLDER / 'noload.csv').is_file(),
    reason=f'no measurements at {FOLDER}; set SOFTARM_DATA to their folder',
)


def test_identification_recovers_the_parameters_of_synthetic_data():
    rng = np.random.default_rng(1)
    pressures = rng.uniform(0.0, 1.1e5, (150, 3))
    curves = tuple(
        PressureCurveConfig(
            pressure_Pa=tuple(KNOTS_PA), extension_m=(0.0, 0.002, 0.006, 0.010 + 0.001 * k)
        )
        for k in range(3)
    )
    truth = Identified(
        curves, 0.0075, 0.1, np.array([0.001, -0.002, 0.007]), np.array([0.01, 0.003, 0.0]), 0.0
    )
    found = identify(Recording(pressures, _predict(truth, pressures), None))
    assert found.rms_m < 1e-7
    assert found.radius == pytest.approx(0.0075, rel=1e-4)
    assert found.yaw == pytest.approx(0.1, abs=1e-5)
    for made, curve in zip(curves, found.curves):
        np.testing.assert_allclose(curve.extension_m, made.extension_m, atol=1e-6)


def test_recording_without_a_pressure_column_is_refused(tmp_path):
    path = tmp_path / 'noload.csv'
    path.write_text('time_s,p1_bar\n0,1\n1,1\n')
    with pytest.raises(ValueError, match='no column p2_bar'):
        read_recording(path)


@measured
def test_models_of_the_measured_module_rank_as_expected():
    found, rows = study(FOLDER)
    error = {row.model: row for row in rows}
    plain = error['constant curvature, identified curves']
    corrected = error['angle correction, measured force']
    assert found.rms_m < 0.7e-3
    # The measured force helps where the module is pressed; elsewhere creep remains.
    assert corrected.pressed_m < 0.8 * plain.pressed_m
    assert error['give along the arc, measured force'].pressed_m < 0.35 * plain.pressed_m
    # Two chambers together bend the module further than the sum of what each does alone.
    apart, as_one = (
        error['give along the arc, measured force'],
        error['the same, softening as one'],
    )
    assert as_one.free_m < 0.8 * apart.free_m
    assert as_one.noload_m == pytest.approx(apart.noload_m, rel=0.02)
    assert corrected.load1_m < plain.load1_m < 0.4 * error['tip stays at rest'].load1_m


def test_pressures_slightly_above_the_curves_are_clipped_and_larger_ones_refused():
    last = KNOTS_PA[-1]
    pressures = np.array([[0.0, 0.5 * last, last], [1.002 * last, 0.0, 0.0]])
    recording = Recording(pressures, np.zeros((2, 3)), None)
    inside, rows = within_knots(recording, 'load2.csv')
    assert rows == 1
    np.testing.assert_array_equal(inside.pressures, np.minimum(pressures, last))
    pressures[1, 0] = 1.03 * last
    with pytest.raises(ValueError, match=r'load2.csv: 115360 Pa is 3.0 % above the last knot'):
        within_knots(recording, 'load2.csv')
