"""Implements `softarm calibrate base --seen`: the base in the frame of a tracker."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.perception.base_calibration_file import read_base, too_far, write_base
from softarm_ros.perception.base_frame import base_from_points
from softarm_ros.perception.sensor import SensorError
from softarm_ros.perception.stereo.base_markers import read_markers

_LEAST_SPREAD_M = 1.0e-3  # of points on a base; those of a plate in metres, read as mm, are closer


def tracker_base(places: Path, seen: Path, output: Path) -> list[str]:
    """
    Fit the base to points on it, write the calibration, and return a report.

    Parameters
    ----------
    places, seen
        Files `name: [x, y, z]` in mm: the points in the base frame, and as the tracker measures
        them.
    output
        Calibration file of a tracker; another file of this name is not replaced.

    Raises
    ------
    UsageError
        If the points of both files differ, do not fit, or are too close or too far to be in mm.

    """
    known, measured = read_markers(places), read_markers(seen)
    if alone := sorted(known.keys() ^ measured.keys()):
        raise UsageError(
            f'{places} and {seen}: expected the same points: only one of them has '
            f'{", ".join(alone)}'
        )
    if output.exists():
        try:
            read_base(output)
        except SensorError as error:
            raise UsageError(
                f'--output {output}: is not replaced, because it is no calibration of a tracker: '
                f'{error}'
            ) from None
    on_base, points = (np.array([found[name] for name in known]) for found in (known, measured))
    spread = float(np.sqrt(np.mean(np.sum((on_base - on_base.mean(axis=0)) ** 2, axis=1))))
    if spread < _LEAST_SPREAD_M:
        raise UsageError(
            f'{places}: the points are {1e3 * spread:.3g} mm (rms) from their middle (limit '
            f'{1e3 * _LEAST_SPREAD_M:g} mm): expected points spread over the base, in mm'
        )
    try:
        fit = base_from_points(points, on_base)
    except ValueError as error:
        raise UsageError(f'{places} and {seen}: {error}; both files are in mm') from None
    misses = points - (on_base @ fit.pose[:3, :3].T + fit.pose[:3, 3])
    if far := too_far(fit.pose):
        raise UsageError(f'{seen}: {far}')
    write_base(output, fit)
    x, y, z = 1e3 * fit.pose[:3, 3]
    sd = np.sqrt(np.diag(fit.covariance))
    return [
        *(f'{n}: {1e3 * float(np.linalg.norm(miss)):.2f} mm' for n, miss in zip(known, misses)),
        f'base: {1e3 * fit.rms_m:.2f} mm rms, at {x:.1f}, {y:.1f}, {z:.1f} mm of the tracker, +- '
        f'{1e3 * sd[:3].max():.2f} mm and {np.degrees(sd[3:].max()):.2f} deg',
        f'calibration: {output}',
    ]
