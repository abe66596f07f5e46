"""Figures of a scored run: measured and predicted values, and the distribution of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.measured_run import MeasuredRun
from softarm_ros.cli.prediction import Prediction
from softarm_ros.cli.report_plotting import PALETTE, REFERENCE_COLOUR, new_figure, save
from softarm_ros.cli.text_output import printable
from softarm_ros.geometry.arrays import Array

_ROW_IN = 1.7
_MAX_POINTS = 4000
_FEW = 50  # up to this many rows are marked: a line does not show a row between two gaps
_GAP = 5.0  # median time steps; a longer gap without measurements breaks a line


def draw(
    folder: Path, run: MeasuredRun, predictions: Sequence[Prediction], taken: Sequence[Path] = ()
) -> list[Path]:
    """
    Write a figure for each measured quantity of a run into a folder; return their paths.

    `taken` are figures of other runs, which are not replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = re.sub(r'\.(csv|mcap)$', '', run.source)
    written: list[Path] = []
    for kind, measured in (('', run.points), (' axis', run.axes)):
        for name, values in measured.items():
            shown = {p.name: (p.axes if kind else p.points)[name] for p in predictions}
            figure = _figure(run, f'{run.source}: {name}{kind}', values, shown, bool(kind))
            stem = re.sub(r'\W+', '_', f'{source}_{name}{kind}').strip('_')
            path = folder / f'{stem}.png'
            while path in {*taken, *written}:
                path = path.with_stem(f'{path.stem}_')
            written.append(save(figure, path))
    return written


def gaps(time_s: Array) -> NDArray[np.int64]:
    """Return the indices of times (n,) that follow a long gap without measurements."""
    step = np.diff(time_s)
    if not len(step):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(step > _GAP * np.median(step)) + 1


def _figure(
    run: MeasuredRun, title: str, measured: Array, shown: dict[str, Array], axis: bool
) -> Any:
    figure = new_figure(4 * _ROW_IN)
    plots = figure.subplots(4, 1)
    thin = slice(None, None, max(1, len(measured) // _MAX_POINTS))
    at = np.arange(len(measured)) if run.time_s is None else run.time_s - run.time_s[0]
    scale, unit = (1.0, '') if axis else (1e3, ', mm')
    style = '.' if run.time_s is None else '-' if len(measured) > _FEW else '.-'
    apart = np.zeros(0, dtype=np.int64) if run.time_s is None else gaps(run.time_s[thin])
    time = np.insert(at[thin].astype(float), apart, np.nan)
    for k, plot in enumerate(plots[:3]):
        seen = np.insert(scale * measured[thin, k], apart, np.nan)
        plot.plot(time, seen, style, color=REFERENCE_COLOUR, lw=1.2, ms=5)
        for colour, values in zip(PALETTE, shown.values()):
            predicted = np.insert(scale * values[thin, k], apart, np.nan)
            plot.plot(time, predicted, style, color=colour, lw=0.8, ms=3)
        plot.set_ylabel('xyz'[k] + unit)
    plots[0].set_title(printable(title), parse_math=False)
    plots[2].set_xlabel('row' if run.time_s is None else 'time, s')
    for colour, (name, values) in zip(PALETTE, shown.items()):
        if axis:
            error = np.rad2deg(np.arccos(np.clip(np.sum(values * measured, axis=1), -1.0, 1.0)))
        else:
            error = 1e3 * np.linalg.norm(values - measured, axis=1)
        error = np.sort(error[np.isfinite(error)])
        error = np.concatenate([error[:1], error])  # no row is below the smallest error
        plots[3].plot(error, np.linspace(0.0, 100.0, len(error)), color=colour, label=name)
    plots[3].plot([], [], color=REFERENCE_COLOUR, label='measured')
    plots[3].set_xlabel('error, deg' if axis else 'error, mm')
    plots[3].set_ylabel('% of rows below')
    plots[3].set_xlim(left=0.0)
    plots[3].legend(loc='lower right')
    return figure
