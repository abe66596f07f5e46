"""Numbers of runs as rows of text, and as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from softarm_ros.runtime.run_record import ErrorStatistics, RunRecord

NONE = '–'
NO_TRACKING = 'no tracking samples'
ERROR_COLUMNS = ('', 'mean, mm', 'rms, mm', 'max, mm', 'mean, % of length', 'max, % of length')
_TERMINAL_LAPS = 10  # with more laps or steps, only the report shows each


@dataclass(frozen=True)
class ComparisonRow:
    """
    One way of running an arm, for comparison with others.

    Attributes
    ----------
    label : str
        Name in tables and figures.
    records : tuple of RunRecord
        One record per seed.
    paper_mean_error_m : float or None
        Mean tip error [m] reported by the paper; None if it reports none.

    """

    label: str
    records: tuple[RunRecord, ...]
    paper_mean_error_m: float | None


@dataclass(frozen=True)
class SeedStatistics:
    """
    Tip errors [m] over seeds.

    `means` holds the mean error of each run that has tracking samples; `mean` is their mean,
    `spread` their sample standard deviation (None below two runs), `max` the largest error of all
    runs, `percent` the mean in per cent of the arm's length (None for an arm without length).
    """

    means: tuple[float, ...]
    mean: float
    spread: float | None
    max: float
    percent: float | None

    @staticmethod
    def of(records: Sequence[RunRecord], first_lap: int = 0) -> SeedStatistics | None:
        """Return the statistics from lap `first_lap` (0-based) on, or None without samples."""
        found = [(r.error(first_lap), r.info.arm_length_m) for r in records]
        errors = [(e, length) for e, length in found if e is not None]
        if not errors:
            return None
        means = tuple(e.mean for e, _ in errors)
        shares = [percent_of_length(e.mean, length) for e, length in errors]
        known = [s for s in shares if s is not None]
        return SeedStatistics(
            means,
            float(np.mean(means)),
            float(np.std(means, ddof=1)) if len(means) > 1 else None,
            max(e.max for e, _ in errors),
            float(np.mean(known)) if known else None,
        )


def percent_of_length(error_m: float, arm_length_m: float) -> float | None:
    """Return an error [m] in per cent of the arm's length [m]; None for an arm without length."""
    if not (math.isfinite(arm_length_m) and arm_length_m > 0.0):
        return None
    return 100.0 * error_m / arm_length_m


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with fixed decimals, or a dash for None and values that are not finite."""
    if value is None or not math.isfinite(value):
        return NONE
    return f'{value:.{digits}f}'


def millimetres(value_m: float | None) -> str:
    """Return a length [m] in mm."""
    return number(None if value_m is None else 1e3 * value_m)


def mean_and_spread(statistics: SeedStatistics | None) -> str:
    """Return 'mean ± spread' in mm, the mean alone for a single run."""
    if statistics is None:
        return NO_TRACKING
    if statistics.spread is None:
        return millimetres(statistics.mean)
    return f'{millimetres(statistics.mean)} ± {millimetres(statistics.spread)}'


def runs_text(row: ComparisonRow) -> str:
    """Return the number of runs, and of those that stopped early or tracked nothing, as text."""
    count = len(row.records)
    notes = [f'{count} run' + ('' if count == 1 else 's')]
    stopped = sum(not r.completed for r in row.records)
    empty = sum(r.error() is None for r in row.records)
    if stopped:
        notes.append(f'{stopped} stopped early')
    if empty:
        notes.append(f'{empty} without tracking')
    return ', '.join(notes)


def lap_statistics(record: RunRecord) -> list[tuple[int, ErrorStatistics]]:
    """Return (lap, statistics) of each lap that has tracking samples; laps are 0-based."""
    laps = sorted(set(record.samples.lap[record.samples.tracking].tolist()))
    return list(zip(laps, record.lap_errors()))


def error_rows(record: RunRecord) -> list[tuple[str, ...]]:
    """
    Return the error table of a run, columns as in `ERROR_COLUMNS`.

    The rows are: all laps (also as measured, if the true tip is known), the laps after the first,
    and each lap.
    """
    length = record.info.arm_length_m
    measured = (
        [_error_row('as measured', record.measured_error(), length)]
        if record.samples.true_tip_known
        else []
    )
    if record.info.task is not None:
        rows = [_error_row('all steps', record.error(), length), *measured]
        return rows + [_error_row(f'step {k + 1}', e, length) for k, e in lap_statistics(record)]
    rows = [_error_row('all laps', record.error(), length), *measured]
    after = record.error(first_lap=1)
    label = 'after the first lap' if after is not None else 'after the first lap (none)'
    rows.append(_error_row(label, after, length))
    rows += [_error_row(f'lap {k + 1}', e, length) for k, e in lap_statistics(record)]
    return rows


def _error_row(label: str, error: ErrorStatistics | None, length_m: float) -> tuple[str, ...]:
    if error is None:
        return (label, *[NONE] * (len(ERROR_COLUMNS) - 1))
    return (
        label,
        millimetres(error.mean),
        millimetres(error.rms),
        millimetres(error.max),
        number(percent_of_length(error.mean, length_m)),
        number(percent_of_length(error.max, length_m)),
    )


def tip_text(record: RunRecord) -> str:
    """Return the name of the tip that a run's errors refer to."""
    return 'true tip' if record.samples.true_tip_known else 'measured tip'


def machine_text(record: RunRecord) -> str:
    """Return the number of the simulated machine, as text to append to the seed."""
    number = record.info.machine
    if number is None:
        return ''
    return f', machine {number}' if number else ', nominal machine'


def control_text(record: RunRecord) -> str:
    """Return 'open loop' or 'closed loop'."""
    return 'open loop' if record.info.open_loop else 'closed loop'


def missed_text(record: RunRecord) -> str:
    """Return the missed cycles, their share, and the number of holds if there were any."""
    timing = record.timing
    held = f', held {timing.holds} times' if timing.holds else ''
    share = f' ({100.0 * timing.missed / timing.cycles:.2f} %)' if timing.cycles > 0 else ''
    return f'{timing.missed} of {timing.cycles}{share}{held}'


def pair_text(p50: float | None, p99: float | None) -> str:
    """Return two percentiles in ms."""
    if p50 is None and p99 is None:
        return 'not measured'
    return f'{number(p50, 3)} / {number(p99, 3)} ms'


def run_table(record: RunRecord) -> Table:
    """Return the tracking errors and loop timing of one run, for the terminal."""
    info, timing = record.info, record.timing
    table = Table(
        title=Text(f'{info.rig}: {info.motion}, {info.model}, {control_text(record)}'),
        caption=Text(_run_caption(record)),
        caption_justify='left',
        title_style='bold',
    )
    for i, name in enumerate(ERROR_COLUMNS[:5]):
        table.add_column(Text(name), justify='left' if i == 0 else 'right', no_wrap=i == 0)
    rows = error_rows(record)
    if record.error() is None:
        rows = [(NO_TRACKING, *[NONE] * 4)]
    elif (each := len(lap_statistics(record))) > _TERMINAL_LAPS:
        rows = rows[:-each]
    for row in rows:
        table.add_row(*[Text(cell) for cell in row[:5]])
    table.add_section()
    spans = [
        ('pose to command', timing.latency_p50_ms, timing.latency_p99_ms),
        ('computation', timing.compute_p50_ms, timing.compute_p99_ms),
    ]
    for name, p50, p99 in spans:
        if p50 is not None or p99 is not None:
            cells = (f'{name} p50', f'{number(p50, 3)} ms', 'p99', f'{number(p99, 3)} ms', '')
            table.add_row(*[Text(cell) for cell in cells])
    return table


def _run_caption(record: RunRecord) -> str:
    state = 'completed' if record.completed else 'STOPPED EARLY'
    return (
        f'{state} after {number(record.duration_s, 1)} s; {record.timing.rate_hz:g} Hz, '
        f'missed cycles {missed_text(record)}; seed {record.info.seed}{machine_text(record)}; '
        f'errors of the {tip_text(record)}'
    )


def error_table(rows: Sequence[ComparisonRow]) -> Table:
    """Return a table of several runs beside the paper's errors, for the terminal."""
    later = [SeedStatistics.of(row.records, first_lap=1) for row in rows]
    with_after = any(s is not None for s in later)
    columns = [
        'mean',
        'max',
        *(['lap 2 on\nmean', 'lap 2 on\nmax'] if with_after else []),
        '% of\nlength',
        'paper\nmean',
    ]
    table = Table(
        title=Text('tip error [mm]'),
        title_style='bold',
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column('')
    for name in columns:
        table.add_column(Text(name), justify='right', no_wrap=True)
    for row, after in zip(rows, later):
        table.add_row(*[Text(cell) for cell in _comparison_cells(row, after, with_after)])
    spread = any(len(row.records) > 1 for row in rows)
    troubled = [row for row in rows if ',' in runs_text(row)]
    lines = ['± is the standard deviation over seeds'] if spread else []
    lines += [f'{row.label}: {runs_text(row)}' for row in troubled]
    if lines:
        table.caption = Text('\n'.join(lines))
        table.caption_justify = 'left'
    return table


def _comparison_cells(
    row: ComparisonRow, after: SeedStatistics | None, with_after: bool
) -> list[str]:
    all_laps = SeedStatistics.of(row.records)
    later = [mean_and_spread(after) if after else NONE, millimetres(after.max if after else None)]
    return [
        row.label,
        mean_and_spread(all_laps),
        millimetres(all_laps.max if all_laps else None),
        *(later if with_after else []),
        number(all_laps.percent if all_laps else None),
        number(None if row.paper_mean_error_m is None else 1e3 * row.paper_mean_error_m, 1),
    ]
