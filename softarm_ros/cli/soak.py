"""Many runs over topics, on an idle or busy computer: completion and quality."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from softarm_ros.cli.beginning import beginning
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.process import child_environment
from softarm_ros.own_module import own_module
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.direct import run_direct

# If the parent is killed, nobody ends the loop: it checks that its parent still exists.
_LOOP = 'import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass'
DIRECT_SEEDS = 5  # number of seeds compared with runs of `--direct`
_RUN_S = 1800.0  # time after which a run is ended and counted as not completed
_LOOK_S = 0.1  # between two looks whether anything has asked to stop
SOAKED = ('sim', 'emulated')  # backends


@dataclass(frozen=True)
class SoakOptions:
    """Number and speed of the runs of each rig, and number of busy loops beside them."""

    starts: int = 40
    rate: float = 1.0
    backend: str = 'sim'
    busy: int = 0
    length_m: float | None = 0.01
    seed: int = 0


@dataclass(frozen=True)
class SoakRow:
    """Results of all runs of one rig."""

    rig: str
    runs: tuple[dict[str, Any], ...]  # summaries; 'why' holds the reason if a run failed
    direct_mean_m: tuple[float, ...]  # errors in one process, for the seeds of the first runs

    @property
    def completed(self) -> int:
        """Number of completed runs."""
        return sum(bool(run['completed']) for run in self.runs)

    @property
    def error_ratio(self) -> float:
        """Median over seeds of the error relative to `--direct`; each seed is another machine."""
        ratios = [
            run['tracking_error_m']['mean'] / direct
            for run, direct in zip(self.runs, self.direct_mean_m)
            if run.get('tracking_error_m')
        ]
        return float(np.median(ratios)) if ratios else float('nan')

    def column(self, *keys: str) -> list[float]:
        """Return a number from the summary of each run that has it."""
        values = []
        for run in self.runs:
            value: Any = run
            for key in keys:
                value = value.get(key) if value else None
            if value is not None:
                values.append(float(value))
        return values


def soak(
    names: Sequence[str],
    settings: Sequence[str],
    options: SoakOptions,
    console: Console,
    stopped: Callable[[], bool],
) -> list[SoakRow]:
    """
    Run every rig `starts` times, each in a new process; failed runs are not repeated.

    When `stopped` returns true, the arm of the present run is stopped and the run is not counted.

    Raises
    ------
    UsageError
        If the backend is real hardware, which needs somebody to watch it, or the rate is out of
        range.

    """
    if options.backend not in SOAKED:
        raise UsageError(f'--backend {options.backend}: expected {" or ".join(SOAKED)}')
    if not 0.05 <= options.rate <= 50.0:
        raise UsageError(f'--rate {options.rate:g}: expected 0.05 to 50 times real time')
    rigs = [load_rig(name, settings) for name in names or [known.name for known in list_rigs()]]
    rows = []
    with (
        temporary_folder() as folder,
        busy_loops(options.busy),
        Progress(console=console, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task('soak', total=options.starts * len(rigs))
        for rig in rigs:
            path = (
                None
                if options.length_m is None
                else beginning(rig, options.length_m, Path(folder))
            )
            seeds = range(options.seed, options.seed + min(options.starts, DIRECT_SEEDS))
            direct = [
                run_direct(rig, path, laps=1, seed=seed, should_stop=stopped).error()
                for seed in seeds
            ]
            runs: list[dict[str, Any]] = []
            for i in range(options.starts):
                progress.update(task, description=f'{rig.name} {i + 1}/{options.starts}')
                run = _run(rig, path, options, options.seed + i, Path(folder), stopped)
                if run is None:
                    break
                runs.append(run)
                if 'why' in run:
                    console.print(f'{rig.name} {i + 1}: {run["why"]}', markup=False)
                progress.advance(task)
            if not runs:
                break
            means = tuple(error.mean if error else float('nan') for error in direct)
            rows.append(SoakRow(rig.name, tuple(runs), means))
            console.print(_line(rows[-1]), markup=False)
            if stopped():
                break
    return rows


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep processors busy with `count` normal-priority processes that end with this process."""
    command = [sys.executable, '-c', _LOOP, str(os.getpid())]
    loops = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _run(
    rig: Rig,
    path: str | None,
    options: SoakOptions,
    seed: int,
    folder: Path,
    stopped: Callable[[], bool],
) -> dict[str, Any] | None:
    if stopped():
        return None
    summary = folder / 'run.json'
    summary.unlink(missing_ok=True)
    source = str(rig.source) if rig.source else rig.name
    command = own_module('softarm_ros.cli', 'run', source, '--laps', '1')
    command += ['--backend', options.backend, '--rate', str(options.rate)]
    command += ['--seed', str(seed), '--json', str(summary)]
    command += [] if path is None else ['--trajectory', path]
    command += [word for setting in rig.settings for word in ('--set', setting)]
    said = _output(command, stopped)
    if stopped():
        return None
    if not summary.exists():
        return {'completed': False, 'why': said[-500:]}
    run: dict[str, Any] = json.loads(summary.read_text())
    if not run['completed'] or run['loop']['holds']:
        serious = [event for event in run['events'] if event['level'] != 'info']
        lines = [f'{event["time_s"]:.2f} s: {event["message"]}' for event in serious]
        run['why'] = '; '.join(lines) or said[-500:]
    return run


def _output(command: Sequence[str], stopped: Callable[[], bool]) -> str:
    """Return what a run has said; if anything asks to stop, it first stops its arm."""
    # A child of this environment has its own process group: Ctrl-C reaches it once, from here.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(os.environ),
    )
    end, asked = time.monotonic() + _RUN_S, False
    try:
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                output, errors = process.communicate(timeout=_LOOK_S)
                return (errors or output).strip()
            if stopped() and not asked:
                asked = True
                process.terminate()
        return f'not ended within {_RUN_S:g} s'
    finally:
        process.kill()  # its nodes end with it
        process.communicate()


def _line(row: SoakRow) -> str:
    holds, missed = sum(row.column('loop', 'holds')), sum(row.column('loop', 'missed'))
    return (
        f'{row.rig}: {row.completed} of {len(row.runs)} completed, {holds:.0f} holds, '
        f'{missed:.0f} of {sum(row.column("loop", "cycles")):.0f} cycles missed'
    )


def soak_table(rows: Sequence[SoakRow], options: SoakOptions) -> Table:
    """Return a table of completion, holds, missed cycles, latency, load and relative error."""
    table = Table(
        title=f'{options.starts} starts of each rig, {options.backend}, rate {options.rate:g}, '
        f'{options.busy} busy loops',
        caption='p50/p99/max: pose to command, ms, medians of the runs and largest p99\n'
        'error ratio: mean error over that of --direct, median of five seeds; range in mm\n'
        'first motion: after the start of the command, s, median/largest\n'
        'CPU, MB: of all processes together, in motion, medians; 100 % is one processor',
        caption_justify='left',
    )
    for name in (
        'rig',
        'completed',
        'holds',
        'missed',
        'p50/p99/max',
        'error ratio',
        'first motion',
        'CPU %',
        'MB',
    ):
        table.add_column(name, justify='left' if name == 'rig' else 'right', no_wrap=True)
    for row in rows:
        table.add_row(
            row.rig,
            f'{row.completed}/{len(row.runs)}',
            f'{sum(row.column("loop", "holds")):.0f}',
            f'{sum(row.column("loop", "missed")):.0f}/{sum(row.column("loop", "cycles")):.0f}',
            _latencies(row),
            f'{row.error_ratio:.2f}: {_range_mm(row.column("tracking_error_m", "mean"))} / '
            f'{_range_mm(row.direct_mean_m)}',
            _of(row.column('loop', 'first_motion_s'), '{median:.1f}/{largest:.1f}'),
            _of(row.column('loop', 'cpu_percent'), '{median:.0f}'),
            _of(row.column('loop', 'memory_mb'), '{median:.0f}'),
        )
    return table


def _latencies(row: SoakRow) -> str:
    p50, p99 = (row.column('loop', 'latency_ms', key) for key in ('p50', 'p99'))
    return f'{np.median(p50):.1f}/{_of(p99, "{median:.1f}/{largest:.1f}")}' if p50 else '–'


def _range_mm(values_m: Sequence[float]) -> str:
    return f'{1e3 * min(values_m):.2f}-{1e3 * max(values_m):.2f}' if values_m else '–'


def _of(values: Sequence[float], form: str) -> str:
    return form.format(median=np.median(values), largest=max(values)) if values else '–'
