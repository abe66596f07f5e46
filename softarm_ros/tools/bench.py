"""
Times the compiled models beside references of the same mathematics, in one run.

The references are written independently, and every pair is compared before it is timed. Timings
never fail a build: the table says whether a bar is met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from softarm_ros.tools import (
    bench_cable_arm,
    bench_cosserat,
    bench_drivers,
    bench_dynamics,
    bench_hydraulics,
    bench_minimum_energy,
    bench_steppers,
)
from softarm_ros.tools.bench_rows import BenchRow
from softarm_ros.tools.cli_errors import UsageError

REPEATS = 15
WIDTH = 140  # of a table that goes into a file
TOPICS: dict[str, Callable[[int], list[BenchRow]]] = {
    'cable_arm': bench_cable_arm.rows,
    'cosserat': bench_cosserat.rows,
    'minimum_energy': bench_minimum_energy.rows,
    'dynamics': bench_dynamics.rows,
    'hydraulics': bench_hydraulics.rows,
    'drivers': bench_drivers.rows,
    'steppers': bench_steppers.rows,
}


def run_bench(topics: Sequence[str] = (), repeats: int = REPEATS) -> list[BenchRow]:
    """
    Return the measured rows of some topics, or of all.

    Raises
    ------
    UsageError
        If there is no such topic.
    AssertionError
        If a model and its reference disagree, which would make the comparison void.

    """
    for topic in topics:
        if topic not in TOPICS:
            raise UsageError(f'no benchmark {topic!r}; there are {", ".join(TOPICS)}')
    return [row for topic in topics or TOPICS for row in TOPICS[topic](repeats)]


def main(topics: Sequence[str] = (), long: bool = False) -> None:
    """Measure and print the table; `long` sends commands to the steppers for a minute."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print('compiling kernels, then measuring (median of repeated runs, one thread) ...')
    table = Table(title='softarm models, called from Python')
    for heading in ('work', 'compiled', 'reference', 'ratio', 'bar', ''):
        table.add_column(heading, justify='left' if heading in ('work', '') else 'right')
    for row in run_bench(topics):
        colour = {'pass': 'green', 'short': 'red', '': 'default'}[row.verdict]
        table.add_row(
            row.name,
            _time(row.compiled_us),
            f'{_time(row.reference_us)} ({row.reference})',
            f'{row.ratio:.0f} x',
            '' if row.bar_us is None else f'<= {_time(row.bar_us)}',
            f'[{colour}]{row.verdict}[/]',
        )
    console.print(table)
    if not topics or 'dynamics' in topics:
        for line in bench_dynamics.accuracy_lines(
            bench_dynamics.accuracy([(20, bench_dynamics.TOLERANCE)], [(20, 2e-4), (80, 5e-5)])
        ):
            console.print(line, highlight=False, soft_wrap=True)
    if not topics or 'steppers' in topics:
        why = bench_steppers.missing()
        for line in [f'steppers: not measured, {why}'] if why else bench_steppers.lines(long):
            console.print(line, highlight=False, soft_wrap=True)


def _time(value_us: float) -> str:
    return f'{value_us:.3g} us' if value_us < 1000.0 else f'{1e-3 * value_us:.3g} ms'
