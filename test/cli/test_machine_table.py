"""`softarm machines`: its tables, and the store of runs that are not repeated."""

import io
import json
import signal

import pytest
from rich.console import Console
from typer.testing import CliRunner

from softarm_ros.cli import machine_table
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.commands.machines import app
from softarm_ros.cli.machine_table import (
    MachineRun,
    cases_of,
    run_all,
    run_machine,
    run_table,
)
from softarm_ros.cli.run_command import EXIT_INTERRUPTED
from softarm_ros.rigs.loader import load_rig


def text_of(table):
    output = io.StringIO()
    Console(width=140, file=output).print(table)
    return output.getvalue()


def lines_of(store):
    return [line for line in (store / 'runs.jsonl').read_text().splitlines() if line]


def result(machine, mean, **changes):
    values = {
        'rig': 'cable_arm',
        'trajectory': 'line_small',
        'open_loop': False,
        'machine': machine,
        'completed': True,
        'mean_m': mean,
        'max_m': 2.0 * mean,
        'measured_mean_m': 1e-3,
    }
    return MachineRun(**values | changes)


def test_the_table_of_draws_shows_stated_and_drawn_values():
    plant = load_rig('cable_arm').plant
    found = CliRunner().invoke(app, ['cable_arm', '--machines', '2'])
    assert found.exit_code == 0
    for draw, other in zip(plant.drawn(1), plant.drawn(2)):
        (line,) = [k for k in found.output.splitlines() if f' {draw.field} ' in k]
        cells = [cell.strip() for cell in line.strip('│ ').split('│')][1:]
        low, high = sorted((draw.drawn, other.drawn))
        numbers = (draw.stated, low, high, draw.drawn, other.drawn)
        assert cells == [f'{value:.5g}' for value in numbers]


@pytest.mark.parametrize('number', [0, 5])
def test_a_number_in_the_file_does_not_make_all_machines_that_one(number):
    arguments = ['cable_arm', '--machines', '2']
    stated = CliRunner().invoke(app, [*arguments, '--set', f'plant.machine.number={number}'])
    assert stated.exit_code == 0
    assert stated.output == CliRunner().invoke(app, arguments).output


@pytest.mark.parametrize(
    ('option', 'value'), [('--store', 'here'), ('--trajectory', 'line_small')]
)
def test_options_of_runs_are_refused_without_runs(option, value):
    found = CliRunner().invoke(app, ['cable_arm', option, value])
    assert isinstance(found.exception, UsageError)
    assert str(found.exception) == f'{option} needs --runs'


@pytest.mark.parametrize('runs', [[], ['--runs']])
def test_a_rig_without_spreads_is_refused(runs):
    found = CliRunner().invoke(app, ['cable_arm', '--set', 'plant.machine=null', *runs])
    assert isinstance(found.exception, UsageError)
    assert str(found.exception).startswith('cable_arm: no plant.machine.spreads, so all machines')


def test_files_with_the_same_rig_name_are_separate_rigs(tmp_path):
    source = load_rig('cable_arm').source.read_text()
    files = [tmp_path / 'one.yaml', tmp_path / 'two.yaml']
    for file in files:
        file.write_text(source)
    cases = cases_of([load_rig(file) for file in files], ['line_small'], 1)
    assert {case.label for case in cases} == {'cable_arm (one.yaml)', 'cable_arm (two.yaml)'}
    runs = [result(1, 1e-3 * k, rig=case.label) for k, case in enumerate(cases[::4], 1)]
    rows = [line for line in text_of(run_table(runs)).splitlines() if 'line_small' in line]
    assert ['one.yaml' in row for row in rows] == [True, False]


def test_the_table_has_median_and_percentile_of_machines_without_the_nominal_one():
    means = [1e-3 * k for k in range(1, 12)]
    runs = [result(0, 0.0123), *(result(k + 1, mean) for k, mean in enumerate(means))]
    failed = result(12, 0.5, completed=False, why='left the range')
    line = text_of(run_table([*runs, failed])).split('line_small')[1].splitlines()[0]
    cells = [cell.strip() for cell in line.strip('│ ').split('│')]
    assert cells == ['closed', '11', '12.30', '6.00', '10.00', '1.00', '1.00', '1']


def test_stored_runs_are_not_repeated(tmp_path, monkeypatch):
    rig = load_rig('cable_arm')
    cases = cases_of([rig], ['line_small'], 1)
    assert [(c.open_loop, c.machine) for c in cases] == [
        (True, 0),
        (True, 1),
        (False, 0),
        (False, 1),
    ]
    run = []

    def counted(case, should_stop):
        run.append(case.key)
        return result(case.machine, 1e-3, open_loop=case.open_loop)

    monkeypatch.setattr(machine_table, 'run_machine', counted)
    console = Console(file=io.StringIO())
    first = run_all(cases[:3], tmp_path, console, lambda: False)
    with (tmp_path / 'runs.jsonl').open('a') as file:
        file.write('\n{"key": "cut off')
    assert run_all(cases[:3], tmp_path, console, lambda: False) == first
    assert len(run) == 3
    run_all(cases, tmp_path, console, lambda: False)
    run_all(cases, tmp_path, console, lambda: False)
    assert len(run) == 4
    # Another value in the rig file makes another case.
    other = load_rig('cable_arm', settings=['tip_load_kg=0.001'])
    run_all(cases_of([other], ['line_small'], 1)[:3], tmp_path, console, lambda: False)
    assert len(set(run)) == 7


def test_a_changed_residual_file_changes_the_key_of_a_case(tmp_path):
    """The residual file, next to the rig file, changes but keeps its name."""
    path, learned = tmp_path / 'learned.yaml', tmp_path / 'residual.json'
    path.write_text(
        load_rig('cable_arm').source.read_text() + '\nresidual: {file: residual.json}\n'
    )
    (case,) = cases_of([load_rig(path)], ['line_small'], 0)[:1]
    keys = []
    for text in ('{"weights": 1}', '{"weights": 2}', '{"weights": 1}'):
        learned.write_text(text)
        keys.append(case.key)
    assert keys[0] != keys[1] and keys[0] == keys[2]


def test_a_store_with_damaged_bytes_returns_its_intact_runs(tmp_path):
    machine_table.keep(tmp_path, 'one', result(1, 1e-3))
    with (tmp_path / 'runs.jsonl').open('ab') as file:
        file.write(b'\n{"key": "two\xff\xfe\x00')
    machine_table.keep(tmp_path, 'three', result(3, 1e-3))
    assert set(machine_table.read_store(tmp_path)) == {'one', 'three'}


def test_an_unwritable_store_is_refused_before_any_run(tmp_path, monkeypatch):
    taken = tmp_path / 'taken'
    taken.write_text('')
    monkeypatch.setattr(machine_table, 'run_machine', lambda *_: pytest.fail('has run'))
    cases = cases_of([load_rig('cable_arm')], ['line_small'], 1)
    with pytest.raises(UsageError, match=r'--store .*taken: cannot be written \(File exists\)'):
        run_all(cases, taken, Console(file=io.StringIO()), lambda: False)


def test_a_store_that_becomes_full_is_named(tmp_path):
    (tmp_path / machine_table.STORE).symlink_to('/dev/full')
    with pytest.raises(UsageError, match=rf'--store {tmp_path}: cannot be written \(No space'):
        machine_table.keep(tmp_path, 'one', result(1, 1e-3))


def test_machines_are_run_stored_and_judged_by_their_true_tip(tmp_path):
    path = tmp_path / 'short.yaml'
    text = load_rig('cable_arm').source.read_text()
    short = 'short: {type: line, start: [0.06, 0, 0.2], end: [0.06, 0.005, 0.2], speed: 0.015}'
    path.write_text(text.replace('\ntrajectories:\n', f'\ntrajectories:\n  {short}\n'))
    output = tmp_path / 'store'
    arguments = [str(path), '--runs', '--trajectory', 'short', '--machines', '1']
    found = CliRunner().invoke(app, [*arguments, '--store', str(output)])
    assert found.exit_code == 0, found.output
    rows = [json.loads(line) for line in lines_of(output)]
    assert [(row['open_loop'], row['machine']) for row in rows] == [
        (True, 0),
        (True, 1),
        (False, 0),
        (False, 1),
    ]
    for row in rows:
        assert row['completed'] and row['mean_m'] > 1e-4
        assert row['mean_m'] != row['measured_mean_m']
    again = CliRunner().invoke(app, [*arguments, '--store', str(output)])
    assert again.output == found.output
    assert len(lines_of(output)) == 4


def test_an_unknown_trajectory_is_refused():
    with pytest.raises(UsageError, match="cable_arm has no trajectory 'cirlce'; known: "):
        cases_of([load_rig('cable_arm')], ['cirlce'], 2)


def test_ctrl_c_ends_the_runs_with_the_exit_status_of_an_interrupt(monkeypatch):
    driven = []

    def interrupted(case, stopped):
        driven.append(case)
        signal.raise_signal(signal.SIGINT)
        return run_machine(case, stopped)

    monkeypatch.setattr(machine_table, 'run_machine', interrupted)
    arguments = ['cable_arm_single', '--runs', '--trajectory', 'circle_small', '--machines', '2']
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == EXIT_INTERRUPTED, found.output
    assert len(driven) == 1
