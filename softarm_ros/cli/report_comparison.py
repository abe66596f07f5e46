"""Report of several runs side by side: one self-contained HTML page, figures, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softarm_ros.cli.report_comparison_figures import comparison_figures
from softarm_ros.cli.report_files import MAX_EVENTS, PAGE, SUMMARY, prepare_folder, write_json
from softarm_ros.cli.report_html import figures, page, paragraph, section, table
from softarm_ros.cli.report_tables import (
    NONE,
    ComparisonRow,
    SeedStatistics,
    control_text,
    mean_and_spread,
    millimetres,
    number,
    runs_text,
    tip_text,
)
from softarm_ros.whole_file import write_text

_SEVERE = ('warning', 'error')


def write_comparison(
    title: str,
    rows: Sequence[ComparisonRow],
    folder: Path,
    notes: Sequence[str] = (),
    extra_figures: Sequence[tuple[str, Path]] = (),
) -> Path:
    """
    Write numbers, figures and the HTML page of several runs; return the path of the page.

    Parameters
    ----------
    title : str
        Heading of the page.
    rows : sequence of ComparisonRow
        At least one; figures show the first seed of each.
    folder : Path
        Folder of the report; created if necessary.
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
    write_json({'title': title, 'rows': [_row_summary(row) for row in rows]}, folder / SUMMARY)
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
    write_text(file, page(title, lead, parts))
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
    parts = [table(header, found[:MAX_EVENTS], text_columns=(0, 1, 2, 3))]
    if len(found) > MAX_EVENTS:
        text = f'The first {MAX_EVENTS} of {len(found)}; all are in {SUMMARY}.'
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
