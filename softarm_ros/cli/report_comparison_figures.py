"""Figures of several runs together: paths, tip errors, mean errors beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from softarm_ros.cli.report_paths import (
    PathLine,
    draw_paths,
    measured_path,
    reference_path,
)
from softarm_ros.cli.report_plotting import (
    FONT_SIZE,
    PALETTE,
    REFERENCE_COLOUR,
    SMALL_SIZE,
    Style,
    connected,
    label_axes,
    legend_above,
    new_figure,
    plain,
    save,
    say_empty,
    series_style,
)
from softarm_ros.cli.report_tables import (
    NO_TRACKING,
    ComparisonRow,
    SeedStatistics,
    mean_and_spread,
)
from softarm_ros.runtime.run_record import RunRecord

Labelled = tuple[str, RunRecord]

OVERLAY_HEIGHT_IN = 3.8
_LOG_RATIO = 10.0  # medians further apart than this are drawn on a logarithmic axis
_LABEL_WIDTH = 30  # characters of a label before it is wrapped


def by_trajectory(rows: Sequence[ComparisonRow]) -> list[tuple[str, list[Labelled]]]:
    """Return the first run of each row, grouped by rig and motion, as (title, runs)."""
    groups: dict[tuple[str, str], list[Labelled]] = {}
    for row in rows:
        if row.records:
            info = row.records[0].info
            groups.setdefault((info.rig, info.motion), []).append((row.label, row.records[0]))
    several_rigs = len({rig for rig, _ in groups}) > 1
    return [
        (f'{rig}, {name}' if several_rigs else name, runs) for (rig, name), runs in groups.items()
    ]


def overlay_paths_figure(runs: Sequence[Labelled], file: Path) -> Path:
    """Draw the measured paths of several runs over their common reference."""
    lines = [
        PathLine(
            measured_path(record.samples),
            {**series_style(k), 'linewidth': 1.1, 'label': plain(label, _LABEL_WIDTH)},
        )
        for k, (label, record) in enumerate(runs)
    ]
    style: Style = {
        'color': REFERENCE_COLOUR,
        'linewidth': 1.1,
        'linestyle': '--',
        'label': 'reference',
    }
    lines.append(PathLine(reference_path(runs[0][1]), style))
    return draw_paths(
        [k for k in lines if len(k.points)], max(r.info.arm_length_m for _, r in runs), file
    )


def overlay_errors_figure(runs: Sequence[Labelled], file: Path) -> Path:
    """Draw tip errors against the time since tracking began."""
    figure = new_figure(OVERLAY_HEIGHT_IN)
    ax = figure.add_subplot()
    handles: list[Any] = []
    medians: list[float] = []
    for k, (label, record) in enumerate(runs):
        samples = record.samples
        rows = samples.phase == 'track'
        time, error = connected(samples.time_s[rows], 1e3 * samples.error[rows])
        if not np.any(np.isfinite(error)):
            continue
        style: Style = {**series_style(k), 'linewidth': 1.1, 'label': plain(label, _LABEL_WIDTH)}
        ax.plot(time - samples.time_s[rows][0], error, **style)
        handles.append(Line2D([], [], **style))
        medians.append(float(np.nanmedian(error)))
    if not medians:
        say_empty(ax, NO_TRACKING)
    wide = bool(medians) and 0.0 < _LOG_RATIO * min(medians) < max(medians)
    if wide:
        ax.set_yscale('log')
        ax.yaxis.set_major_formatter('{x:g}')
        ax.grid(True, which='minor', axis='y', color='#eeeeee', linewidth=0.4)
    label_axes(
        ax,
        'time since tracking began [s]',
        'tip error [mm]' + (', logarithmic' if wide else ''),
    )
    if not wide:
        ax.set_ylim(bottom=0.0)
    if medians:
        ax.set_xlim(left=0.0)
    legend_above(figure, handles, columns=3)
    return save(figure, file)


def bars_height_in(rows: int) -> float:
    """Return the height [in] of the bar chart."""
    return 1.2 + 0.62 * max(rows, 1)


def mean_error_figure(rows: Sequence[ComparisonRow], file: Path) -> Path:
    """Draw mean errors with their spread over seeds, each beside the paper's."""
    figure = new_figure(bars_height_in(len(rows)))
    ax = figure.add_subplot()
    widest = 0.0
    for k, row in enumerate(rows):
        statistics = SeedStatistics.of(row.records)
        has_paper = row.paper_mean_error_m is not None
        ours = k - 0.2 if has_paper else float(k)
        widest = max(widest, _draw_ours(ax, statistics, ours))
        if row.paper_mean_error_m is not None:
            paper = 1e3 * row.paper_mean_error_m
            ax.barh(k + 0.2, paper, 0.36, facecolor='#ffffff', edgecolor='#000000', hatch='////')
            _value(ax, paper, k + 0.2, f'{paper:.1f}')
            widest = max(widest, paper)
    ax.set_yticks(range(len(rows)), [plain(r.label, _LABEL_WIDTH) for r in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.3 * widest if widest > 0.0 else 1.0)
    label_axes(ax, 'mean tip error [mm]')
    ax.grid(False, axis='y')
    ax.tick_params(axis='y', labelsize=FONT_SIZE, length=0.0)
    legend_above(figure, _bar_handles(rows))
    return save(figure, file)


def _draw_ours(ax: Any, statistics: SeedStatistics | None, y: float) -> float:
    """Draw one bar at height y; return its right end [mm], the spread included."""
    if statistics is None or not np.isfinite(statistics.mean):
        _value(ax, 0.0, y, NO_TRACKING)
        return 0.0
    mean, end = 1e3 * statistics.mean, 1e3 * max(statistics.means)
    ax.barh(y, mean, 0.36, color=PALETTE[0])
    if statistics.spread is not None:
        spread = 1e3 * statistics.spread
        ax.errorbar(mean, y, xerr=spread, color='#000000', capsize=3.0, linewidth=1.0)
        seeds = 1e3 * np.array(statistics.means)
        ax.plot(seeds, np.full(len(seeds), y), linestyle='none', zorder=3.0, **_seed_style())
        end = max(end, mean + spread)
    _value(ax, end, y, mean_and_spread(statistics))
    return end


def _seed_style() -> Style:
    return {
        'marker': 'o',
        'markersize': 3.0,
        'markerfacecolor': '#E69F00',
        'markeredgecolor': '#000000',
        'markeredgewidth': 0.4,
    }


def _value(ax: Any, x: float, y: float, text: str) -> None:
    ax.annotate(
        text,
        (x, y),
        xytext=(5.0, 0.0),
        textcoords='offset points',
        va='center',
        fontsize=SMALL_SIZE,
    )


def _bar_handles(rows: Sequence[ComparisonRow]) -> list[Any]:
    handles: list[Any] = [Patch(facecolor=PALETTE[0], label='this report')]
    if any(len(r.records) > 1 for r in rows):
        handles.append(
            Line2D([], [], color='#000000', label='standard deviation over seeds', marker='|')
        )
        handles.append(Line2D([], [], linestyle='none', label='each seed', **_seed_style()))
    if any(r.paper_mean_error_m is not None for r in rows):
        handles.append(
            Patch(facecolor='#ffffff', edgecolor='#000000', hatch='////', label='the paper')
        )
    return handles


def comparison_figures(rows: Sequence[ComparisonRow], folder: Path) -> list[tuple[str, Path]]:
    """Draw all figures of a comparison into a folder; return (caption, file) for each."""
    figures = [
        (
            'Mean tip error while tracking, all laps, beside the mean error that the paper '
            'reports where it reports one.',
            mean_error_figure(rows, folder / 'mean_error.png'),
        )
    ]
    groups = by_trajectory(rows)
    for k, (title, runs) in enumerate(groups, start=1):
        suffix = '' if len(groups) == 1 else f'_{k}'
        figures += [
            (
                f'Paths of the tip while tracking {title}, in the base frame, first seed of each '
                'row; all axes equal. The grey bar is the arm at rest.',
                overlay_paths_figure(runs, folder / f'paths{suffix}.png'),
            ),
            (
                f'Tip error while tracking {title}, first seed of each row.',
                overlay_errors_figure(runs, folder / f'errors{suffix}.png'),
            ),
        ]
    return figures
