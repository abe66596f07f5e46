"""The picture of a calibration: corners, their residuals, and outlier images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.cli.report_plotting import PALETTE, SMALL_SIZE, new_figure, save
from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo import fit_quality
from softarm_ros.perception.stereo.boards import BoardView
from softarm_ros.perception.stereo.calibrate_camera import CameraFit
from softarm_ros.perception.stereo.calibrate_stereo import StereoFit
from softarm_ros.perception.stereo.camera import Mask


def draw_camera(fit: CameraFit, path: Path) -> Path:
    """Draw coverage, residuals and the error of each image of one camera."""
    figure = new_figure(5.2)
    axes = figure.subplot_mosaic([['coverage', 'scatter'], ['errors', 'errors']])
    _draw_coverage(axes['coverage'], fit.camera.name, fit.camera.size, fit.coverage, fit.views)
    _draw_scatter(axes['scatter'], {fit.camera.name: np.concatenate(fit.residuals)})
    names = [view.name for view in fit.views]
    _draw_errors(axes['errors'], names, {fit.camera.name: fit.errors_px}, fit.outliers)
    for each in axes.values():
        each.tick_params(labelsize=SMALL_SIZE)
    return save(figure, path)


def draw_stereo(fit: StereoFit, path: Path) -> Path:
    """Draw coverage of both cameras, residuals and the error of each pair."""
    figure = new_figure(7.6)
    axes = figure.subplot_mosaic([['left', 'right'], ['scatter', 'board'], ['errors', 'errors']])
    for one in (fit.left, fit.right):
        shown = axes[one.camera.name]
        _draw_coverage(shown, one.camera.name, one.camera.size, one.coverage, one.views)
    _draw_scatter(
        axes['scatter'],
        {
            side: np.concatenate([r[k] for r in fit.residuals])
            for k, side in enumerate(('left', 'right'))
        },
    )
    board = axes['board']
    board.bar(range(len(fit.names)), 1e3 * fit.flatness_m, color=PALETTE[2])
    board.set_title('corners in space against the board', fontsize=SMALL_SIZE)
    board.set_ylabel('rms miss [mm]')
    board.set_xlabel('pair, in the order below')
    alone = {'left alone': fit.left, 'right alone': fit.right}
    errors = {'both together': fit.errors_px}
    errors |= {name: one.errors_px for name, one in alone.items()}
    _draw_errors(axes['errors'], list(fit.names), errors, fit.outliers)
    for each in axes.values():
        each.tick_params(labelsize=SMALL_SIZE)
    return save(figure, path)


def _draw_coverage(
    axes: Any, name: str, size: tuple[int, int], seen: Mask, views: Sequence[BoardView]
) -> None:
    width, height = size
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    axes.imshow(seen, extent=extent, cmap='Greens', vmin=0.0, vmax=2.5, aspect='equal')
    for view in views:
        axes.plot(*view.pixels.T, '.', markersize=1.5, color=PALETTE[0])
    axes.set_title(
        f'{name}: corners in {int(seen.sum())} of {seen.size} cells '
        f'(wanted {int(np.ceil(fit_quality.LEAST_COVERAGE * seen.size))})',
        fontsize=SMALL_SIZE,
    )
    axes.set_xlabel('x [px]')
    axes.set_ylabel('y [px]')


def _draw_scatter(axes: Any, residuals: dict[str, Array]) -> None:
    for (name, each), colour in zip(residuals.items(), PALETTE):
        rms = np.sqrt((each**2).sum(axis=1).mean())
        axes.plot(*each.T, '.', markersize=2.0, color=colour, label=f'{name}: {rms:.3f} px rms')
    axes.set_aspect('equal', adjustable='datalim')
    axes.axhline(0.0, color='0.7', linewidth=0.5)
    axes.axvline(0.0, color='0.7', linewidth=0.5)
    axes.set_title('corners, seen less expected', fontsize=SMALL_SIZE)
    axes.set_xlabel('x [px]')
    axes.set_ylabel('y [px]')
    axes.legend(fontsize=SMALL_SIZE, loc='upper right')


def _draw_errors(
    axes: Any, names: list[str], errors: dict[str, Array], outliers: Sequence[str]
) -> None:
    places = np.arange(len(names))
    share = 0.8 / len(errors)
    for index, ((name, each), colour) in enumerate(zip(errors.items(), PALETTE)):
        offset = (index - 0.5 * (len(errors) - 1)) * share
        axes.bar(places + offset, each, share, color=colour, label=name)
    for place, name in zip(places, names):
        if name in outliers:
            axes.axvspan(place - 0.5, place + 0.5, color=PALETTE[4], alpha=0.25, zorder=0)
    title = 'rms error of each image'
    if outliers:
        title += '; marked: stand out, see --drop-outliers'
    axes.set_title(title, fontsize=SMALL_SIZE)
    axes.set_xticks(places, names, rotation=90 if len(names) > 8 else 0, fontsize=SMALL_SIZE)
    axes.set_ylabel('[px]')
    axes.set_ylim(0.0, 1.3 * max(float(each.max()) for each in errors.values()))
    axes.legend(fontsize=SMALL_SIZE, loc='upper right', ncols=len(errors))
