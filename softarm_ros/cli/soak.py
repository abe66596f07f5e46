"""Many runs over topics, on a quiet or a busy computer: whether they complete, and how well."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from softarm_ros.cli.beginning import beginning
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.direct import run_direct

TABLE_WIDTH = 110
_RUN_S = 1800.0  # after which a run is ended and counted as not completed


@dataclass(frozen=True)
class SoakOptions:
    """How often, how fast and beside what every rig is run."""

    starts: int = 40
    rate: float = 1.0
    backend: str = 'sim'
    busy: int = 0
    length_m: float | None = 0.01
    seed: int = 0


@dataclass(frozen=True)
class SoakRow:
    """What the runs of one rig came to."""

    rig: str
    runs: tuple[dict[str, Any], ...]  # summaries, with 'started_s' and, if it failed, 'why'
    direct_mean_m: float

    @property
    def completed(self) -> int:
        """How many runs reached their end."""
        return sum(bool(run['completed']) for run in self.runs)


def soak(names: Sequence[str], options: SoakOptions, console: Console) -> list[SoakRow]:
    """Run every rig `starts` times in processes of its own; nothing is tried again."""
    rigs = [load_rig(name) for name in names or [known.name for known in list_rigs()]]
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix='softarm-soak-') as folder,
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
            direct = run_direct(rig, path, laps=1, seed=options.seed).error()
            runs = []
            for i in range(options.starts):
                progress.update(task, description=f'{rig.name} {i + 1}/{options.starts}')
                runs.append(_run(rig, path, options, options.seed + i, Path(folder)))
                if 'why' in runs[-1]:
                    console.print(f'{rig.name} {i + 1}: {runs[-1]["why"]}', markup=False)
                progress.advance(task)
            rows.append(SoakRow(rig.name, tuple(runs), direct.mean if direct else float('nan')))
            console.print(_line(rows[-1]), markup=False)
    return rows


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep processors busy with `count` processes of ordinary priority."""
    loops = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _run(
    rig: Rig, path: str | None, options: SoakOptions, seed: int, folder: Path
) -> dict[str, Any]:
    summary = folder / 'run.json'
    summary.unlink(missing_ok=True)
    source = str(rig.source) if rig.source else rig.name
    command = [sys.executable, '-m', 'softarm_ros.cli', 'run', source, '--laps', '1']
    command += ['--backend', options.backend, '--rate', str(options.rate)]
    command += ['--seed', str(seed), '--json', str(summary)]
    command += [] if path is None else ['--trajectory', path]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S)
        said = (done.stderr or done.stdout).strip()
    except subprocess.TimeoutExpired:
        said = f'not ended within {_RUN_S:g} s'
    whole_s = time.monotonic() - began
    if not summary.exists():
        return {'completed': False, 'why': said[-500:], 'whole_s': whole_s}
    run: dict[str, Any] = json.loads(summary.read_text())
    run['whole_s'] = whole_s
    if not run['completed'] or run['loop']['holds']:
        told = [e['message'] for e in run['events'] if e['level'] != 'info']
        run['why'] = '; '.join(told) or said[-500:]
    return run


def _column(row: SoakRow, *keys: str) -> list[float]:
    values = []
    for run in row.runs:
        value: Any = run
        for key in keys:
            value = value.get(key) if value else None
        if value is not None:
            values.append(float(value))
    return values


def _line(row: SoakRow) -> str:
    holds, missed = _column(row, 'loop', 'holds'), _column(row, 'loop', 'missed')
    return (
        f'{row.rig}: {row.completed} of {len(row.runs)} completed, {sum(holds):.0f} holds, '
        f'{sum(missed):.0f} of {sum(_column(row, "loop", "cycles")):.0f} cycles missed'
    )


def soak_table(rows: Sequence[SoakRow], options: SoakOptions) -> Table:
    """Return completion, holds, missed cycles, latency and error beside `--direct`."""
    table = Table(
        title=f'{options.starts} starts of each rig, {options.backend}, rate {options.rate:g}, '
        f'{options.busy} busy loops',
        caption='p50/p99/max: pose to command, ms, medians of the runs and largest p99\n'
        'error ratio: mean error over that of --direct, median/largest\n'
        'whole run: from the command to its end, median/largest',
        caption_justify='left',
    )
    for name in (
        'rig',
        'completed',
        'holds',
        'missed',
        'p50/p99/max',
        'error ratio',
        'whole run, s',
    ):
        table.add_column(name, justify='left' if name == 'rig' else 'right', no_wrap=True)
    for row in rows:
        errors = np.array(_column(row, 'tracking_error_m', 'mean')) / row.direct_mean_m
        whole = _column(row, 'whole_s')
        p50 = _column(row, 'loop', 'latency_ms', 'p50')
        p99 = _column(row, 'loop', 'latency_ms', 'p99')
        cycles, missed = sum(_column(row, 'loop', 'cycles')), sum(_column(row, 'loop', 'missed'))
        table.add_row(
            row.rig,
            f'{row.completed}/{len(row.runs)}',
            f'{sum(_column(row, "loop", "holds")):.0f}',
            f'{missed:.0f}/{cycles:.0f}',
            f'{np.median(p50):.1f}/{np.median(p99):.1f}/{max(p99):.1f}' if p99 else '–',
            f'{np.median(errors):.2f}/{max(errors):.2f}' if len(errors) else '–',
            f'{np.median(whole):.1f}/{max(whole):.1f}',
        )
    return table
