"""`softarm faults`: inject faults into a simulated arm in mid-run; report their detection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from softarm_ros.cli.all_machines import load_for_machines
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.rig_labels import rig_labels
from softarm_ros.cli.run_command import EXIT_INTERRUPTED, compile_kernels
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.cli.text_output import write_file
from softarm_ros.control.feedback_watch import Extremes
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.trajectory_file import resolve_trajectory
from softarm_ros.runtime.fault_trials import FaultTrials, NoTrackingError, Trial
from softarm_ros.runtime.supervised_run import run_supervised
from softarm_ros.whole_file import require_writable

EXIT_SHORT = 1
FEEDBACK_S, BROKEN_S = 0.5, 1.0  # bars on the time to notice: a wrong pose, a broken part
DEVIATION_M, DEVIATION_SHARE = 0.01, 0.04  # bar: the larger of both; share of the length
BARRED = ('freeze', 'room', 'mislabel')


@dataclass(frozen=True)
class TriedFault:
    """A trial on the machine of a seed; `bar_met` is None if the trial has no bar."""

    rig: str
    seed: int
    case: str
    trial: Trial
    bar_met: bool | None

    def as_json(self) -> dict[str, Any]:
        """Return all fields, those of `trial` included, in one flat dictionary."""
        return {
            'rig': self.rig,
            'seed': self.seed,
            'case': self.case,
            'bar_met': self.bar_met,
            **asdict(self.trial),
        }


@dataclass(frozen=True)
class CleanRun:
    """
    A run without a fault; `alarm` is the reason if the supervisor stopped it.

    `rig` is the label of the rig (`rig_labels`), here as in `TriedFault`.
    """

    rig: str
    trajectory: str
    seed: int
    alarm: str
    completed: bool
    duration_s: float
    extremes: Extremes
    pressure_error_Pa: float


def faults_command(
    rigs: Sequence[str],
    settings: Sequence[str],
    trajectory: str | None,
    seeds: range,
    clean: bool,
    json_file: Path | None,
    console: Console,
) -> int:
    """
    Run fault trials, or clean runs, of every rig on the machines of `seeds`; return the status.

    Prints the results, and writes them to `json_file`.
    """
    if trajectory is not None and len(rigs) != 1:
        raise UsageError('--trajectory belongs to one RIG')
    if json_file is not None:
        require_writable(json_file)
    found = _loaded(rigs or [info.name for info in list_rigs()], settings, seeds)
    for rig in found:
        resolve_trajectory(rig, trajectory)
    for rig in found:
        compile_kernels(rig, console)
    labelled = dict(zip(rig_labels(found), found))
    if clean:
        status, rows = _clean(labelled, trajectory, seeds, console)
    else:
        status, rows = _broken(labelled, trajectory, seeds, console)
    if json_file is not None:
        with stop_on_signals():  # they come too late to stop anything
            write_file(json.dumps(rows, indent=1) + '\n', json_file, '--json')
    return status


def _loaded(names: Sequence[str], settings: Sequence[str], seeds: range) -> list[Rig]:
    load = load_rig if len(seeds) == 1 else load_for_machines
    return [load(name, settings) for name in names]


# -- faults -----------------------------------------------------------------------------------


def _broken(
    rigs: Mapping[str, Rig], trajectory: str | None, seeds: range, console: Console
) -> tuple[int, list[dict[str, Any]]]:
    tried: list[TriedFault] = []
    untried = False
    with stop_on_signals() as stopped:
        for label, rig in rigs.items():
            mine: list[TriedFault] = []
            length = rig.model().rest_length_m
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task(f'{label}: runs without a fault', total=None)
                for done, seed in enumerate(seeds):
                    if stopped():
                        break
                    try:
                        bench = FaultTrials(rig, trajectory, seed)
                    except NoTrackingError as error:
                        untried = True
                        console.print(f'seed {seed}: {error}', markup=False, highlight=False)
                        continue
                    cases = bench.cases()
                    progress.update(task, total=len(cases) * (len(seeds) - done) + len(mine))
                    for case in cases:
                        if stopped():
                            break
                        progress.update(task, description=f'{label}, seed {seed}: {case.name}')
                        trial = bench.trial(case.fault, at_rest=case.at_rest)
                        met = bar(trial, length)
                        mine.append(TriedFault(label, seed, case.name, trial, met))
                        progress.advance(task)
            if mine:
                console.print(
                    _fault_table(label, rig, trajectory, mine)
                    if len(seeds) == 1
                    else _machines_table(label, rig, trajectory, mine)
                )
            tried += mine
            if stopped():
                break
    short = untried or any(row.bar_met is False for row in tried)
    status = EXIT_SHORT if short else 0
    return EXIT_INTERRUPTED if stopped() else status, [row.as_json() for row in tried]


def bar(trial: Trial, length_m: float) -> bool | None:
    """
    Return whether a trial meets its bar, or None if it has none.

    A part that breaks without load has no bar: no sensor can show its failure.
    """
    device, kind = trial.fault.split()[:2]
    after = trial.after_motion_s
    near = trial.deviation_m <= max(DEVIATION_M, DEVIATION_SHARE * length_m)
    if device != 'cameras':
        if not trial.noticed:
            return None if near else False
        return after is not None and after <= BROKEN_S
    if kind not in BARRED:
        return None
    if not trial.noticed:
        return False
    return near and (after is None or after <= FEEDBACK_S)


def _fault_table(
    label: str, rig: Rig, trajectory: str | None, tried: Sequence[TriedFault]
) -> Table:
    """Return a table with one row per fault, for one machine."""
    name = trajectory or rig.default_trajectory
    length = rig.model().rest_length_m
    table = Table(box=box.SIMPLE, title=f'{label}, {name}: faults in simulated runs')
    table.add_column('fault')
    for heading in ('after fault, ms', 'after motion, ms', 'off its way, mm', '% of length'):
        table.add_column(heading, justify='right')
    table.add_column('off reference, mm', justify='right')
    table.add_column('bar')
    table.add_column('noticed by', overflow='fold')
    for row in tried:
        trial = row.trial
        table.add_row(
            trial.fault + (' (at rest)' if trial.at_rest else ''),
            _milliseconds(trial.reaction_s),
            _milliseconds(trial.after_motion_s),
            f'{1e3 * trial.deviation_m:.1f}',
            f'{100.0 * trial.deviation_m / length:.1f}',
            f'{1e3 * trial.error_m:.1f}',
            '' if row.bar_met is None else 'met' if row.bar_met else 'MISSED',
            trial.noticed_by or 'nobody',
        )
    return table


def _machines_table(
    label: str, rig: Rig, trajectory: str | None, tried: Sequence[TriedFault]
) -> Table:
    """Return a table with one row per fault, over all machines."""
    name = trajectory or rig.default_trajectory
    machines = len({row.seed for row in tried})
    table = Table(
        box=box.SIMPLE,
        title=f'{label}, {name}: faults in simulated runs of {machines} machines, '
        'median / largest',
    )
    table.add_column('fault')
    headings = ('noticed', 'after motion, ms', 'off its way, mm', 'off reference, mm', 'bar met')
    for heading in headings:
        table.add_column(heading, justify='right')
    for case in dict.fromkeys(row.case for row in tried):
        rows = [row for row in tried if row.case == case]
        trials = [row.trial for row in rows]
        after = [1e3 * t.after_motion_s for t in trials if t.after_motion_s is not None]
        barred = [row.bar_met for row in rows if row.bar_met is not None]
        table.add_row(
            case,
            f'{sum(t.noticed for t in trials)} of {len(trials)}',
            _spread(after, 0),
            _spread([1e3 * t.deviation_m for t in trials], 1),
            _spread([1e3 * t.error_m for t in trials], 1),
            f'{sum(barred)} of {len(barred)}' if barred else '',
        )
    return table


def _spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return '-'
    return f'{median(values):.{digits}f} / {max(values):.{digits}f}'


def _milliseconds(seconds: float | None) -> str:
    return '-' if seconds is None else f'{1e3 * seconds:.0f}'


# -- clean runs -------------------------------------------------------------------------------


def _clean(
    rigs: Mapping[str, Rig], trajectory: str | None, seeds: range, console: Console
) -> tuple[int, list[dict[str, Any]]]:
    runs: list[CleanRun] = []
    wanted = [
        (label, name, seed)
        for seed in seeds
        for label, rig in rigs.items()
        for name in ([trajectory] if trajectory else rig.trajectories)
    ]
    with stop_on_signals() as stopped:
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task('clean runs', total=len(wanted))
            for label, name, seed in wanted:
                if stopped():
                    break
                progress.update(task, description=f'{label} {name}, seed {seed}')
                runs.append(clean_run(label, rigs[label], name, seed))
                progress.advance(task)
        console.print(clean_table(rigs, runs))
        alarms = [run for run in runs if run.alarm]
        for run in alarms:
            console.print(
                f'{run.rig} {run.trajectory}, seed {run.seed}: {run.alarm}', markup=False
            )
        console.print(f'{len(alarms)} false alarms in {len(runs)} runs of {len(wanted)}')
    well = all(run.completed and not run.alarm for run in runs)
    whole = len(runs) == len(wanted)
    return (0 if well else EXIT_SHORT) if whole else EXIT_INTERRUPTED, [
        asdict(run) for run in runs
    ]


def clean_run(label: str, rig: Rig, trajectory: str, seed: int) -> CleanRun:
    """Run one lap without a fault, under supervision."""
    run = run_supervised(rig, trajectory, laps=1, seed=seed)
    alarm = '' if run.faulted_s is None and run.started_s is not None else run.reason
    return CleanRun(
        label,
        trajectory,
        seed,
        alarm,
        run.completed,
        float(run.time_s[-1]),
        run.extremes,
        run.pressure_error_Pa,
    )


def clean_table(rigs: Mapping[str, Rig], runs: Sequence[CleanRun]) -> Table:
    """Return a table of alarms and largest watched values, one row per rig and trajectory."""
    table = Table(box=box.SIMPLE, title='runs without a fault: largest error, limit (mm, kPa)')
    table.add_column()
    for heading in ('alarms', 'drift', 'model', 'at rest', 'tracking', 'pressure'):
        table.add_column(heading, justify='right')
    for label, trajectory in dict.fromkeys((run.rig, run.trajectory) for run in runs):
        mine = [run for run in runs if (run.rig, run.trajectory) == (label, trajectory)]
        supervisor = rigs[label].supervisor
        limits, pressures = supervisor.feedback_watch, supervisor.pressure_watch
        pairs = (
            (max(run.extremes.drift_m for run in mine), limits.max_drift_m),
            (max(run.extremes.model_error_m for run in mine), limits.max_model_error_m),
            (max(run.extremes.rest_error_m for run in mine), limits.max_rest_error_m),
            (max(run.extremes.tracking_error_m for run in mine), limits.max_tracking_error_m),
        )
        table.add_row(
            f'{label}\n{trajectory}',
            f'{sum(bool(run.alarm) for run in mine)} of {len(mine)}',
            *(
                f'{1e3 * seen:.1f} of {"-" if limit is None else format(1e3 * limit, "g")}'
                for seen, limit in pairs
            ),
            ''
            if pressures is None
            else f'{1e-3 * max(run.pressure_error_Pa for run in mine):.1f} of '
            f'{1e-3 * pressures.max_error_Pa:g}',
        )
    return table
