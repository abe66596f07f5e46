"""Figures of one run: tip error, configuration and actuators over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MultipleLocator

from softarm_ros.cli.coordinates import bending_sections, not_bending
from softarm_ros.cli.edge_units import edge_unit
from softarm_ros.cli.report_paths import path_figure
from softarm_ros.cli.report_plotting import (
    FONT_SIZE,
    PALETTE,
    SMALL_SIZE,
    Style,
    connected,
    label_axes,
    legend_above,
    new_figure,
    plain,
    runs_of,
    save,
    say_empty,
    series_style,
)
from softarm_ros.cli.report_tables import tip_text
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.run_record import RunRecord, Samples

ERROR_HEIGHT_IN = 3.6
CONFIGURATION_HEIGHT_IN = 4.8
MIN_DIRECTION_BENDING_RAD = float(np.deg2rad(1.0))  # below it, the direction is meaningless
_PHASE_COLOURS = {
    'idle': '#eeeeee',
    'approach': '#e3e3e3',
    'settle': '#d6e6f2',
    'held': '#f7d9c8',
    'done': '#dcefe6',
}
_MAX_NAMED_LAPS = 8
_COLUMNS = 3  # number of actuator panels side by side


# -- tip error --------------------------------------------------------------------------------


def shade_phases(axes: Sequence[Any], samples: Samples) -> list[Any]:
    """Shade every phase except tracking in all axes; return legend handles of these phases."""
    time, seen = samples.time_s, []
    for first, last in runs_of(samples.phase):
        name = str(samples.phase[first])
        end = time[min(last + 1, len(time) - 1)]
        if name == 'track' or end <= time[first]:
            continue
        for ax in axes:
            ax.axvspan(
                time[first], end, color=_PHASE_COLOURS.get(name, '#eeeeee'), lw=0.0, zorder=0.0
            )
        if name not in seen:
            seen.append(name)
    return [
        Patch(facecolor=_PHASE_COLOURS.get(n, '#eeeeee'), edgecolor='#999999', lw=0.5, label=n)
        for n in seen
    ]


def lap_starts(samples: Samples) -> list[tuple[int, float]]:
    """Return (lap, time [s]) of the beginning of each tracked lap; laps are 0-based."""
    rows = np.flatnonzero(samples.phase == 'track')
    laps = samples.lap[rows]
    return [(int(k), float(samples.time_s[rows[laps == k][0]])) for k in np.unique(laps)]


def mark_laps(ax: Any, record: RunRecord, named: bool = True) -> None:
    """Mark the starts of laps or of a task's steps, and label them if there is room."""
    starts = lap_starts(record.samples)
    counts = 'lap' if record.info.task is None else 'step'
    if len(starts) < 2:
        return
    for k, time in starts:
        ax.axvline(time, color='#777777', linewidth=0.7, linestyle=(0, (2, 2)), zorder=1.0)
        if named and len(starts) <= _MAX_NAMED_LAPS:
            ax.annotate(
                f'{counts} {k + 1}',
                (time, 1.0),
                xycoords=ax.get_xaxis_transform(),
                xytext=(2.0, 1.0),
                textcoords='offset points',
                va='bottom',
                fontsize=SMALL_SIZE,
                color='#444444',
            )


def error_figure(record: RunRecord, file: Path) -> Path:
    """Draw the tip error over time with its mean and maximum during tracking."""
    samples, statistics = record.samples, record.error()
    figure = new_figure(ERROR_HEIGHT_IN)
    ax = figure.add_subplot()
    handles = shade_phases([ax], samples)
    mark_laps(ax, record)
    error = 1e3 * samples.error
    counted = np.where(samples.phase == 'track', error, np.nan)
    for values, colour in ((error, '#999999'), (counted, PALETTE[0])):
        alone = np.count_nonzero(np.isfinite(values)) == 1
        marker = 'o' if alone else ''
        ax.plot(*connected(samples.time_s, values), color=colour, linewidth=0.8, marker=marker)
    lines = []
    if samples.true_tip_known:
        style_measured: Style = {'color': PALETTE[2], 'linewidth': 0.6, 'label': 'as measured'}
        apparent = np.where(samples.phase == 'track', 1e3 * samples.measured_error, np.nan)
        ax.plot(*connected(samples.time_s, apparent), zorder=1.5, **style_measured)
        lines.append(Line2D([], [], **style_measured))
    if statistics is not None:
        lines.append(Line2D([], [], color=PALETTE[0], label='tip error while tracking'))
    if np.any(np.isfinite(error) & (samples.phase != 'track')):
        lines.append(Line2D([], [], color='#999999', label='tip error before or after'))
    if statistics is not None:
        tracked = samples.time_s[samples.tracking]
        for name, value, dashes in (('mean', statistics.mean, '--'), ('max', statistics.max, ':')):
            style: Style = {'color': PALETTE[1], 'linestyle': dashes, 'linewidth': 1.3}
            ax.plot([tracked[0], tracked[-1]], [1e3 * value] * 2, **style)
            lines.append(Line2D([], [], label=f'{name} {1e3 * value:.2f} mm', **style))
    else:
        say_empty(ax, 'no tracking samples')
    label_axes(ax, 'time [s]', 'tip error [mm]')
    ax.set_ylim(bottom=0.0)
    _time_limits([ax], samples)
    legend_above(figure, lines + handles)
    return save(figure, file)


def _time_limits(axes: Sequence[Any], samples: Samples) -> None:
    time = samples.time_s
    if len(time) > 1 and time[-1] > time[0]:
        for ax in axes:
            ax.set_xlim(time[0], time[-1])


# -- configuration ----------------------------------------------------------------------------


def angle_and_direction(bend_x: Array, bend_y: Array) -> tuple[Array, Array]:
    """
    Return bending angle theta (n,) and direction phi (n,) [rad] of bending vectors.

    The direction is unwrapped across rows and NaN where theta is below 1 deg.
    """
    theta = np.hypot(bend_x, bend_y)
    phi = np.full(len(theta), np.nan)
    clear = theta >= MIN_DIRECTION_BENDING_RAD  # NaN compares as False
    phi[clear] = np.unwrap(np.arctan2(bend_y[clear], bend_x[clear]))
    return theta, phi


def _beside(phi: Array, other: Array) -> Array:
    """Return directions (n,) [rad], shifted by whole turns so that they lie near `other` (n,)."""
    both = np.isfinite(phi) & np.isfinite(other)
    if not np.any(both):
        return phi
    return phi - 2.0 * np.pi * np.round(np.median(phi[both] - other[both]) / (2.0 * np.pi))


def configuration_figure(record: RunRecord, file: Path) -> Path:
    """Draw the commanded bending of each section, and the other coordinates, over time."""
    samples, names = record.samples, record.info.configuration_names
    sections, others = bending_sections(names), not_bending(names)
    count = 2 * bool(sections) + bool(others)
    figure = new_figure(0.5 * CONFIGURATION_HEIGHT_IN * max(count, 2))
    axes = list(figure.subplots(max(count, 1), 1, sharex=True, squeeze=False)[:, 0])
    handles: list[Any] = []
    phases = shade_phases(axes, samples)
    for k, ax in enumerate(axes):
        mark_laps(ax, record, named=k == 0)
    if sections:
        handles = _draw_bending(axes, samples, sections)
    for order, k in enumerate(others, start=len(sections)):
        style: Style = {**series_style(order), 'linewidth': 1.2, 'label': plain(names[k])}
        axes[-1].plot(samples.time_s, samples.configuration[:, k], **style)
        handles.append(Line2D([], [], **style))
    if others:
        label_axes(axes[-1], '', 'coordinates [SI unit]')
    if len(samples.time_s) == 0:
        say_empty(axes[0], 'no samples')
    axes[-1].set_xlabel('time [s]', fontsize=FONT_SIZE)
    _time_limits(axes, samples)
    legend_above(figure, handles + phases)
    return save(figure, file)


def _draw_bending(
    axes: Sequence[Any], samples: Samples, sections: Sequence[tuple[str, int, int]]
) -> list[Any]:
    handles: list[Any] = []
    first: Array | None = None
    for k, (name, i, j) in enumerate(sections):
        theta, phi = angle_and_direction(samples.configuration[:, i], samples.configuration[:, j])
        first = phi if first is None else first
        style: Style = {**series_style(k), 'linewidth': 1.4, 'label': plain(name)}
        if k:  # dashed: sections with the same bending stay visible
            style |= {'linestyle': '--', 'linewidth': 1.1}
        axes[0].plot(samples.time_s, np.rad2deg(theta), **style)
        axes[1].plot(samples.time_s, np.rad2deg(_beside(phi, first)), **style)
        handles.append(Line2D([], [], **style))
    label_axes(axes[0], '', 'bending angle theta [deg]')
    label_axes(axes[1], '', 'direction phi [deg]')
    axes[0].set_ylim(bottom=0.0)
    _turn_ticks(axes[1])
    return handles


def _turn_ticks(ax: Any) -> None:
    """Set ticks at fractions of a turn if the directions (axis in deg) spread far enough."""
    low, high = ax.get_ylim()
    for step in (45.0, 90.0, 180.0, 360.0):
        if 2.0 * step <= high - low <= 8.0 * step:
            ax.yaxis.set_major_locator(MultipleLocator(step))
            return


# -- actuators --------------------------------------------------------------------------------


def actuators_height_in(actuators: int) -> float:
    """Return the height [in] of the actuator figure."""
    return 2.9 + 1.5 * max(_actuator_rows(actuators), 1)


def _actuator_rows(actuators: int) -> int:
    return -(-actuators // _COLUMNS)


def actuators_figure(record: RunRecord, file: Path) -> Path:
    """Draw command and position of each actuator, and the efforts of all actuators, over time."""
    samples, names = record.samples, record.info.actuator_names
    unit, factor = edge_unit(record.info.actuator_unit)
    rows = max(_actuator_rows(len(names)), 1)
    figure = new_figure(actuators_height_in(len(names)))
    grid = figure.add_gridspec(rows + 1, _COLUMNS, height_ratios=[1.0] * rows + [1.3])
    command: Style = {'color': '#000000', 'linewidth': 0.8, 'linestyle': '--', 'label': 'command'}
    handles = [Line2D([], [], **command)]
    panels: list[Any] = []
    for k, name in enumerate(names):
        ax = figure.add_subplot(
            grid[k // _COLUMNS, k % _COLUMNS],
            sharex=panels[0] if panels else None,
            sharey=panels[0] if panels else None,
        )
        panels.append(ax)
        ax.plot(samples.time_s, factor * samples.position[:, k], linewidth=2.4, **series_style(k))
        ax.plot(samples.time_s, factor * samples.command[:, k], **command)
        label_axes(ax, '', f'position [{unit}]' if k % _COLUMNS == 0 else '')
        apart = _largest(factor * (samples.command[:, k] - samples.position[:, k]))
        title = plain(name) if apart is None else f'{plain(name)}, apart ≤ {apart:.3g} {unit}'
        ax.set_title(title, fontsize=SMALL_SIZE, loc='left')
        ax.tick_params(labelbottom=k + _COLUMNS >= len(names), labelleft=k % _COLUMNS == 0)
    effort = figure.add_subplot(grid[rows, :], sharex=panels[0] if panels else None)
    effort_unit, effort_factor = edge_unit(record.info.effort_unit)
    for k, name in enumerate(names):
        style: Style = {**series_style(k), 'linewidth': 1.0, 'label': plain(name)}
        effort.plot(samples.time_s, effort_factor * samples.effort[:, k], **style)
        handles.append(Line2D([], [], **style))
    label_axes(effort, 'time [s]', f'effort [{effort_unit}]')
    if not np.any(np.isfinite(samples.effort)):
        say_empty(effort, 'no effort measured')
    shade_phases([*panels, effort], samples)
    _time_limits([effort], samples)
    legend_above(figure, handles)
    return save(figure, file)


def _largest(values: Array) -> float | None:
    """Return the largest magnitude of the finite values (n,), or None if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.max(np.abs(finite))) if len(finite) else None


def run_figures(record: RunRecord, folder: Path) -> list[tuple[str, Path]]:
    """Draw all figures of a run into a folder; return (caption, file) for each."""
    unit, effort_unit = (
        edge_unit(si)[0] for si in (record.info.actuator_unit, record.info.effort_unit)
    )
    return [
        (
            'Reference, measured and true path of the tip in the base frame (the true one is '
            'known of simulated arms), from an oblique view and along the three axes, all axes '
            'equal. The grey bar is the arm at rest.',
            path_figure(record, folder / 'path_3d.png'),
        ),
        (
            f'Distance between the {tip_text(record)} and the reference at the time of the '
            'measurement. Only what is drawn in blue counts for the error table; other phases '
            'are shaded.',
            error_figure(record, folder / 'error.png'),
        ),
        (
            _configuration_caption(record.info.configuration_names),
            configuration_figure(record, folder / 'configuration.png'),
        ),
        (
            f'Position (coloured) and command (dashed) of each actuator [{unit}], all panels at '
            'the same scale, with the largest difference between the two; below, the effort of '
            f'all actuators [{effort_unit}] in the same colours.',
            actuators_figure(record, folder / 'actuators.png'),
        ),
    ]


def _configuration_caption(names: Sequence[str]) -> str:
    parts = []
    if bending_sections(names):
        parts.append(
            'bending angle theta of each section and its direction phi, which is left out below '
            '1 deg of bending, where it means nothing'
        )
    if not_bending(names):
        parts.append('coordinates that are no bending, each in its SI unit (m, N)')
    return f'Commanded configuration: {"; ".join(parts)}.' if parts else 'Commanded configuration.'
