"""Notes about a recording that is probably in other units, or incomplete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from softarm_ros.cli.measured_run import ROUNDING_S, MeasuredRun
from softarm_ros.cli.prediction import BEYOND
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.recording import RecordingConfig
from softarm_ros.rigs.schema import Rig

_OTHER_LENGTH = 4.0  # times the length of the arm: beyond it, probably a mistaken unit
_AT_ORIGIN = 0.01  # of the length of the arm: below it, probably lengths in m read as mm
_OTHER_COMMAND = 0.0175  # of the range: below it, probably another unit; a radian for a degree
_FAR_COMMAND = 4.0  # times the range: beyond it, probably another unit
_OTHER_NORM = 0.1  # from 1: no quaternions, but other columns
_AWAY_DEG = 120.0  # from the resting arm in the median: probably another order or frame
_GAP = 10.0  # times the median time between rows
_SLOW_S = 1.0  # between rows of a moving arm: above it, probably a mistaken unit
_FAST_S = 2e-4  # between rows: below it, probably a mistaken unit


def suspicious_values(
    config: RecordingConfig, time_s: Array | None, seen: Mapping[str, Array]
) -> Iterator[str]:
    """Yield notes about suspicious times (n,) or points (n, 3), as recorded."""
    told_s = np.array([]) if time_s is None else time_s[np.isfinite(time_s)]
    if len(told_s) > 1 and config.settled_s == 0.0:
        step_s = float(np.median(np.diff(told_s)))
        if step_s >= _SLOW_S or 0.0 < step_s < _FAST_S:
            yield (
                f'rows are {step_s:g} s apart by {config.time} in {config.time_unit}; if that is '
                'another unit, name it in recording.time_unit'
            )
    for name, points in seen.items():
        lost = int(np.count_nonzero(np.all(points == 0.0, axis=1)))
        if 0 < lost < len(points):
            yield (
                f'{name} is at 0, 0, 0 in {lost} of {len(points)} rows; if it was not seen there, '
                'leave these fields empty'
            )


def other_lengths(rig: Rig, run: MeasuredRun, unit: str) -> Iterator[str]:
    """Yield a note if the points of a run do not fit the size of the arm in the stated unit."""
    length_m = rig.physics().rest_length_m
    far = [np.linalg.norm(points - run.mount.position, axis=1) for points in run.points.values()]
    far_m = max((float(np.max(d[np.isfinite(d)], initial=0.0)) for d in far), default=0.0)
    # Points a thousandth as far away lie at the origin; the mount's offset may hide this.
    all_m = [np.linalg.norm(points, axis=1) for points in run.points.values()]
    most_m = max((float(np.max(d[np.isfinite(d)], initial=0.0)) for d in all_m), default=0.0)
    place, seen_m = 'the mount', far_m
    if 0.0 < most_m < _AT_ORIGIN * length_m:
        place, seen_m = 'its origin', most_m
    if seen_m > 0.0 and not length_m / _OTHER_LENGTH < seen_m < length_m * _OTHER_LENGTH:
        yield (
            f'what was measured is at most {1e3 * seen_m:.3g} mm from {place} {unit}; the arm is '
            f'{1e3 * length_m:.3g} mm long'
        )


def other_turns(
    config: RecordingConfig, run: MeasuredRun, turns: Mapping[str, Array]
) -> Iterator[str]:
    """Yield notes about quaternions (n, 4) in another order, or in a frame unlike the mount's."""
    ahead = run.mount.rotation[:, 2]
    for name, quaternions in turns.items():
        norm = np.linalg.norm(quaternions, axis=1)
        norm = norm[np.isfinite(norm) & (norm > 0.0)]
        axes = run.axes[name][np.isfinite(run.axes[name]).all(axis=1)]
        if not len(norm) or not len(axes):
            continue
        length, columns = float(np.median(norm)), ', '.join(config.section_turns[name])
        away_deg = float(np.median(np.rad2deg(np.arccos(np.clip(axes @ ahead, -1.0, 1.0)))))
        if abs(length - 1.0) > _OTHER_NORM:
            yield (
                f'{columns} have the length {length:.3g} in the median; a quaternion has the '
                'length 1'
            )
        elif away_deg > _AWAY_DEG:
            yield (
                f'the z axis of {name} is turned by {away_deg:.0f} deg from '
                f'recording.mount.z_axis in the median; are {columns} x, y, z, w, and is '
                'the mount right?'
            )


def other_commands(rig: Rig, run: MeasuredRun, unit: str) -> Iterator[str]:
    """Yield a note if the commands of a run do not fit the actuators in the stated unit."""
    limits = rig.actuator_limits()
    most = np.maximum(np.abs(limits.position_min), np.abs(limits.position_max))
    share = float(np.max(np.abs(run.commands) / most, initial=0.0))
    if 0.0 < share < _OTHER_COMMAND or share > _FAR_COMMAND:
        yield f'commands reach {100 * share:.2g} % of what the actuators can {unit}'


def not_at_rest(rig: Rig, config: RecordingConfig, run: MeasuredRun) -> Iterator[str]:
    """Yield a note if commands relative to the first row fall below what actuators can do."""
    if config.command_zero != 'first_row':
        return
    commands, limits = run.asked, rig.actuator_limits()
    under = (limits.position_min - commands) / (limits.position_max - limits.position_min)
    rows = int(np.count_nonzero((under > BEYOND).any(axis=1)))
    if rows:
        i, k = np.unravel_index(np.argmax(under), under.shape)
        yield (
            f'commands of {rows} rows are below the range after those of the first row are '
            f'subtracted (recording.command_zero), {limits.names[k]} by '
            f'{limits.position_min[k] - commands[i, k]:.3g} {limits.unit}: expected a first row '
            'of the arm at rest; choose later rows by --rows, not by cutting the file'
        )


def missing_commands(config: RecordingConfig, run: MeasuredRun) -> Iterator[str]:
    """Yield notes about rows with commands in effect that the file does not contain."""
    if run.time_s is None or run.commanded is not None or config.settled_s > 0.0:
        return
    early = int(np.count_nonzero(run.time_s < run.time_s[0] + config.delay_s - ROUNDING_S))
    if np.ptp(run.commands[: early + 1], axis=0).any():  # else probably constant before
        yield (
            f'{early} rows are of the first {config.delay_s:g} s (recording.delay_s): what was '
            'commanded before is not recorded; the first command is used'
        )
    steps = np.diff(run.time_s)
    gaps = steps[steps > _GAP * np.median(steps)] if len(steps) else steps
    if len(gaps):
        yield (
            f'{len(gaps)} gaps of up to {gaps.max():.3g} s between rows: what was commanded there '
            'is not recorded, and interpolated'
        )
