"""Many machines of each rig: their drawn parameters and their tracking errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from softarm_ros import __version__
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.rig_labels import rig_labels
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.direct import run_direct

STORE = 'runs.jsonl'
_SHOWN = 3  # number of machines with their draws shown


@dataclass(frozen=True)
class MachineCase:
    """
    One run: a machine of a rig (0: nominal) on one lap of a path, its number being the seed.

    `label` is the name of the rig in tables.
    """

    rig: Rig
    label: str
    trajectory: str
    open_loop: bool
    machine: int

    @property
    def key(self) -> str:
        """Key of this run in a store, from arguments, rig file, settings and residual."""
        text = self.rig.source.read_bytes() if self.rig.source else self.rig.name.encode()
        text += '\n'.join(self.rig.settings).encode()
        learned = self.rig.residual_path
        if learned is not None and learned.exists():
            text += learned.read_bytes()
        file = hashlib.sha256(text).hexdigest()[:16]
        loop = 'open' if self.open_loop else 'closed'
        return f'{__version__} {self.rig.name} {file} {self.trajectory} {loop} {self.machine}'


@dataclass(frozen=True)
class MachineRun:
    """
    Result of a case.

    `mean_m`, `max_m`: error of the true tip [m]; `measured_mean_m`: error of the measured tip [m].
    They are None for a run without tracking. `why`: the reason if the run did not complete.
    """

    rig: str
    trajectory: str
    open_loop: bool
    machine: int
    completed: bool
    mean_m: float | None
    max_m: float | None
    measured_mean_m: float | None
    why: str = ''


def cases_of(rigs: Sequence[Rig], trajectories: Sequence[str], count: int) -> list[MachineCase]:
    """
    Return cases of machines 0 (nominal) to `count` on every path, in open and closed loop.

    Raises
    ------
    UsageError
        If a rig has no trajectory of this name.

    """
    cases = []
    for rig, label in zip(rigs, rig_labels(rigs)):
        unknown = [name for name in trajectories if name not in rig.trajectories]
        if unknown:
            known = ', '.join(rig.trajectories)
            raise UsageError(f'{rig.name} has no trajectory {unknown[0]!r}; known: {known}')
        cases += [
            MachineCase(rig, label, name, open_loop, machine)
            for name in trajectories or rig.trajectories
            for open_loop in (True, False)
            for machine in range(count + 1)
        ]
    return cases


def run_machine(case: MachineCase, should_stop: Callable[[], bool]) -> MachineRun:
    """Run one machine; a simulation that fails is a result, not an error."""
    about = (case.label, case.trajectory, case.open_loop, case.machine)
    try:
        record = run_direct(
            case.rig,
            case.trajectory,
            open_loop=case.open_loop,
            laps=1,
            seed=case.machine,
            should_stop=should_stop,
        )
    except (ValueError, RuntimeError, ArithmeticError) as error:
        return MachineRun(*about, False, None, None, None, str(error))
    true, measured = record.error(), record.measured_error()
    return MachineRun(
        *about,
        record.completed,
        true.mean if true else None,
        true.max if true else None,
        measured.mean if measured else None,
        '' if record.completed else record.events[-1].message,
    )


def run_all(
    cases: Sequence[MachineCase],
    store: Path | None,
    console: Console,
    stopped: Callable[[], bool],
) -> list[MachineRun]:
    """
    Return the results of all cases, from the store if it has them; fewer if stopped.

    Raises
    ------
    UsageError
        If the store cannot be written.

    """
    known = read_store(store)
    results = []
    with Progress(
        TextColumn('{task.description}'),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task('machines', total=len(cases))
        for case in cases:
            result = known.get(case.key)
            if result is None:
                progress.update(task, description=f'{case.label} {case.trajectory}')
                result = run_machine(case, stopped)
                if stopped():
                    break
                keep(store, case.key, result)
            results.append(replace(result, rig=case.label))
            progress.advance(task)
    return results


def read_store(folder: Path | None) -> dict[str, MachineRun]:
    """
    Return the results in a folder by key; create the folder, and skip damaged lines.

    Raises
    ------
    UsageError
        If the folder cannot be read and written: checked here, before hours of runs.

    """
    if folder is None:
        return {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / STORE).open('a+', encoding='utf-8', errors='replace') as file:
            file.seek(0)
            lines = file.read().splitlines()
    except OSError as error:
        raise _not_written(folder, error) from None
    found = {}
    for line in lines:
        try:
            row = json.loads(line)
            key = row.pop('key')
            found[key] = MachineRun(**row)
        except (ValueError, AttributeError, KeyError, TypeError):
            continue
    return found


def keep(folder: Path | None, key: str, result: MachineRun) -> None:
    """
    Append a result to the store in a folder, if there is one.

    Raises
    ------
    UsageError
        If the store cannot be written.

    """
    if folder is None:
        return
    try:
        with (folder / STORE).open('a', encoding='utf-8') as file:
            # The newline comes first, to start a new line even after one that was cut off.
            file.write('\n' + json.dumps({'key': key, **asdict(result)}))
    except OSError as error:
        raise _not_written(folder, error) from None


def _not_written(folder: Path, error: OSError) -> UsageError:
    return UsageError(f'--store {folder}: cannot be written ({error.strerror})')


def run_table(results: Sequence[MachineRun]) -> Table:
    """Return a table with a row per path and loop: errors over machines, and the nominal ones."""
    table = Table(
        title='Mean error of the tip over one lap, mm',
        caption='over machines: median and 90th percentile of the mean errors of each; '
        'nominal: the machine as its file states\ntrue: where the tip is; measured: where the '
        'sensors see it, which the loop takes for the truth',
        caption_justify='left',
    )
    columns = ('rig', 'path', 'loop', 'machines', 'nominal true', 'true median', 'true 90 %')
    for k, name in enumerate((*columns, 'measured median', 'measured 90 %', 'not completed')):
        table.add_column(Text(name), justify='left' if k < 3 else 'right', no_wrap=k < 3)
    for rig, path, loop in dict.fromkeys((r.rig, r.trajectory, r.open_loop) for r in results):
        mine = [r for r in results if (r.rig, r.trajectory, r.open_loop) == (rig, path, loop)]
        varied = [r for r in mine if r.machine]
        done = [r for r in varied if r.completed]
        true = [r.mean_m for r in done if r.mean_m is not None]
        measured = [r.measured_mean_m for r in done if r.measured_mean_m is not None]
        nominal = [r.mean_m for r in mine if not r.machine and r.mean_m is not None]
        table.add_row(
            *(rig, path, 'open' if loop else 'closed', str(len(done))),
            *(_mm(nominal, 50.0), _mm(true, 50.0), _mm(true, 90.0)),
            *(_mm(measured, 50.0), _mm(measured, 90.0)),
            str(len(mine) - sum(r.completed for r in mine)),
        )
    return table


def _mm(values_m: Sequence[float], percentile: float) -> str:
    return f'{1e3 * float(np.percentile(values_m, percentile)):.2f}' if values_m else '–'


def draw_table(rig: Rig, count: int) -> Table:
    """Return a table of each varying field: stated value, range over machines 1 to `count`."""
    plant = rig.plant_for('sim')
    shown = min(count, _SHOWN)
    table = Table(title=f'{rig.name}: what distinguishes machines 1 to {count}')
    for name in ('field of plant', 'stated', 'least', 'largest', *map(str, range(1, shown + 1))):
        first = name.startswith('field')
        table.add_column(Text(name), justify='left' if first else 'right', no_wrap=first)
    machines = [plant.drawn(number) for number in range(1, count + 1)]
    for row in zip(*machines):
        values = [draw.drawn for draw in row]
        numbers = (row[0].stated, min(values), max(values), *values[:shown])
        table.add_row(Text(row[0].field), *(f'{value:.5g}' for value in numbers))
    return table
