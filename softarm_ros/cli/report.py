"""
Reports: a folder with figures, samples, numbers and one self-contained HTML page.

`write_report` is for one run, `write_comparison` for several side by side.
"""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.report_comparison_figures import comparison_figures
from softarm_ros.cli.report_figures import run_figures
from softarm_ros.cli.report_html import facts, figures, page, paragraph, section, table
from softarm_ros.cli.report_tables import (
    ERROR_COLUMNS,
    NONE,
    ComparisonRow,
    SeedStatistics,
    control_text,
    error_rows,
    error_table,
    machine_text,
    mean_and_spread,
    millimetres,
    missed_text,
    number,
    pair_text,
    run_table,
    runs_text,
    tip_text,
)
from softarm_ros.runtime.run_record import RunRecord

__all__ = [
    'ComparisonRow',
    'FolderError',
    'error_table',
    'prepare_folder',
    'run_table',
    'write_comparison',
    'write_report',
]

PAGE, SUMMARY, DATA = 'index.html', 'summary.json', 'data.csv'
_MAX_EVENTS = 200  # more than these stay in summary.json
_SEVERE = ('warning', 'error')


class FolderError(UsageError):
    """A folder for a report cannot be used; the message names the folder and the reason."""


def prepare_folder(path: Path) -> None:
    """
    Make sure that a report can be written into a folder, which is created if need be.

    To be called before a run, so that nothing is lost after it.

    Raises
    ------
    FolderError
        If the path is not a folder, cannot be created or cannot be written.

    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FolderError(f'report folder {path}: a file is in the way') from None
    except (OSError, ValueError) as error:
        raise FolderError(f'report folder {path}: cannot be created ({_why(error)})') from None
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise FolderError(f'report folder {path}: cannot be written ({_why(error)})') from None
    for name in (PAGE, SUMMARY, DATA):
        file = path / name
        if file.is_dir():
            raise FolderError(f'report folder {path}: {name} in it is a folder; remove it')
        if file.exists() and not os.access(file, os.W_OK):
            raise FolderError(f'report folder {path}: {name} in it is read-only')


def _why(error: Exception) -> str:
    return getattr(error, 'strerror', None) or str(error)


# -- one run ----------------------------------------------------------------------------------


def write_report(record: RunRecord, folder: Path) -> Path:
    """
    Write samples, numbers, figures and the page of one run; return the page.

    Raises
    ------
    FolderError
        If the folder cannot be used.

    """
    prepare_folder(folder)
    _write_samples(record, folder / DATA)
    _write_json(record.summary(), folder / SUMMARY)
    drawn = run_figures(record, folder)
    info = record.info
    names = ', '.join([DATA, SUMMARY, *[png.name for _, png in drawn]])
    parts = [
        *_warnings(record),
        section('What was run', facts(_run_facts(record))),
        section(
            'Tip error',
            table(ERROR_COLUMNS, error_rows(record)),
            paragraph(_error_note(record), 'small'),
        ),
        *_machine_parts(record),
        section('Loop timing', facts(_timing_facts(record))),
        section('Events', *_event_parts(record)),
        section('Figures', *figures(drawn)),
        section('Files', paragraph(f'In the same folder as this page: {names}.')),
    ]
    lead = f'{info.model}, {control_text(record)}, backend {info.backend}, seed {info.seed}'
    file = folder / PAGE
    file.write_text(page(f'{info.rig}: {info.motion}', lead, parts), encoding='utf-8')
    return file


def _warnings(record: RunRecord) -> list[str]:
    found = []
    if not record.completed:
        found.append(
            f'Stopped early: the run ended after {number(record.duration_s, 1)} s, before the end '
            'of the trajectory. See the events below.'
        )
    if record.error() is None:
        found.append(
            'No tracking samples: the tip was never measured while the trajectory was tracked, '
            'so there is no tracking error.'
        )
    return [paragraph(text, 'warning') for text in found]


def _run_facts(record: RunRecord) -> list[tuple[str, str]]:
    info = record.info
    speed = 'as fast as possible' if info.rate <= 0.0 else f'{info.rate:g} × real time'
    return [
        ('rig', info.rig),
        ('trajectory', info.motion),
        ('model of the controller', info.model),
        ('control', control_text(record)),
        ('backend', info.backend),
        ('runner', 'one process, without topics' if info.direct else 'ROS 2 nodes and topics'),
        ('speed', speed),
        ('seed', f'{info.seed}{machine_text(record)}'),
        ('arm length', f'{millimetres(info.arm_length_m)} mm'),
        ('actuators', ', '.join(info.actuator_names)),
        ('duration', f'{number(record.duration_s)} s'),
        ('completed', 'yes' if record.completed else 'no, stopped early'),
    ]


def _machine_parts(record: RunRecord) -> list[str]:
    drawn = record.info.drawn
    if not drawn:
        return []
    text = 'Fields of `plant` in which this machine differs from the rig file, as drawn.'
    rows = [(name, f'{value:.6g}') for name, value in drawn.items()]
    return [section('Machine', paragraph(text, 'small'), table(('field', 'drawn'), rows))]


def _error_note(record: RunRecord) -> str:
    error = record.error()
    count = 0 if error is None else error.samples
    return (
        f'Distance between the {tip_text(record)} and the reference at the time of the '
        f'measurement, while tracking: {count} measurements. Arm length '
        f'{millimetres(record.info.arm_length_m)} mm.'
    )


def _timing_facts(record: RunRecord) -> list[tuple[str, str]]:
    t = record.timing
    return [
        ('rate', f'{t.rate_hz:g} Hz'),
        ('missed cycles', missed_text(record)),
        ('pose to command, p50 / p99', pair_text(t.latency_p50_ms, t.latency_p99_ms)),
        ('computation of a cycle, p50 / p99', pair_text(t.compute_p50_ms, t.compute_p99_ms)),
    ]


def _event_parts(record: RunRecord) -> list[str]:
    if not record.events:
        return [paragraph('None.')]
    rows = [(number(e.time_s), e.level, e.source, e.message) for e in record.events[:_MAX_EVENTS]]
    parts = [table(('time, s', 'level', 'source', 'message'), rows, text_columns=(0, 1, 2, 3))]
    if len(record.events) > _MAX_EVENTS:
        text = f'The first {_MAX_EVENTS} of {len(record.events)} events; all are in {SUMMARY}.'
        parts.append(paragraph(text, 'small'))
    return parts


# -- several runs -----------------------------------------------------------------------------


def write_comparison(
    title: str,
    rows: Sequence[ComparisonRow],
    folder: Path,
    notes: Sequence[str] = (),
    extra_figures: Sequence[tuple[str, Path]] = (),
) -> Path:
    """
    Write numbers, figures and the page of several runs side by side; return the page.

    Parameters
    ----------
    title : str
        Heading of the page.
    rows : sequence of ComparisonRow
        At least one; figures show the first seed of each.
    folder : Path
        Created if need be.
    notes : sequence of str
        Paragraphs below the table.
    extra_figures : sequence of (caption, PNG file)
        Shown after the page's own figures.

    Raises
    ------
    FolderError
        If the folder cannot be used.
    ValueError
        If there are no rows, or an extra figure is not a PNG image.

    """
    if not rows:
        raise ValueError('comparison without rows: expected at least one')
    prepare_folder(folder)
    _write_json({'title': title, 'rows': [_row_summary(row) for row in rows]}, folder / SUMMARY)
    drawn = comparison_figures(rows, folder)
    parts = [
        section('Tip error', _comparison_table(rows), paragraph(_comparison_note(rows), 'small')),
        *([section('Notes', *[paragraph(note) for note in notes])] if notes else []),
        section('Figures', *figures([*drawn, *extra_figures])),
        section('What was run', _runs_table(rows)),
        section('Warnings and errors during the runs', *_comparison_events(rows)),
        section(
            'Files', paragraph(f'The numbers of every run are in {SUMMARY} beside this page.')
        ),
    ]
    runs = sum(len(row.records) for row in rows)
    file = folder / PAGE
    lead = f'{len(rows)} ways of running, {runs} runs'
    file.write_text(page(title, lead, parts), encoding='utf-8')
    return file


def _comparison_table(rows: Sequence[ComparisonRow]) -> str:
    header = (
        '',
        'mean, mm',
        'max, mm',
        'mean after the first lap, mm',
        'max after the first lap, mm',
        'mean, % of length',
        'paper, mean, mm',
        'runs',
    )
    return table(header, [_comparison_cells(row) for row in rows], text_columns=(0, 7))


def _comparison_cells(row: ComparisonRow) -> tuple[str, ...]:
    all_laps = SeedStatistics.of(row.records)
    after = SeedStatistics.of(row.records, first_lap=1)
    paper = row.paper_mean_error_m
    return (
        row.label,
        mean_and_spread(all_laps),
        NONE if all_laps is None else millimetres(all_laps.max),
        NONE if after is None else mean_and_spread(after),
        NONE if after is None else millimetres(after.max),
        NONE if all_laps is None else number(all_laps.percent),
        NONE if paper is None else f'{1e3 * paper:.1f} ({1e2 * paper:.2f} cm)',
        runs_text(row),
    )


def _comparison_note(rows: Sequence[ComparisonRow]) -> str:
    records = [record for row in rows for record in row.records]
    tips = ' or '.join(sorted({tip_text(record) for record in records})) or 'tip'
    text = f'Distance between the {tips} and the reference while tracking, all laps.'
    if any(len(row.records) > 1 for row in rows):
        text += (
            ' Mean over seeds ± sample standard deviation of the mean errors; max is the largest '
            'error of all seeds.'
        )
    if any(row.paper_mean_error_m is not None for row in rows):
        text += ' In brackets the value as the paper prints it.'
    return text


def _comparison_events(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return the warnings and errors, each once per row of the comparison, with its seeds."""
    seeds: dict[tuple[str, str, str], set[int]] = {}
    for row in rows:
        for record in row.records:
            for e in record.events:
                if e.level in _SEVERE:
                    key = (row.label, e.level, e.message)
                    seeds.setdefault(key, set()).add(record.info.seed)
    if not seeds:
        return [paragraph('None.')]
    found = [(*key, ', '.join(map(str, sorted(who)))) for key, who in seeds.items()]
    header = ('', 'level', 'message', 'seeds')
    parts = [table(header, found[:_MAX_EVENTS], text_columns=(0, 1, 2, 3))]
    if len(found) > _MAX_EVENTS:
        text = f'The first {_MAX_EVENTS} of {len(found)}; all are in {SUMMARY}.'
        parts.append(paragraph(text, 'small'))
    return parts


def _runs_table(rows: Sequence[ComparisonRow]) -> str:
    def cells(row: ComparisonRow) -> tuple[str, ...]:
        infos = [record.info for record in row.records]
        seeds = ', '.join(str(i.seed) for i in infos)
        if not infos:
            return (row.label, *[NONE] * 6, seeds)
        i = infos[0]
        control, length = control_text(row.records[0]), f'{millimetres(i.arm_length_m)} mm'
        return (row.label, i.rig, i.trajectory, i.model, control, i.backend, length, seeds)

    header = ('', 'rig', 'trajectory', 'model', 'control', 'backend', 'arm length', 'seeds')
    return table(header, [cells(row) for row in rows], text_columns=range(len(header)))


def _row_summary(row: ComparisonRow) -> dict[str, Any]:
    def plain(s: SeedStatistics | None) -> dict[str, Any] | None:
        if s is None:
            return None
        return {'mean': s.mean, 'spread': s.spread, 'max': s.max, 'means': list(s.means)}

    return {
        'label': row.label,
        'tracking_error_m': plain(SeedStatistics.of(row.records)),
        'tracking_error_after_first_lap_m': plain(SeedStatistics.of(row.records, first_lap=1)),
        'paper_mean_error_m': row.paper_mean_error_m,
        'runs': [record.summary() for record in row.records],
    }


# -- files ------------------------------------------------------------------------------------


def _write_json(value: dict[str, Any], file: Path) -> None:
    text = json.dumps(_finite(value), indent=2, allow_nan=False, ensure_ascii=False)
    file.write_text(text + '\n', encoding='utf-8')


def _finite(value: Any) -> Any:
    """Return the same structure with None for numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write_samples(record: RunRecord, file: Path) -> None:
    """Write one row per control cycle; units are in the column names, no value: no measurement."""
    s, info = record.samples, record.info
    unit = info.actuator_unit
    header = [
        'time_s',
        'phase',
        'lap',
        *[f'reference_{a}_m' for a in 'xyz'],
        *[f'tip_{a}_m' for a in 'xyz'],
        *[f'true_tip_{a}_m' for a in 'xyz'],
        'error_m',
        'measured_error_m',
        *[f'{name}_rad' for name in info.configuration_names],
        *[f'{name}_command_{unit}' for name in info.actuator_names],
        *[f'{name}_position_{unit}' for name in info.actuator_names],
        *[f'{name}_effort_N' for name in info.actuator_names],
    ]
    numbers = np.column_stack(
        [
            *(s.reference, s.tip, s.true_tip, s.error, s.measured_error),
            *(s.configuration, s.command, s.position, s.effort),
        ]
    )
    with file.open('w', newline='', encoding='utf-8') as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for time, phase, lap, row in zip(s.time_s, s.phase, s.lap, numbers):
            writer.writerow([f'{time:.9g}', phase, int(lap), *_cells(row)])


def _cells(row: Iterable[float]) -> list[str]:
    return [f'{v:.9g}' if math.isfinite(v) else '' for v in row]
