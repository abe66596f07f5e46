"""Pages of the experiments: their contents, and a refused arm."""

import json

import numpy as np
import pytest
from rich.console import Console

from softarm_reproduction.experiment_page import console_tables, write_page
from softarm_reproduction.experiments import Experiment, Picture, Row, Table
from softarm_reproduction.reproduce import STUDIES, reproduce
from softarm_reproduction.tracking_study import track, tracking_experiment
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.report_plotting import new_figure
from softarm_ros.rigs.loader import load_rig


def draw(figure):
    figure.subplots().plot([0.0, 1.0], [0.0, 1.0])


EXPERIMENTS = [
    Experiment(
        'First <one>',
        'prediction',
        'A text & more.',
        (Row('angle', 'deg', 12.0, 18.0), Row('zero', 'mm', 0.0, 0.1), Row('open', '', None, 2.0)),
        None,
        (Picture('line', 'A line.', draw),),
    ),
    Experiment(
        'Second', 'not reproduced', 'Its input is lost.', (), Table(('a', 'b'), (('x', '1'),))
    ),
]


def test_a_page_has_every_experiment_with_ratio_basis_and_figure(tmp_path):
    file = write_page('An arm', 'lead', EXPERIMENTS, tmp_path)
    text = file.read_text()
    assert 'First &lt;one&gt;' in text and 'A text &amp; more.' in text
    assert '1.50' in text and text.count('data:image/png') == 1
    assert 'Ours is: prediction of the model.' in text and 'Ours is: not reproduced.' in text
    assert (tmp_path / 'line.png').read_bytes().startswith(b'\x89PNG')
    numbers = json.loads((tmp_path / 'experiments.json').read_text())
    assert [r['ratio'] for r in numbers[0]['rows']] == [1.5, None, None]
    shown = Console(record=True, width=120)
    for experiment in EXPERIMENTS:
        for table in console_tables(experiment):
            shown.print(table)
    assert 'angle' in shown.export_text()


def test_tracking_experiment_shows_the_errors_and_paths_of_its_runs():
    rig = load_rig('cable_arm')
    paths = track(rig, ['line_small'], [3, 4])
    experiment = tracking_experiment(paths, (), '')
    row = experiment.table.rows[0]
    errors = [r.error() for r in paths[0].closed]
    assert float(row[2]) == pytest.approx(1e3 * np.mean([e.mean for e in errors]), abs=0.006)
    assert float(row[3]) == pytest.approx(1e3 * max(e.max for e in errors), abs=0.006)
    assert float(row[1]) > 5.0 * float(row[2])
    assert row[-1] == 'met'
    assert errors[0].mean != errors[1].mean
    (picture,) = experiment.pictures
    figure = new_figure(3.0)
    picture.draw(figure)
    (ax,) = figure.axes
    plane = ['xyz'.index(label[0]) for label in (ax.get_xlabel(), ax.get_ylabel())]
    shown = {line.get_label(): line.get_xydata() for line in ax.lines}
    for label, run in (('open loop', paths[0].opened), ('closed loop', paths[0].closed[0])):
        tips = run.samples.tip[run.samples.tracking]
        np.testing.assert_allclose(shown[label], 1e3 * tips[:, plane])
    np.testing.assert_allclose(shown['reference'], 1e3 * paths[0].opened.path[:, plane])


@pytest.mark.parametrize('name', STUDIES)
def test_every_study_names_trajectories_of_its_rig(name):
    rig = load_rig(name)
    assert set(STUDIES[name].tracked) <= set(rig.trajectories)
    assert len(STUDIES[name].tracked) >= 3


def test_unknown_arm_is_refused_with_a_suggestion(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'cable_arm'"):
        reproduce(['cable_amr'], tmp_path, Console())
