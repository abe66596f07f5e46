"""Figures of paths in space: from an oblique view and along the three axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

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
    save,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.run_record import RunRecord, Samples

PATH_HEIGHT_IN = 6.8
_PLANES = ((0, 1), (0, 2), (1, 2))
_AXES = 'xyz'


@dataclass(frozen=True)
class PathLine:
    """A path (n, 3) [m] in the base frame to draw, with its matplotlib line style."""

    points: Array
    style: Style


def reference_path(record: RunRecord) -> Array:
    """Return one lap (n, 3) [m] of the reference, or its tracked part if no path was recorded."""
    if len(record.path):
        return record.path
    return record.samples.reference[record.samples.phase == 'track']


def measured_path(samples: Samples, tracking: bool = True) -> Array:
    """Return the measured tip (n, 3) [m] during tracking, or before it; NaN rows mark gaps."""
    rows = np.isin(samples.phase, ('track',) if tracking else ('approach', 'settle'))
    return connected(samples.time_s[rows], samples.tip[rows])[1]


def true_path(samples: Samples) -> Array:
    """Return the true tip (n, 3) [m] during tracking; NaN rows mark gaps or unknown positions."""
    rows = samples.phase == 'track'
    return connected(samples.time_s[rows], samples.true_tip[rows])[1]


def draw_paths(lines: Sequence[PathLine], arm_length_m: float, file: Path) -> Path:
    """
    Draw paths from an oblique view and along the three axes, with the base and the resting arm.

    All axes have the same scale, in mm. Lines without a label are not in the legend.
    """
    figure = new_figure(PATH_HEIGHT_IN)
    grid = figure.add_gridspec(2, 2)
    length = arm_length_m if np.isfinite(arm_length_m) and arm_length_m > 0.0 else 0.0
    rest = PathLine(
        np.array([[0.0, 0.0, 0.0], [0.0, 0.0, length]]),
        {'color': '#999999', 'linewidth': 3.0, 'solid_capstyle': 'butt', 'label': 'arm at rest'},
    )
    drawn = [rest, *lines]
    _draw_oblique(figure.add_subplot(grid[0, 0], projection='3d'), drawn)
    for (i, j), cell in zip(_PLANES, (grid[0, 1], grid[1, 0], grid[1, 1])):
        _draw_projection(figure.add_subplot(cell), drawn, i, j)
    handles: list[Any] = [
        Line2D([], [], **k.style) for k in drawn if k.style.get('label') is not None
    ]
    handles.append(Line2D([], [], label='base', **_base_style()))
    legend_above(figure, handles, columns=3)
    return save(figure, file)


def _base_style() -> Style:
    return {'color': '#000000', 'marker': 's', 'markersize': 5.0, 'linestyle': 'none'}


def _limits(lines: Sequence[PathLine]) -> tuple[Array, Array]:
    """
    Return lowest and highest coordinates (3,) [mm] of all lines, with a margin.

    No side is shorter than a third of the longest, so that the box of a flat path is readable.
    """
    points = 1e3 * np.concatenate([k.points for k in lines])
    points = points[np.all(np.isfinite(points), axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    longest = max(float(np.max(high - low)), 1.0)
    half = np.maximum((high - low) / 2.0 + 0.05 * longest, longest / 6.0)
    middle = (low + high) / 2.0
    return middle - half, middle + half


def _draw_oblique(ax: Any, lines: Sequence[PathLine]) -> None:
    for line in lines:
        ax.plot(*(1e3 * line.points.T), **line.style)
    ax.plot([0.0], [0.0], [0.0], **_base_style())
    low, high = _limits(lines)
    for axis, a, b in zip(_AXES, low, high):
        getattr(ax, f'set_{axis}lim')(a, b)
        getattr(ax, f'set_{axis}label')(f'{axis} [mm]', fontsize=FONT_SIZE, labelpad=-3.0)
        getattr(ax, f'{axis}axis').set_major_locator(MaxNLocator(4))
    ax.set_box_aspect(high - low, zoom=0.9)
    ax.tick_params(labelsize=SMALL_SIZE - 1.0, pad=-1.5)
    ax.view_init(elev=24.0, azim=-58.0)


def _draw_projection(ax: Any, lines: Sequence[PathLine], i: int, j: int) -> None:
    for line in lines:
        ax.plot(1e3 * line.points[:, i], 1e3 * line.points[:, j], **line.style)
    ax.plot([0.0], [0.0], zorder=5, **_base_style())
    ax.margins(0.05)
    ax.set_aspect('equal', adjustable='datalim')
    label_axes(ax, f'{_AXES[i]} [mm]', f'{_AXES[j]} [mm]')


def path_figure(record: RunRecord, file: Path) -> Path:
    """Draw the reference, measured and, for a simulated arm, true path of a run."""
    before = {'color': '#888888', 'linewidth': 0.8, 'label': 'measured before tracking'}
    measured = {'color': PALETTE[1], 'linewidth': 1.1, 'label': 'measured'}
    reference = {
        'color': REFERENCE_COLOUR,
        'linewidth': 1.1,
        'linestyle': '--',
        'label': 'reference',
    }
    true = {'color': PALETTE[2], 'linewidth': 1.1, 'label': 'true'}
    lines = [
        PathLine(measured_path(record.samples, tracking=False), before),
        PathLine(measured_path(record.samples), measured),
        *([PathLine(true_path(record.samples), true)] if record.samples.true_tip_known else []),
        PathLine(reference_path(record), reference),
    ]
    return draw_paths([k for k in lines if len(k.points)], record.info.arm_length_m, file)
