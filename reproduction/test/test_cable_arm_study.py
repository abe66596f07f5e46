"""The cable arm's experiments: where cable statics is better, and where it is not."""

import numpy as np
import pytest

from softarm_reproduction import cable_arm_experiments
from softarm_reproduction.cable_arm_study import (
    BASELINE,
    PROPOSED,
    circle_at,
    line_at,
    section_sweep,
)
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct

RIG = load_rig('cable_arm')


def open_loop_errors(make, bending_deg):
    path = make(RIG.model(PROPOSED), np.deg2rad(bending_deg), 0.03)
    rig = RIG.model_copy(update={'trajectories': {'path': path}, 'default_trajectory': 'path'})
    return {
        model: run_direct(rig, model=model, open_loop=True).error().mean
        for model in (BASELINE, PROPOSED)
    }


@pytest.mark.parametrize('make', [circle_at, line_at])
def test_cable_statics_is_more_accurate_if_sections_bend_strongly(make):
    errors = open_loop_errors(make, 100.0)
    assert errors[PROPOSED] < 0.7 * errors[BASELINE]


@pytest.mark.parametrize('make', [circle_at, line_at])
def test_models_agree_if_sections_bend_little(make):
    errors = open_loop_errors(make, 15.0)
    assert errors[PROPOSED] == pytest.approx(errors[BASELINE], rel=0.1)


def test_bending_error_of_the_baseline_grows_and_exceeds_that_of_cable_statics():
    rows = section_sweep(
        load_rig('cable_arm_single'), np.deg2rad([45.0, 90.0]).tolist(), [0.0, np.pi / 3], seed=0
    )
    errors = {(r.model, round(np.rad2deg(r.bending)), round(r.direction, 2)): r for r in rows}
    for direction in (0.0, 1.05):
        base = errors[BASELINE, 90, direction].bending_error
        assert base > errors[BASELINE, 45, direction].bending_error > 0.0
        assert abs(errors[PROPOSED, 90, direction].bending_error) < 0.6 * base


def test_open_loop_rows_are_means_and_deviations_of_the_trials(monkeypatch):
    """The paper drives each path three times; the page showed one run and no single section."""
    monkeypatch.setattr(cable_arm_experiments, 'TRIALS', 2)
    single = load_rig('cable_arm_single', ['plant.machine.number=0'])
    shown = cable_arm_experiments._open_loop(single, ('circle',), 'figure 9', 4)
    rows = {row.quantity: row for row in shown.rows}
    means = {}
    for model, paper in ((BASELINE, 27.4667), (PROPOSED, 15.6667)):
        label = f'circle, {cable_arm_experiments.LABELS[model]}, 2 trials: '
        mean, deviation = rows[f'{label}mean tip error'], rows[f'{label}its standard deviation']
        assert mean.paper == pytest.approx(paper, abs=1e-3)
        means[model] = mean.ours
    assert means[BASELINE] > 1.5 * means[PROPOSED]
    runs = [
        run_direct(single, seed=seed, model=PROPOSED, trajectory='circle', open_loop=True, laps=1)
        for seed in (4, 5)
    ]
    errors = [1e3 * run.error().mean for run in runs]
    assert means[PROPOSED] == pytest.approx(np.mean(errors))
    assert deviation.ours == pytest.approx(np.std(errors, ddof=1), abs=1e-9)
