"""`softarm faults`: tables, bars, exit status and refused arguments."""

import contextlib
import io
import json
import signal

import pytest
from rich.console import Console
from typer.testing import CliRunner

from softarm_ros.cli import faults_command
from softarm_ros.cli.faults_command import (
    CleanRun,
    TriedFault,
    _fault_table,
    _loaded,
    bar,
    clean_table,
)
from softarm_ros.cli.main import app
from softarm_ros.cli.rig_labels import rig_labels
from softarm_ros.cli.run_command import EXIT_INTERRUPTED
from softarm_ros.control.feedback_watch import Extremes
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.fault_trials import CAMERA_FAULTS, Trial

RIG, PATH = 'cable_arm_single', 'circle_small'
# Half the rates of the file: faults are noticed after a time, not after a number of cycles.
RATES = ('--set', 'controller.rate_hz=50', '--set', 'sensors.pose_topic.rate_hz=50')


def softarm(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def trial(fault, *, noticed='x', after=0.1, deviation=0.001):
    return Trial(fault, False, noticed, after, after, deviation, deviation)


@pytest.fixture(scope='module')
def machines(tmp_path_factory):
    """Return the printed output for two machines, and the rows of their file."""
    file = tmp_path_factory.mktemp('faults') / 'faults.json'
    result = softarm('faults', RIG, '--trajectory', PATH, '--seeds', 2, '--json', file, *RATES)
    assert result.exit_code == 0, result.output
    return result.output, json.loads(file.read_text())


def test_camera_faults_and_a_cable_snap_are_tried_and_miss_no_bar(machines):
    rows = [row for row in machines[1] if row['seed'] == 0]
    tried = [row['fault'] for row in rows if not row['at_rest']]
    assert [f'cameras {kind}' for kind in CAMERA_FAULTS] == tried[: len(CAMERA_FAULTS)]
    assert any(fault.startswith('cable snap') for fault in tried)
    assert all(row['bar_met'] is not False for row in rows)
    assert 'repeats itself' in rows[0]['noticed_by']


@pytest.mark.parametrize(('seeds', 'machines'), [(range(3, 5), {3, 4}), (range(3, 4), {7})])
def test_a_number_in_the_file_chooses_the_machine_of_one_seed_but_not_of_several(seeds, machines):
    (rig,) = _loaded([RIG], ['plant.machine.number=7'], seeds)
    assert {rig.plant_for('sim').machine_number(seed) for seed in seeds} == machines


def test_table_of_one_machine_has_a_row_per_fault_and_names_the_detector():
    trials = [trial('cameras room', noticed='feedback: frame'), trial('cameras old', noticed='')]
    met = (True, False)
    tried = [TriedFault(RIG, 0, t.fault, t, bar_met) for t, bar_met in zip(trials, met)]
    console = Console(file=io.StringIO(), width=160)
    console.print(_fault_table(RIG, load_rig(RIG), PATH, tried))
    room, old = (line for line in console.file.getvalue().splitlines() if 'cameras' in line)
    assert ' '.join(room.split()) == 'cameras room 100 100 1.0 0.8 1.0 met feedback: frame'
    assert ' '.join(old.split()) == 'cameras old 100 100 1.0 0.8 1.0 MISSED nobody'


def test_table_of_several_machines_has_one_row_per_fault(machines):
    output, rows = machines
    cases = {row['case'] for row in rows}
    assert {(row['seed'], row['case']) for row in rows} == {(s, c) for s in (0, 1) for c in cases}
    assert 'cameras freeze (at rest)' in cases
    assert any(case.endswith('most loaded') for case in cases)
    frozen = [row['deviation_m'] for row in rows if row['case'] == 'cameras freeze']
    assert frozen[0] != frozen[1]  # another machine
    assert '2 of 2' in output
    assert f'{1e3 * max(frozen):.1f}' in output


def test_clean_runs_of_a_rig_file_have_no_false_alarm_and_show_the_limit(tmp_path):
    mine = tmp_path / 'mine.yaml'
    mine.write_text(load_rig(RIG).source.read_text().replace(f'name: {RIG}', 'name: mine'))
    limit = (*RATES, '--set', 'supervisor.feedback_watch.max_drift_m=0.0123')
    path = ('--trajectory', PATH, '--clean', '--seeds', 2)
    result = softarm('faults', mine, *path, *limit)
    assert result.exit_code == 0, result.output
    assert '0 false alarms in 2 runs of 2' in result.output
    assert 'mine' in result.output
    assert 'of 12.3' in result.output


def test_files_with_the_same_rig_name_have_separate_rows_and_limits(tmp_path):
    text = load_rig(RIG).source.read_text()
    places = [tmp_path / name for name in ('one.yaml', 'two.yaml', 'there/two.yaml')]
    (tmp_path / 'there').mkdir()
    for place in places:
        place.write_text(text)
    drift = 'supervisor.feedback_watch.max_drift_m'
    rigs = [load_rig(place, [f'{drift}={k}e-3']) for k, place in enumerate(places, 11)]
    labels = rig_labels([load_rig('trunk'), *rigs, rigs[0]])
    called = ('one.yaml', *map(str, places[1:]), 'one.yaml')
    assert labels == ['trunk', *(f'{RIG} ({name})' for name in called)]
    labelled = dict(zip(labels[1:4], rigs))
    seen = [Extremes(drift_m=1e-3 * k) for k in (1, 2, 3)]
    runs = [CleanRun(*at, PATH, 0, '', True, 9.0, most, 0.0) for *at, most in zip(labelled, seen)]
    console = Console(file=io.StringIO(), width=300)
    console.print(clean_table(labelled, runs))
    for k, label in enumerate(labelled, 1):
        row = console.file.getvalue().partition(label)[2].splitlines()[0]
        assert row.split()[:6] == ['0', 'of', '1', f'{k}.0', 'of', str(10 + k)]


@pytest.mark.parametrize('clean', [['--clean'], []])
def test_ctrl_c_ends_the_trials_with_the_exit_status_of_an_interrupt(monkeypatch, clean):
    stop_on_signals = faults_command.stop_on_signals

    @contextlib.contextmanager
    def interrupted_at_once():
        with stop_on_signals() as stopped:
            signal.raise_signal(signal.SIGINT)
            yield stopped

    monkeypatch.setattr(faults_command, 'stop_on_signals', interrupted_at_once)
    result = softarm('faults', RIG, '--trajectory', PATH, *clean)
    assert result.exit_code == EXIT_INTERRUPTED, result.output


def test_a_trajectory_without_a_rig_is_refused():
    result = softarm('faults', '--trajectory', PATH)
    assert result.exit_code == 2
    assert 'belongs to one RIG' in result.output


@pytest.mark.parametrize(
    ('tried', 'met'),
    [
        (trial('cameras freeze', after=0.5), True),
        (trial('cameras freeze', after=0.51), False),
        (trial('cameras freeze', deviation=0.011), False),
        (trial('cameras room', noticed=''), False),
        (trial('cable snap cable_1', after=1.0), True),
        (trial('cable snap cable_1', after=1.1), False),
        (trial('cable snap cable_1', noticed='', after=None), None),
        (trial('cable snap cable_1', noticed='', after=None, deviation=0.02), False),
        (trial('cameras old', after=3.0), None),
    ],
)
def test_bar_judges_detection_time_and_deviation(tried, met):
    assert bar(tried, 0.2) is met


def test_a_machine_that_never_tracks_is_reported_and_the_next_one_is_tried(tmp_path):
    strict = ('--set', 'supervisor.feedback_watch.max_model_error_m=0.001')
    file = tmp_path / 'faults.json'
    result = softarm('faults', RIG, '--seeds', 2, '--json', file, *strict, *RATES)
    assert result.exit_code == 1
    for seed in (0, 1):
        words = f'seed {seed}: {RIG}: the run without a fault never tracks: measured tip is '
        assert words in ' '.join(result.output.split())
    assert json.loads(file.read_text()) == []
