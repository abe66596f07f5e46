"""
Figure helpers: size, colours, axes, legends, measured lines.

Figures are drawn on their own Agg canvas, without pyplot or changes to global settings.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.whole_file import whole_file

Style = dict[str, Any]  # keyword arguments of a matplotlib line

DPI = 200
WIDTH_IN = 7.2
# Okabe & Ito's palette, distinct for any colour vision; its yellow is too faint on white.
PALETTE = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#555555')
LINE_STYLES = ('-', '--', '-.', ':')
REFERENCE_COLOUR = '#000000'
FONT_SIZE = 9.0
SMALL_SIZE = 8.0
_GAP_PERIODS = 5.0  # a longer gap between measurements than both of these breaks a line
_GAP_S = 0.1


def new_figure(height_in: float, width_in: float = WIDTH_IN, dpi: int = DPI) -> Figure:
    """Return a figure of `width_in` by `height_in` inches."""
    figure = Figure((width_in, height_in), dpi=dpi, facecolor='white', layout='constrained')
    FigureCanvasAgg(figure)
    return figure


def canvas_of(figure: Figure) -> FigureCanvasAgg:
    """Return the canvas of a figure made by `new_figure`; it gives access to the pixels."""
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    return canvas


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG of exactly the figure's size and return its path."""
    with whole_file(path) as part, warnings.catch_warnings():
        # Characters missing in the font show as boxes in the figure, but correctly in the page.
        warnings.filterwarnings('ignore', message='Glyph .* missing from')
        figure.savefig(
            part,
            format='png',
            dpi=DPI,
            facecolor='white',
            edgecolor='none',
            bbox_inches=None,
            metadata={'Software': None},
        )
    return path


def series_style(index: int) -> Style:
    """Return colour and dashes for a line's index; dashes differ where colours repeat."""
    return {
        'color': PALETTE[index % len(PALETTE)],
        'linestyle': LINE_STYLES[(index // len(PALETTE)) % len(LINE_STYLES)],
    }


def plain(text: str, width: int = 0) -> str:
    """Return text escaped for matplotlib, wrapped to `width` characters if given."""
    shown = text.replace('$', r'\$')
    if width:
        shown = '\n'.join(textwrap.wrap(shown, width)) or shown
    # Older versions of matplotlib omit labels with a leading underscore from legends.
    return f' {shown}' if shown.startswith('_') else shown


def label_axes(ax: Any, x: str = '', y: str = '', title: str = '') -> None:
    """Set labels (with units), tick sizes and a light grid."""
    ax.set_xlabel(x, fontsize=FONT_SIZE)
    ax.set_ylabel(y, fontsize=FONT_SIZE)
    if title:
        ax.set_title(title, fontsize=FONT_SIZE, loc='left')
    ax.tick_params(labelsize=SMALL_SIZE)
    ax.grid(True, color='#d9d9d9', linewidth=0.5)
    ax.set_axisbelow(True)
    for side in ('top', 'right'):
        ax.spines[side].set_visible(False)


def legend_above(figure: Figure, handles: Sequence[Any], columns: int = 4) -> None:
    """Put one legend above all axes, where it covers no data."""
    if handles:
        figure.legend(
            handles=list(handles),
            labels=[str(h.get_label()) for h in handles],
            loc='outside upper center',
            ncols=min(columns, len(handles)),
            fontsize=SMALL_SIZE,
            frameon=False,
        )


def say_empty(ax: Any, text: str) -> None:
    """Write a text into empty axes that explains why they are empty."""
    ax.text(
        0.5,
        0.5,
        text,
        transform=ax.transAxes,
        ha='center',
        va='center',
        fontsize=FONT_SIZE,
        bbox={'facecolor': '#ffffff', 'edgecolor': '#999999', 'linewidth': 0.5, 'pad': 4.0},
    )


def connected(time_s: Array, values: Array) -> tuple[Array, Array]:
    """
    Return the rows with a measurement, ready to draw as a line.

    A control loop faster than its sensor has rows without a measurement between rows with one.
    The line connects across these; real drop-outs interrupt it with a NaN row.

    Parameters
    ----------
    time_s : (n,)
        Increasing times [s].
    values : (n,) or (n, k)
        Measurements; NaN if there is none.

    """
    finite = np.isfinite(values)
    good = np.isfinite(time_s) & (finite if values.ndim == 1 else np.all(finite, axis=1))
    time, kept = time_s[good], values[good]
    steps = np.diff(time)
    if len(steps) == 0:
        return time, kept
    gaps = np.flatnonzero(steps > max(_GAP_PERIODS * float(np.median(steps)), _GAP_S)) + 1
    return np.insert(time, gaps, np.nan), np.insert(kept, gaps, np.nan, axis=0)


def runs_of(values: NDArray[Any]) -> list[tuple[int, int]]:
    """Return (first, last) row of each stretch of equal values (n,)."""
    if len(values) == 0:
        return []
    starts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()]
    return list(zip(starts, [s - 1 for s in starts[1:]] + [len(values) - 1]))
