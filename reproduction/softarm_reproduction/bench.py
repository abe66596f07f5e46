"""
Time the compiled models and references of the same mathematics in one run.

The references are written independently, and each result is compared with its reference before
both are timed. Timings never fail a build: the table shows whether each time meets its bar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from softarm_reproduction import (
    bench_cable_arm,
    bench_compile,
    bench_cosserat,
    bench_drivers,
    bench_dynamics,
    bench_estimators,
    bench_hydraulics,
    bench_minimum_energy,
    bench_plants,
    bench_start,
    bench_steppers,
)
from softarm_reproduction.bench_rows import BenchRow
from softarm_ros.cli.cli_errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

REPEATS = 15
COMPILE, START = 'compile', 'start'  # take minutes: run only on request
WIDTH = 140  # characters of the table when the output is not a terminal
TOPICS: dict[str, Callable[[int], list[BenchRow]]] = {
    'cable_arm': bench_cable_arm.rows,
    'cosserat': bench_cosserat.rows,
    'minimum_energy': bench_minimum_energy.rows,
    'dynamics': bench_dynamics.rows,
    'hydraulics': bench_hydraulics.rows,
    'plants': bench_plants.rows,
    'estimators': bench_estimators.rows,
    'drivers': bench_drivers.rows,
    'steppers': bench_steppers.rows,
}


def run_bench(topics: Sequence[str] = (), repeats: int = REPEATS) -> list[BenchRow]:
    """
    Return the measured rows of the given topics, or of all topics if none is given.

    Raises
    ------
    UsageError
        If a topic does not exist.
    AssertionError
        If a model and its reference disagree, which makes the comparison void.

    """
    for topic in topics:
        if topic not in TOPICS:
            raise UsageError(
                f'no benchmark {topic!r}; there are {", ".join([*TOPICS, COMPILE, START])}'
            )
    return [row for topic in topics or TOPICS for row in TOPICS[topic](repeats)]


def main(topics: Sequence[str] = (), long: bool = False, repeats: int = REPEATS) -> None:
    """Measure and print the table; with `long`, command the steppers for a minute."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    alone = {COMPILE: _print_compile, START: _print_start}
    for topic in topics:
        if topic in alone:
            alone[topic](console)
    if topics and alone.keys() >= set(topics):
        return
    topics = [topic for topic in topics if topic not in alone]
    console.print('compiling kernels, then measuring (median of repeated runs, one thread) ...')
    table = Table(title='softarm models, called from Python')
    for heading in ('work', 'compiled', 'reference', 'ratio', 'bar', ''):
        table.add_column(heading, justify='left' if heading in ('work', '') else 'right')
    for row in run_bench(topics, repeats):
        colour = {'pass': 'green', 'short': 'red', '': 'default'}[row.verdict]
        table.add_row(
            row.name,
            _time(row.compiled_us),
            f'{_time(row.reference_us)} ({row.reference})',
            f'{row.ratio:.{1 if row.ratio < 10.0 else 0}f} x',
            '' if row.bar_us is None else f'<= {_time(row.bar_us)}',
            f'[{colour}]{row.verdict}[/]',
        )
    console.print(table)
    if 'dynamics' in topics:  # takes as long as all other topics together
        for line in bench_dynamics.accuracy_lines(
            bench_dynamics.accuracy([(20, bench_dynamics.TOLERANCE)], [(20, 2e-4), (80, 5e-5)])
        ):
            console.print(line, highlight=False, soft_wrap=True)
    if not topics or 'steppers' in topics:
        why = bench_steppers.missing()
        for line in [f'steppers: not measured, {why}'] if why else bench_steppers.lines(long):
            console.print(line, highlight=False, soft_wrap=True)


def _print_compile(console: Console) -> None:
    console.print(
        'seconds from the start of Python to a rig that is ready, one rig after the other'
    )
    console.print(f'{"rig":18} {"empty cache":>12} {"CPU time":>9} {"next time":>10}')
    for row in bench_compile.rows():
        verdict = 'pass' if row.cold_s <= bench_compile.BAR_S else 'short'
        console.print(
            f'{row.rig:18} {row.cold_s:12.1f} {row.cold_cpu_s:9.1f} {row.warm_s:10.1f}  '
            f'{verdict} (bar {bench_compile.BAR_S:g} s on two idle cores)',
            highlight=False,
        )


def _print_start(console: Console) -> None:
    console.print('seconds from a command to the first motion, one start after the other')
    console.print(
        f'{"rig":18} {"started by":12} {"busy loops":>10} {"empty cache":>12} {"again":>6}'
    )
    for row in bench_start.rows():
        console.print(
            f'{row.rig:18} {row.way:12} {row.busy:10} {row.cold_s:12.1f} {row.warm_s:6.1f}',
            highlight=False,
        )


def _time(value_us: float) -> str:
    return f'{value_us:.3g} us' if value_us < 1000.0 else f'{1e-3 * value_us:.3g} ms'
