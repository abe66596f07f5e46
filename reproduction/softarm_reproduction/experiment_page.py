"""Write one page per arm: figures, tables, ratios and basis of each experiment of its paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table as ConsoleTable

from softarm_reproduction.experiments import BASIS_TEXT, Experiment, Row
from softarm_ros.cli.report_html import figure, page, paragraph, section, table
from softarm_ros.cli.report_plotting import new_figure, save
from softarm_ros.whole_file import write_text

PAGE = 'index.html'
FIGURE_HEIGHT_IN = 3.6
NONE = '–'
_HEADINGS = ('', 'unit', 'paper', 'ours', 'ours / paper')


def write_page(title: str, lead: str, experiments: Sequence[Experiment], folder: Path) -> Path:
    """Write figures, `experiments.json` and the page into a folder; return the page's path."""
    number = 0
    parts = []
    for experiment in experiments:
        body = [
            paragraph(f'Ours is: {BASIS_TEXT[experiment.basis]}.', 'small'),
            paragraph(experiment.text),
        ]
        if experiment.rows:
            body.append(
                table(_HEADINGS, [_cells(r) for r in experiment.rows], text_columns=(0, 1))
            )
        if experiment.table is not None:
            body.append(table(experiment.table.headings, experiment.table.rows))
        for picture in experiment.pictures:
            drawn = new_figure(FIGURE_HEIGHT_IN)
            picture.draw(drawn)
            number += 1
            png = save(drawn, folder / f'{picture.name}.png')
            body.append(figure(number, picture.caption, png))
        parts.append(section(experiment.title, *body))
    numbers = [
        {
            'title': e.title,
            'basis': e.basis,
            'rows': [asdict(r) | {'ratio': r.ratio} for r in e.rows],
            'table': None if e.table is None else asdict(e.table),
        }
        for e in experiments
    ]
    write_text(folder / 'experiments.json', json.dumps(numbers, indent=2))
    file = folder / PAGE
    write_text(file, page(title, lead, parts))
    return file


def console_tables(experiment: Experiment) -> list[ConsoleTable]:
    """Return the tables of an experiment for the terminal."""
    shown = []
    title = f'{experiment.title} ({BASIS_TEXT[experiment.basis]})'
    if experiment.rows:
        shown.append(_console_table(title, _HEADINGS, [_cells(r) for r in experiment.rows]))
    if experiment.table is not None:
        shown.append(_console_table(title, experiment.table.headings, experiment.table.rows))
    return shown


def _console_table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]
) -> ConsoleTable:
    result = ConsoleTable(title=title, title_justify='left')
    for k, heading in enumerate(headings):
        result.add_column(heading, justify='left' if k == 0 else 'right')
    for row in rows:
        result.add_row(*row)
    return result


def _cells(row: Row) -> tuple[str, ...]:
    return (row.quantity, row.unit, _text(row.paper), _text(row.ours), _text(row.ratio, 2))


def _text(value: float | None, decimals: int | None = None) -> str:
    if value is None:
        return NONE
    return f'{value:.4g}' if decimals is None else f'{value:.{decimals}f}'
