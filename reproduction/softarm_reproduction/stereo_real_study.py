"""
Calibrate from real stereo images, assess the fit, and measure two markers on a moving disk.

    python -m softarm_reproduction.stereo_real_study DATA_DIR

DATA_DIR holds `calib/left_NN.png` and `calib/right_NN.png` (chessboard, 9 by 6 inner corners of
5.5 mm) and the tracks `T1_medianResults.csv`, `T1_raw.csv`: github
rasdm/A-Quantitative-Comparison-of-Analytical-Models-for-Helical-Tendon-Driven-Continuum-Robots,
Apache-2.0. Its authors state a baseline of 72.99 mm.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softarm_reproduction.data_folder import folder_of
from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.calibrate_stereo import StereoFit, calibrate_stereo
from softarm_ros.perception.stereo.camera import Mask
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.collect import matched_files
from softarm_ros.perception.stereo.images import grey, opencv, read_image
from softarm_ros.perception.stereo.triangulation import triangulate

BOARD = Board('chessboard', 9, 6, 5.5e-3)
SOURCE_BASELINE_MM = 72.99
SIZE = (840, 600)
# Standard deviation of clicked or tracked markers, by which their misfit is judged.
MARKER_SD_PX = 1.0
GATE = 10.83
USUAL_WINDOW_PX = 11


@dataclass(frozen=True)
class Track:
    """Two markers over n images: distance [mm], misfit [px], and a mask of plausible images."""

    distance_mm: Array
    misfit_px: Array
    good: Mask


def corner_pairs(data: Path, window_px: int | None = None) -> list[tuple[BoardView, BoardView]]:
    """Return the corners of every pair, refined in the default window or in `window_px`."""
    pairs = []
    for name, files in matched_files([str(data / f'calib/{s}_*.png') for s in ('left', 'right')]):
        images = [grey(read_image(file)) for file in files]
        views = [BOARD.find(image, name) for image in images]
        if window_px is not None:
            cv2 = opencv()
            stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 100, 1e-4)
            views = [
                None
                if view is None
                else BoardView(
                    name,
                    view.ids,
                    cv2.cornerSubPix(
                        image,
                        view.pixels.astype(np.float32).reshape(-1, 1, 2),
                        (window_px, window_px),
                        (-1, -1),
                        stop,
                    )
                    .reshape(-1, 2)
                    .astype(np.float64),
                )
                for view, image in zip(views, images)
            ]
        if views[0] is not None and views[1] is not None:
            pairs.append((views[0], views[1]))
    return pairs


def fitted(pairs: Sequence[tuple[BoardView, BoardView]]) -> StereoFit:
    """Return the stereo calibration of the pairs."""
    return calibrate_stereo(BOARD, pairs, (SIZE, SIZE))


def held(fit: StereoFit, pairs: Sequence[tuple[BoardView, BoardView]]) -> float:
    """Return the baseline [m] with each camera's lens fixed at the fit to its own images."""
    lenses = (fit.left.camera, fit.right.camera)
    return calibrate_stereo(BOARD, pairs, (SIZE, SIZE), lenses=lenses).cameras.baseline_m


def track(cameras: StereoCameras, file: Path) -> Track:
    """Return the track of two markers from rows Lx1,Ly1,Lx2,Ly2,Rx1,Ry1,Rx2,Ry2."""
    rows = np.genfromtxt(file, delimiter=',', skip_header=1)
    spread = np.broadcast_to(MARKER_SD_PX**2 * np.eye(2), (len(rows), 2, 2))
    first, second = (
        triangulate(cameras, rows[:, k : k + 2], rows[:, k + 4 : k + 6], spread, spread)
        for k in (0, 2)
    )
    misfit = np.maximum(first.misfit, second.misfit)
    return Track(
        1e3 * np.linalg.norm(first.points - second.points, axis=1),
        MARKER_SD_PX * np.sqrt(misfit),
        np.nan_to_num(misfit, nan=np.inf) < GATE,
    )


def left_out(pairs: Sequence[tuple[BoardView, BoardView]]) -> Array:
    """Return the baselines (n,) [mm] with each pair left out in turn."""
    return np.array(
        [
            1e3 * fitted([p for k, p in enumerate(pairs) if k != n]).cameras.baseline_m
            for n in range(len(pairs))
        ]
    )


def report(data: Path) -> list[str]:
    """Return the lines of the report."""
    pairs = corner_pairs(data)
    fit = fitted(pairs)
    usual_pairs = corner_pairs(data, USUAL_WINDOW_PX)
    usual = fitted(usual_pairs)
    without = left_out(pairs)
    count = len(without)
    jackknife = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    lines = [f'{len(pairs)} pairs', '', 'corners refined within        their own squares   11 px']
    for what, ours, theirs in (
        ('left alone, rms', fit.left.rms_px, usual.left.rms_px),
        ('right alone, rms', fit.right.rms_px, usual.right.rms_px),
        ('both together, rms', fit.rms_px, usual.rms_px),
        ('worst pair', fit.errors_px.max(), usual.errors_px.max()),
    ):
        lines.append(f'{what:28s}  {ours:8.3f} px         {theirs:8.3f} px')
    ours, theirs = (1e3 * f.cameras.baseline_m for f in (fit, usual))
    lines += [
        f'{"baseline":28s}  {ours:8.2f} mm         {theirs:8.2f} mm'
        f'   (source: {SOURCE_BASELINE_MM})',
        f'{"  lenses fixed, as usual":28s}  {1e3 * held(fit, pairs):8.2f} mm         '
        f'{1e3 * held(usual, usual_pairs):8.2f} mm',
        f'{"  its standard deviation":28s}  {jackknife:8.2f} mm (each pair left out in turn)',
        f'pairs that stand out          {list(fit.outliers) or "none"}        '
        f'{list(usual.outliers)}',
        f'corners in space, off board   {1e3 * np.sqrt((fit.flatness_m**2).mean()):8.3f} mm rms',
        *(f'warning: {text}' for text in fit.warnings),
        '',
        'distance of the two markers     images  no marker      mean [mm]   sd [mm]',
    ]
    for name in ('T1_medianResults.csv', 'T1_raw.csv'):
        seen = track(fit.cameras, data / name)
        good = seen.distance_mm[seen.good]
        lines.append(
            f'{name:28s}  {len(seen.good):8d}  {int((~seen.good).sum()):12d}  {good.mean():10.2f}'
            f'  {good.std(ddof=1):8.2f}'
        )
    return lines


def main() -> None:
    """Print the report."""
    if len(sys.argv) != 2:
        sys.exit('usage: python -m softarm_reproduction.stereo_real_study DATA_DIR')
    folder = folder_of(Path(sys.argv[1]), 'aarhus_stereo_tendon', 'calib/left_*.png')
    print('\n'.join(report(folder)))


if __name__ == '__main__':
    main()
