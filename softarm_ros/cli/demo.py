"""`softarm demo`: the two-section circle three ways, beside the paper's errors."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from softarm_ros.cli.report import ComparisonRow, error_table, prepare_folder, write_comparison
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.cli.run_command import compile_kernels
from softarm_ros.models.config import ModelName
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig_of

BASELINE: ModelName = 'constant_curvature'
PROPOSED: ModelName = 'cable_statics'
# Mean errors that Qi et al. 2024 report of the circle in open loop, their figure 10.
PAPER_ERRORS_M = {PROPOSED: 0.0376, BASELINE: 0.0592}
TRAJECTORY = 'circle'
LAPS = 2
NOTES = (
    'All three runs drive the same simulated arm, which is not the model of either controller: '
    'a dynamic chain with gravity, damping, cables that cut in along their length, quantised '
    'steppers with backlash, and motion capture with noise, delay and drop-outs.',
    'The paper measured one real arm of its own; circle radius and height are not printed there, '
    'so its errors stand beside ours for orientation, not as a target.',
)


def run_demo(report: Path, console: Console, seed: int = 0) -> None:
    """Run, print the table, write the report."""
    prepare_folder(report)
    rig = load_rig_of(CableArm, 'cable_arm')
    compile_kernels(rig, console)
    ways = [
        ('constant curvature, open loop', BASELINE, True, PAPER_ERRORS_M[BASELINE]),
        ('cable statics, open loop', PROPOSED, True, PAPER_ERRORS_M[PROPOSED]),
        ('cable statics, closed loop', PROPOSED, False, None),
    ]
    cases = [RunCase(rig, TRAJECTORY, model, loop, LAPS, seed) for _, model, loop, _ in ways]
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f'simulating {len(cases)} runs', total=len(cases))
        records = run_cases(cases, lambda done: bar.update(task, completed=done))
    rows = [
        ComparisonRow(label, (record,), paper)
        for (label, _, _, paper), record in zip(ways, records)
    ]
    console.print(error_table(rows))
    page = write_comparison('cable_arm: a circle three ways', rows, report, notes=NOTES)
    console.print(f'report: {page}', markup=False)
