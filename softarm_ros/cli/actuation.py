"""Actuation of a recorded arm: measured actuator positions, or else commands in effect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.recording import RecordingConfig

_LONGEST_HOLD = (
    1.5  # times the median interval between readings; for longer, the actuator is at rest
)


def joined(time_s: Array | None, readings: Array) -> Array:
    """
    Interpolate readings (n, m) that are held until the next reading.

    Encoders are often read less frequently than rows are written. A held reading is late by half
    an interval on average, which matters for a fast arm. A value held for longer than the usual
    interval is that of an actuator at rest: it stays until one interval before the next value.
    """
    if time_s is None or len(time_s) < 2:
        return readings
    new = np.flatnonzero(np.r_[True, np.any(np.diff(readings, axis=0) != 0.0, axis=1)])
    if len(new) < 3:
        return readings
    interval = float(np.median(np.diff(time_s[new])))
    at, rows = [float(time_s[0])], [0]
    for before, row in pairwise(new.tolist()):
        if time_s[row] - time_s[before] > _LONGEST_HOLD * interval:
            at.append(time_s[row] - interval)
            rows.append(before)
        at.append(time_s[row])
        rows.append(row)
    return np.stack([np.interp(time_s, at, column[rows]) for column in readings.T], axis=1)


def shares_reached(config: RecordingConfig, names: Sequence[str]) -> Array:
    """Return the share (m,) of its command that each actuator reaches; 1 by default."""
    return np.array([config.reached.get(name, 1.0) for name in names])
