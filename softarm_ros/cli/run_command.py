"""`softarm run`: run one trajectory on one rig, over topics or in one process."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.run_view import run_bar
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.cli.text_output import write_file
from softarm_ros.control.trajectory_config import MAX_LAPS
from softarm_ros.nodes.bag_writer import check_bag_folder
from softarm_ros.nodes.process import EXIT_INTERRUPTED as EXIT_INTERRUPTED
from softarm_ros.nodes.process import LARGEST_SEED
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.task_file import load_task
from softarm_ros.rigs.trajectory_file import resolve_trajectory
from softarm_ros.runtime.loop import CycleOutput
from softarm_ros.runtime.run_record import RunRecord
from softarm_ros.whole_file import NotWrittenError, require_writable

EXIT_INCOMPLETE = 1
EXIT_BAD_INPUT = 2


class InputError(ValueError):
    """The arguments are invalid or contradictory; nothing was started."""


@dataclass(frozen=True)
class RunOptions:
    """Arguments of `softarm run`."""

    backend: str = 'sim'
    trajectory: str | None = None
    model: str | None = None
    open_loop: bool = False
    direct: bool = False
    laps: int | None = None
    rate: float = 1.0
    seed: int = 0
    home: bool | None = None
    strict: bool = False
    processes: str = 'one'
    bag: Path | None = None
    report: Path | None = None
    json_file: Path | None = None
    task: str | None = None
    goals: bool = False
    view: bool = False
    open_viewer: bool = False  # if there is a desktop


def run(rig: Rig, options: RunOptions, console: Console) -> int:
    """
    Run a rig, print and write the results, and return the exit status.

    Raises
    ------
    InputError, ValueError
        If the input is invalid; raised before anything starts or moves.

    """
    _check(options)
    _check_motion(rig, options)
    if options.report is not None:
        from softarm_ros.cli.report_files import prepare_folder

        prepare_folder(options.report)
    if options.json_file is not None:
        _check_writable(options.json_file)
    if options.bag is not None:
        check_bag_folder(options.bag)
    compile_kernels(rig, console, options.backend)
    record: RunRecord | None = None
    try:
        with stop_on_signals(*() if options.direct else (signal.SIGTSTP,)) as stopped:
            record = (
                _run_direct(rig, options, console, stopped)
                if options.direct
                else _run_topics(rig, options, console, stopped)
            )
            ended_by = stopped.by
            page = _written(record, options)
    except KeyboardInterrupt:
        if record is not None:
            console.print('interrupted: not all files of the results are written')
        raise
    finally:  # shown even if a file cannot be written
        if record is not None:
            _show(record, console)
    if ended_by and not record.completed:
        console.print(f'ended by {ended_by}', markup=False)
    if page is not None:
        console.print(f'report: {page}', markup=False)
    return status_of(record.completed, bool(ended_by))


def _written(record: RunRecord, options: RunOptions) -> Path | None:
    """Write the requested files, each even if another fails; return the page of the report."""
    failed, page = None, None
    if options.json_file is not None:
        text = json.dumps(record.summary(), indent=2) + '\n'
        try:
            write_file(text, options.json_file, '--json')
        except UsageError as error:
            failed = error
    if options.report is not None:
        from softarm_ros.cli.report import write_report

        page = write_report(record, options.report)
    if failed is not None:
        raise failed
    return page


def _show(record: RunRecord, console: Console) -> None:
    from softarm_ros.cli.report_tables import run_table

    console.print(run_table(record))
    for event in record.events:
        if event.level != 'info':
            console.print(f'[{event.time_s:8.2f} s] {event.level}: {event.message}', markup=False)


def status_of(completed: bool, interrupted: bool) -> int:
    """Return the exit status of a run that has completed, was interrupted or ended early."""
    if completed:
        return 0
    return EXIT_INTERRUPTED if interrupted else EXIT_INCOMPLETE


def _check(options: RunOptions) -> None:
    if not 0.05 <= options.rate <= 50.0:
        raise InputError(f'--rate {options.rate:g}: expected 0.05 to 50 times real time')
    if options.laps is not None and not 1 <= options.laps <= MAX_LAPS:
        raise InputError(f'--laps {options.laps}: expected 1 to {MAX_LAPS}')
    if options.task is not None and (options.trajectory is not None or options.laps is not None):
        raise InputError('--task runs once through its own motions; drop --trajectory and --laps')
    if options.goals and (options.trajectory, options.task, options.laps) != (None, None, None):
        raise InputError('--goals waits for goals; drop --trajectory, --task and --laps')
    if options.goals and options.direct:
        raise InputError('goals come over topics and --direct has none; drop --goals or --direct')
    if not 0 <= options.seed <= LARGEST_SEED:
        raise InputError(f'--seed {options.seed}: expected a number from 0 to {LARGEST_SEED}')
    if options.direct and options.backend != 'sim':
        raise InputError(f'--direct simulates; it cannot use backend {options.backend!r}')
    if options.direct and options.view:
        raise InputError('--view shows topics and --direct has none; drop one of the two')
    if options.direct and options.rate != 1.0:
        raise InputError('--rate paces topics and --direct has none; drop one of the two')
    if options.direct and options.processes != 'one':
        raise InputError('--processes is of nodes and --direct has none; drop one of the two')
    if options.direct and options.bag is not None:
        raise InputError('--bag records topics and --direct has none; drop one of the two')


def _check_motion(rig: Rig, options: RunOptions) -> None:
    """Raise RigError for an invalid trajectory or task, before minutes of compilation."""
    if options.task is not None:
        load_task(options.task)
    elif not options.goals:
        resolve_trajectory(rig, options.trajectory)


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise InputError(f'--json {path}: is a folder; expected a file')
    try:
        require_writable(path)
    except NotWrittenError as error:
        raise InputError(f'--json {error}') from None


def compile_kernels(rig: Rig, console: Console, backend: str = 'sim') -> None:
    """Compile kernels that are not cached on disk, with a message on the console."""
    from softarm_ros.runtime.warm_up import prepare

    status = 'preparing kernels (compiled once after installation, then cached)'
    with console.status(status), _kept_interrupt():
        prepare(rig, backend)


@contextmanager
def _kept_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end if a callback of the compiler has dropped one."""
    usual, dropped = sys.unraisablehook, False

    def note(told: sys.UnraisableHookArgs) -> None:
        nonlocal dropped
        if told.exc_type is KeyboardInterrupt:
            dropped = True
        else:
            usual(told)

    sys.unraisablehook = note
    try:
        yield
    except Exception:
        if not dropped:  # otherwise it follows from the drop: Numba misses the compiled object
            raise
    finally:
        sys.unraisablehook = usual
    if dropped:
        raise KeyboardInterrupt


@contextmanager
def progress_bar(
    console: Console, label: str, counts: str
) -> Iterator[Callable[[CycleOutput], None]]:
    """Show phase, number of the lap or step, and error of a run while it runs."""
    with run_bar(console) as bar:
        task = bar.add_task(label, total=1.0, status='')
        cycles = 0

        def update(output: CycleOutput) -> None:
            nonlocal cycles
            cycles += 1
            if cycles % 25 == 0 or output.progress >= 1.0:
                error = f'{1e3 * output.error_m:.1f} mm' if np.isfinite(output.error_m) else ''
                bar.update(
                    task,
                    completed=output.progress,
                    status=f'{output.phase.value} {counts} {output.lap + 1} {error}',
                )

        yield update


def _run_direct(
    rig: Rig, options: RunOptions, console: Console, stopped: Callable[[], bool]
) -> RunRecord:
    from softarm_ros.runtime.control_loop import ControlLoop
    from softarm_ros.runtime.direct import run_direct
    from softarm_ros.runtime.task_loop import TaskLoop

    counts = ControlLoop.counts if options.task is None else TaskLoop.counts
    with progress_bar(console, rig.name, counts) as progress:
        return run_direct(
            rig,
            options.trajectory,
            task=options.task,
            model=options.model,
            open_loop=options.open_loop,
            laps=options.laps,
            seed=options.seed,
            progress=progress,
            should_stop=stopped,
        )


def _run_topics(
    rig: Rig, options: RunOptions, console: Console, stopped: Callable[[], bool]
) -> RunRecord:
    try:
        import rclpy  # noqa: F401
    except ImportError as error:
        raise InputError(
            f'ROS 2 is not available ({error}). Source a ROS installation, or install it from '
            "PyPI with: pip install 'softarm_ros[ros]' ; or run without topics: --direct"
        ) from None
    from softarm_ros.cli.topic_run import run_topics

    return run_topics(rig, options, console, stopped)
