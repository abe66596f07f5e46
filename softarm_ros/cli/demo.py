"""`softarm demo`: a circle over topics in a browser; then a comparison with the paper."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from softarm_ros.cli.report_comparison import write_comparison
from softarm_ros.cli.report_files import prepare_folder
from softarm_ros.cli.report_tables import ComparisonRow, error_table
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.cli.run_command import RunOptions, compile_kernels
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.models.config import ModelName
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.run_record import RunRecord

BASELINE: ModelName = 'constant_curvature'
PROPOSED: ModelName = 'cable_statics'
# Mean errors reported by Qi et al. 2024, figure 10, for the circle in open loop.
PAPER_ERRORS_M = {PROPOSED: 0.0376, BASELINE: 0.0592}
TRAJECTORY = 'circle'
LAPS = 2
GRAPH_LAPS = 1
# Faster than real time: a lap in half a minute. The loop's periods are the same at any rate.
GRAPH_RATE = 2.0
NOTES = (
    'All runs drive the same simulated arm, which is not the model of either controller: '
    'a dynamic chain with gravity, damping, cables that cut in along their length and rub in '
    'their guides, quantised steppers with backlash, and motion capture with noise, delay and '
    'drop-outs.',
    'The paper measured one real arm of its own; circle radius and height are not printed there, '
    'so its errors stand beside ours for orientation, not as a target.',
)
EXIT_NO_GRAPH, EXIT_INTERRUPTED = 1, 130


def run_demo(report: Path, console: Console, seed: int = 0) -> int:
    """
    Run the graph, compare three controllers, print a table, write a report; return the status.

    The status is 0 if the run over topics completed its circle. The comparison needs no graph and
    is shown in any case.
    """
    began = time.monotonic()
    prepare_folder(report)
    rig = load_rig_of(CableArm, 'cable_arm')
    compile_kernels(rig, console)
    with stop_on_signals() as stopped:
        over_topics = _drive_graph(rig, seed, console, stopped)
        if stopped():
            return EXIT_INTERRUPTED
    rows = _three_ways(rig, seed, console)
    if over_topics is not None:
        rows.append(ComparisonRow('closed loop, over topics', (over_topics,), None))
    console.print(error_table(rows))
    page = write_comparison('cable_arm: a circle three ways', rows, report, notes=NOTES)
    console.print(f'report: {page}', markup=False)
    console.print(f'done in {time.monotonic() - began:.0f} s', markup=False, highlight=False)
    return 0 if over_topics is not None else EXIT_NO_GRAPH


def _drive_graph(
    rig: Rig, seed: int, console: Console, stopped: Callable[[], bool]
) -> RunRecord | None:
    """Run the circle over topics in closed loop; on failure, print the reason and return None."""
    view = find_spec('viser') is not None
    if not view:
        console.print("not watched: the viewer needs viser: pip install 'softarm_ros[view]'")
    options = RunOptions(
        backend='sim',
        trajectory=TRAJECTORY,
        model=PROPOSED,
        laps=GRAPH_LAPS,
        rate=GRAPH_RATE,
        seed=seed,
        view=view,
        open_viewer=view,
    )
    console.print('a circle over topics, in closed loop:', highlight=False)
    try:
        from softarm_ros.cli.topic_run import run_topics

        record = run_topics(rig, options, console, stopped)
    except (ImportError, ValueError) as error:
        console.print(f'the graph was not started: {error}', markup=False)
        return None
    for event in record.events:
        if event.level != 'info':
            console.print(f'[{event.time_s:8.2f} s] {event.level}: {event.message}', markup=False)
    if not record.completed:
        if not stopped():
            console.print('the graph did not drive its circle to the end')
        return None
    return record


def _three_ways(rig: Rig, seed: int, console: Console) -> list[ComparisonRow]:
    """Run the circle in open loop with two models and in closed loop; return one row for each."""
    ways = [
        ('constant curvature, open loop', BASELINE, True, PAPER_ERRORS_M[BASELINE]),
        ('cable statics, open loop', PROPOSED, True, PAPER_ERRORS_M[PROPOSED]),
        ('cable statics, closed loop', PROPOSED, False, None),
    ]
    cases = [RunCase(rig, TRAJECTORY, model, loop, LAPS, seed) for _, model, loop, _ in ways]
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f'simulating {len(cases)} runs', total=len(cases))
        records = run_cases(cases, lambda done: bar.update(task, completed=done))
    return [
        ComparisonRow(label, (record,), paper)
        for (label, _, _, paper), record in zip(ways, records)
    ]
