"""Commands and measurements of an arm, from a CSV file or a bag, in SI units."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.actuation import joined, shares_reached
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.field_values import values_of, with_values
from softarm_ros.rigs.recording import (
    COMMAND_UNITS,
    LENGTH_UNITS,
    TIME_UNITS,
    MarkerConfig,
    RecordingConfig,
)
from softarm_ros.rigs.schema import Rig

Rows = NDArray[np.int64]


FLIP_RAD = np.deg2rad(60.0)
_ROUNDING_S = 1e-6
_OTHER_LENGTH = 4.0  # times the length of the arm: beyond it, probably a mistaken unit
_AT_ORIGIN = 0.01  # of the length of the arm: below it, probably lengths in m read as mm
_OTHER_COMMAND = 0.0175  # of the range: below it, probably another unit; a radian for a degree
_FAR_COMMAND = 4.0  # times the range: beyond it, probably another unit
_GAP = 10.0  # times the median time between rows
_SLOW_S = 1.0  # between rows of a moving arm: above it, probably a mistaken unit
_FAST_S = 2e-4  # between rows: below it, probably a mistaken unit
_LARGEST = 1e100  # larger numbers are marks of a missing reading, and their squares overflow


class MeasurementError(UsageError):
    """Measurements cannot be read; the message names the file, column or topic, and the error."""


@dataclass(frozen=True)
class Mount:
    """Pose of the base frame in the measurement frame: `position` (3,) [m], `rotation` (3, 3)."""

    position: Array
    rotation: Array


@dataclass(frozen=True)
class Followed:
    """
    Commands at all times of a file, including those without measurements.

    Attributes
    ----------
    time_s : (k,)
        Increasing times.
    commands : (k, m)
        As recorded, in SI units of the actuators; measured positions if the file has them.
    commanded : (k, m), optional
        Actuator commands, if `commands` holds measured positions.
    rows : (n,)
        Indices of the rows of the run among these times.

    """

    time_s: Array
    commands: Array
    commanded: Array | None
    rows: Rows


@dataclass(frozen=True)
class MeasuredRun:
    """
    Measurements of one file or bag.

    Attributes
    ----------
    source : str
        Name of the file.
    time_s : (n,), optional
        Times of the rows; None if rows are poses at rest.
    commands : (n, m)
        Actuation in effect at each row, in SI units of the actuators: measured positions, or
        commands with the delay and the shares reached applied.
    commanded : (n, m), optional
        Commands at each row, if `commands` holds measured positions.
    points : dict of (n, 3)
        Measured positions [m] by name.
    places : dict of MarkerConfig
        Places of these points on the arm.
    axes : dict of (n, 3)
        Measured z axes of section tips, unit vectors; NaN where markers were mistaken.
    mount : Mount
        Mount of the arm in the measurement frame.
    notes : tuple of str
        Notes about rows left out, and other remarks.
    tip_force : (n, 3), optional
        Measured force [N], in the frame of the tip.
    remembered : (n, f), optional
        Features of the past commands, if the rig has a residual.
    lagging : (n, f), optional
        States of the actuators' hysteresis, if the rig has some (`Hysteresis.remembered`).
    in_base : bool
        Whether measurements are in the base frame regardless of the rig's `recording`: those of a
        bag or a file of `softarm excite` are.
    around : dict of float
        Fields of the rig stated by the file: tip weight and gravity in the base frame.
    followed : Followed, optional
        Commands at all times of a file, if the run has only some of its rows: delay and memory
        depend on the commands in between.

    """

    source: str
    time_s: Array | None
    commands: Array
    points: dict[str, Array]
    places: dict[str, MarkerConfig]
    axes: dict[str, Array]
    mount: Mount
    notes: tuple[str, ...] = ()
    tip_force: Array | None = None
    remembered: Array | None = None
    lagging: Array | None = None
    in_base: bool = False
    around: dict[str, float] = field(default_factory=dict)
    commanded: Array | None = None
    followed: Followed | None = None

    def __len__(self) -> int:
        return len(self.commands)

    def as_it_was(self, rig: Rig) -> Rig:
        """
        Return the rig with the tip weight and the gravity of this run.

        Raises
        ------
        MeasurementError
            If a tip weight is stated although the measured tip force already includes it.

        """
        if values_of(rig, list(self.around)) != self.around:
            rig = with_values(rig, self.around)
        if self.tip_force is not None and rig.tip_load_kg > 0.0:
            raise MeasurementError(
                f'{self.source}: tip_load_kg = {rig.tip_load_kg:g} beside a measured force on the '
                'tip (recording.tip_force), which has this weight, too: it would count twice; '
                'expected 0 (FILE:tip_load_kg=0), and a first row without the weight'
            )
        return rig

    def rows(self, chosen: Rows, *notes: str) -> MeasuredRun:
        """Return the run with the chosen rows only, and with additional notes."""
        return replace(
            self,
            time_s=None if self.time_s is None else self.time_s[chosen],
            commands=self.commands[chosen],
            points={name: values[chosen] for name, values in self.points.items()},
            axes={name: values[chosen] for name, values in self.axes.items()},
            notes=(*self.notes, *notes),
            tip_force=None if self.tip_force is None else self.tip_force[chosen],
            remembered=None if self.remembered is None else self.remembered[chosen],
            lagging=None if self.lagging is None else self.lagging[chosen],
            commanded=None if self.commanded is None else self.commanded[chosen],
            followed=None
            if self.followed is None
            else replace(self.followed, rows=self.followed.rows[chosen]),
        )


def with_memory(rig: Rig, run: MeasuredRun) -> MeasuredRun:
    """Return a run, its commands as recorded, with the memory of residual and hysteresis."""
    residual, hysteresis = rig.learned_residual(), rig.operator()
    commands, time, rows = commands_followed(rig, run)
    if hysteresis is not None and time is not None:
        run = replace(run, lagging=hysteresis.remembered(commands, time)[rows])
    if residual is None:
        return run
    return replace(run, remembered=residual.remembered(commands, time)[rows])


def commands_followed(rig: Rig, run: MeasuredRun) -> tuple[Array, Array | None, Rows]:
    """Return commands in effect (k, m), their times (k,), and the indices of the run's rows."""
    told = run.followed
    if told is None:
        return in_effect(rig, run).commands, run.time_s, np.arange(len(run))
    every = replace(
        run,
        time_s=told.time_s,
        commands=told.commands,
        commanded=told.commanded,
        followed=replace(told, rows=np.arange(len(told.time_s))),
    )
    return in_effect(rig, every).commands, told.time_s, told.rows


def read_csv_run(rig: Rig, path: Path) -> MeasuredRun:
    """Return the measurements of a CSV file; see `read_run`."""
    table, config = _Table(path), rig.recording
    if config is None:
        raise MeasurementError(
            f'rig {rig.name!r} has no block `recording` that says how {path.name} is read '
            '(docs/recording.md)'
        )
    commands = table.columns([config.commands[name] for name in rig.actuator_names])
    measured, notes = _measured(rig, config, table)
    # A file of poses at rest may have no time column.
    timed = config.time is not None and (config.settled_s > 0.0 or table.has([config.time]))
    time = table.columns([str(config.time)])[:, 0] if timed else None
    if time is not None:
        time = TIME_UNITS[config.time_unit] * time
        if not np.isfinite(time).any():
            raise MeasurementError(
                f'{path}: {config.time} is empty in all rows; a file of poses at rest has no such '
                'column'
            )
    scale = LENGTH_UNITS[config.length_unit]
    origin = 0.0 if config.origin is None else table.columns(config.origin)
    places = {
        **{
            name: MarkerConfig(columns=columns, section=name)
            for name, columns in config.section_tips.items()
        },
        **config.markers,
    }
    seen = {name: table.columns(place.columns) for name, place in places.items()}
    points = {name: scale * (values - origin) for name, values in seen.items()}
    turns = {name: table.columns(columns) for name, columns in config.section_turns.items()}
    run = MeasuredRun(
        path.name,
        time,
        commands if measured is None else measured,
        points,
        places,
        {name: z_axes(quaternions) for name, quaternions in turns.items()},
        mount_of(config),
        notes=(
            *notes,
            *([f'no {config.time}: poses at rest'] if config.time and not timed else []),
            *_suspect(config, time, seen),
            *_without_force(table, config),
        ),
        tip_force=_force(table, config, path),
        commanded=None if measured is None else commands,
    )
    run, lacking = _told(run, config.time)
    as_recorded = run.commands
    run = replace(run, commands=_si_commands(rig, config, run.commands, path))
    if run.commanded is not None:
        commanded = _si_commands(rig, config, run.commanded, path)
        run = replace(run, commands=joined(run.time_s, run.commands), commanded=commanded)
    units = (
        *other_lengths(rig, run, f'by recording.length_unit = {config.length_unit}'),
        *other_commands(rig, run, f'by recording.command_unit = {config.command_unit}'),
    )
    run = replace(run, notes=(*run.notes, *units, *_not_told(config, run)))
    stands = _settled(rig, config, run, path)
    if run.time_s is not None:
        every = np.arange(len(run))
        run = replace(run, followed=Followed(run.time_s, run.commands, run.commanded, every))
    complete = _complete(run)
    gone = lacking + len(run) - len(complete)
    run = run.rows(complete, *([f'left out: {gone} incomplete rows'] if gone else []))
    run, settled = without_flips(run), np.flatnonzero(stands[complete])
    if not len(settled):
        since_s = 0.0 if run.time_s is None else float(run.time_s[-1] - run.time_s[0])
        most = ', '.join(f'{c:.3g}' for c in np.max(np.abs(as_recorded), axis=0))
        raise MeasurementError(
            f'{path.name}: the commands stand within recording.settled_within = '
            f'{config.settled_within:g} {config.command_unit} for recording.settled_s = '
            f'{config.settled_s:g} s nowhere; the file lasts {since_s:.3g} s, its commands '
            f'are up to {most}'
        )
    return in_effect(rig, with_memory(rig, run)).rows(
        settled,
        *([f'left out: {len(run) - len(settled)} rows not settled'] if config.settled_s else []),
    )


def _measured(
    rig: Rig, config: RecordingConfig, table: _Table
) -> tuple[Array | None, tuple[str, ...]]:
    """Return measured actuator positions (n, m), or None if the file has none, and notes."""
    columns = [config.measured[name] for name in rig.actuator_names if config.measured]
    if not columns:
        return None, ()
    if not table.has(columns):
        return None, (f'no {", ".join(columns)}: actuators as commanded',)
    return table.columns(columns), (f'actuators as measured: {", ".join(columns)}',)


def _force(table: _Table, config: RecordingConfig, path: Path) -> Array | None:
    """Return the force on the tip (n, 3) [N] without its bias, or None if the file has none."""
    if config.tip_force is None or not table.has(config.tip_force):
        return None
    force = table.columns(config.tip_force)
    empty = [name for name, first in zip(config.tip_force, force[0]) if not np.isfinite(first)]
    if empty:
        raise MeasurementError(
            f'{path}: {", ".join(empty)} of the first row: empty; expected the bias of the '
            'sensor, which is subtracted from all rows (recording.tip_force)'
        )
    return np.asarray(force - force[0])


def _without_force(table: _Table, config: RecordingConfig) -> Iterator[str]:
    """Yield a note if a file has only some of the columns of the force on the tip."""
    missing = [name for name in config.tip_force or () if not table.has([name])]
    if missing and len(missing) < len(config.tip_force or ()):
        yield f'no {", ".join(missing)}: force on the tip not taken into account'


def mount_of(config: RecordingConfig) -> Mount:
    """Return the mount of the arm in the measurement frame."""
    z = np.asarray(config.mount.z_axis, dtype=float)
    z = z / np.linalg.norm(z)
    x = np.asarray(config.mount.x_axis, dtype=float)
    x = x - (x @ z) * z
    x = x / np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z], axis=1)
    return Mount(np.asarray(config.mount.position_m, dtype=float), rotation)


class _Table:
    """
    A CSV file with a heading; empty cells and `nan` are missing values, empty lines are skipped.

    Cells are kept as numbers: text would take fifteen times the file's size in memory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._heading: list[str] = []
        self._columns: list[array[float]] = []
        self._no_number: dict[int, tuple[int, str]] = {}  # first bad line and cell by column
        try:
            with path.open(newline='', encoding='utf-8-sig') as file:
                reader = csv.reader(file, skipinitialspace=True)
                for row in reader:
                    if row and self._heading:
                        self._add(reader.line_num, row)
                    elif row:
                        self._begin(row)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise MeasurementError(f'{path}: cannot be read ({error})') from None
        if not len(self):
            raise MeasurementError(f'{path}: expected a heading and rows of numbers')

    def _begin(self, heading: list[str]) -> None:
        self._heading = [name.strip() for name in heading]
        if len(heading) == 1 and re.search('[;\t]', heading[0]):
            raise MeasurementError(
                f'{self._path}: the heading is {heading[0]!r}: expected cells divided by commas, '
                'and points in numbers'
            )
        self._columns = [array('d') for _ in heading]

    def _add(self, line: int, row: list[str]) -> None:
        width = len(self._heading)
        if any(cell.strip() for cell in row[width:]):
            # A comma in a number, or a first column without a name, would shift the cells.
            raise MeasurementError(
                f'{self._path}:{line}: {len(row)} cells; expected {width}, as the heading has'
            )
        for index, column in enumerate(self._columns):
            text = row[index].strip() if index < len(row) else ''
            try:
                column.append(float(text) if text else math.nan)
            except ValueError:
                column.append(math.nan)
                self._no_number.setdefault(index, (line, text))

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    def has(self, names: Sequence[str]) -> bool:
        """Return whether all of these columns exist."""
        return set(names) <= set(self._heading)

    def columns(self, names: Sequence[str]) -> Array:
        """Return columns (n, k) by their names."""
        missing = [name for name in names if name not in self._heading]
        if missing:
            raise MeasurementError(
                f'{self._path}: no column {", ".join(missing)}; there are '
                f'{", ".join(self._heading)}'
            )
        several = sorted({name for name in names if self._heading.count(name) > 1})
        if several:
            raise MeasurementError(
                f'{self._path}: several columns {", ".join(several)}: expected one of each name'
            )
        return np.stack([self._column(name) for name in names], axis=1)

    def _column(self, name: str) -> Array:
        index = self._heading.index(name)
        if index in self._no_number:
            line, text = self._no_number[index]
            raise MeasurementError(f'{self._path}:{line}: {name} = {text!r}: expected a number')
        values = np.array(self._columns[index])
        beyond = np.flatnonzero(np.isfinite(values) & (np.abs(values) > _LARGEST))
        if len(beyond):
            raise MeasurementError(
                f'{self._path}: {name} = {values[beyond[0]]:g} at row {beyond[0]} (the first is '
                f'0): expected at most {_LARGEST:g}; leave a field empty that was not measured'
            )
        return values


def _not_told(config: RecordingConfig, run: MeasuredRun) -> Iterator[str]:
    """Yield notes about rows with commands in effect that the file does not contain."""
    if run.time_s is None or run.commanded is not None or config.settled_s > 0.0:
        return
    early = int(np.count_nonzero(run.time_s < run.time_s[0] + config.delay_s - _ROUNDING_S))
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


def _suspect(
    config: RecordingConfig, time_s: Array | None, seen: Mapping[str, Array]
) -> Iterator[str]:
    """Yield notes about suspicious times (n,) or points (n, 3), as recorded."""
    if time_s is not None and len(time_s) > 1 and config.settled_s == 0.0:
        step_s = float(np.nanmedian(np.diff(time_s)))
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


def other_commands(rig: Rig, run: MeasuredRun, unit: str) -> Iterator[str]:
    """Yield a note if the commands of a run do not fit the actuators in the stated unit."""
    limits = rig.actuator_limits()
    most = np.maximum(np.abs(limits.position_min), np.abs(limits.position_max))
    share = float(np.max(np.abs(run.commands) / most, initial=0.0))
    if 0.0 < share < _OTHER_COMMAND or share > _FAR_COMMAND:
        yield f'commands reach {100 * share:.2g} % of what the actuators can {unit}'


def _told(run: MeasuredRun, column: str | None) -> tuple[MeasuredRun, int]:
    """
    Return the rows with commands and increasing times, and the number of incomplete rows.

    The first of several rows with the same time is kept: programs repeat a row until there is a
    new one.
    """
    parts = [run.commands, *([] if run.commanded is None else [run.commanded])]
    whole = np.all([np.isfinite(part).all(axis=1) for part in parts], axis=0)
    if run.time_s is not None:
        whole &= np.isfinite(run.time_s)
    kept = np.flatnonzero(whole)
    if not len(kept):
        raise _none_whole(run)
    if run.time_s is None:
        return run.rows(kept), len(run) - len(kept)
    time = run.time_s[kept]
    step = np.diff(time)
    if np.any(step < 0.0):
        before, row = kept[[first := int(np.argmax(step < 0.0)), first + 1]]
        raise MeasurementError(
            f'{run.source}: {column} goes back from {run.time_s[before]:.12g} to '
            f'{run.time_s[row]:.12g} s at row {row} (the first is 0); expected times that '
            'increase: divide the file there, if it has several runs'
        )
    again = int(np.count_nonzero(step == 0.0))
    told = run.rows(
        kept[np.r_[True, step > 0.0]],
        *([f'left out: {again} rows of the same {column} as the row before'] if again else []),
    )
    return told, len(run) - len(kept)


def _none_whole(run: MeasuredRun) -> MeasurementError:
    """Return the error for a run without a complete row; it counts the rows with each quantity."""
    parts = {
        'time': run.time_s,
        'commands': run.commands,
        'commands beside measured actuators': run.commanded,
        **run.points,
        **{f'axis of {name}': values for name, values in run.axes.items()},
        'tip force': run.tip_force,
    }
    counts = [
        f'{name} {np.count_nonzero(np.isfinite(values.reshape(len(run), -1)).all(axis=1))}'
        for name, values in parts.items()
        if values is not None
    ]
    return MeasurementError(
        f'{run.source}: no row is complete; of {len(run)} rows, there are numbers for '
        f'{", ".join(counts)}'
    )


def _complete(run: MeasuredRun) -> Rows:
    """Return the rows in which all quantities were measured."""
    parts = [*run.points.values(), *run.axes.values()]
    parts += [] if run.tip_force is None else [run.tip_force]
    whole = np.flatnonzero(np.all([np.isfinite(part).all(axis=1) for part in parts], axis=0))
    if not len(whole):
        raise _none_whole(run)
    return whole


def without_flips(run: MeasuredRun) -> MeasuredRun:
    """Return the run with NaN for axes that jump: the tracking system confused markers."""
    if run.time_s is None:
        return run
    axes, notes = {}, []
    for name, measured in run.axes.items():
        kept, first = measured.copy(), _usual(measured)
        for way in (range(first, len(measured)), range(first, -1, -1)):
            last = measured[first]
            for i in way:
                if measured[i] @ last < np.cos(FLIP_RAD):
                    kept[i] = np.nan
                else:
                    last = measured[i]
        axes[name] = kept
        flipped = int(np.isnan(kept[:, 0]).sum())
        if flipped:
            notes.append(
                f'left out: {flipped} axes of {name}, turned by more than '
                f'{np.rad2deg(FLIP_RAD):.0f} deg at once'
            )
    return replace(run, axes=axes, notes=(*run.notes, *notes))


def _usual(axes: Array) -> int:
    """Return the index of the first of the axes (n, 3) that is near the median axis, or 0."""
    middle = np.median(axes, axis=0)
    return int(np.argmax(axes @ middle > 0.0))


def _si_commands(rig: Rig, config: RecordingConfig, commands: Array, path: Path) -> Array:
    """Return commands (n, m) in the SI unit of the actuators."""
    unit = rig.actuator_limits().unit
    if config.command_unit in ('deg', 'rad'):
        radii = [getattr(actuator, 'pulley_radius_m', None) for actuator in rig.actuators]
        if None in radii:
            raise MeasurementError(
                f'{path.name}: recording.command_unit = {config.command_unit!r} needs a '
                'pulley_radius_m of every actuator'
            )
        factor = np.array(radii, dtype=float)
        factor = np.deg2rad(factor) if config.command_unit == 'deg' else factor
    else:
        known = COMMAND_UNITS.get(unit, {unit: 1.0})
        if config.command_unit not in known:
            raise MeasurementError(
                f'recording.command_unit = {config.command_unit!r}: expected one of '
                f'{", ".join(known)} for actuators in {unit}'
            )
        factor = np.full(commands.shape[1], known[config.command_unit])
    zero = commands[0] if config.command_zero == 'first_row' else 0.0
    return np.asarray((commands - zero) * factor)


def in_effect(rig: Rig, run: MeasuredRun) -> MeasuredRun:
    """
    Return the run with the commands in effect at each row, by the rig's `recording`.

    Measured actuator positions, and runs in the base frame, are returned unchanged.
    """
    config = rig.recording
    if config is None or run.in_base or run.commanded is not None:
        return run
    time, told, commands = run.time_s, run.commands, run.commands
    if run.followed is not None:
        time, told = run.followed.time_s, run.followed.commands
        commands = told[run.followed.rows]
    if run.time_s is not None and time is not None and config.delay_s != 0.0:
        at = run.time_s - config.delay_s
        commands = np.stack([np.interp(at, time, column) for column in told.T], axis=1)
    return replace(run, commands=shares_reached(config, rig.actuator_names) * commands)


def _settled(rig: Rig, config: RecordingConfig, run: MeasuredRun, path: Path) -> NDArray[np.bool_]:
    """Return for each row (n,) whether the commands had been constant for `settled_s`."""
    if config.settled_s == 0.0 or run.time_s is None:
        return np.ones(len(run), dtype=bool)
    within = _si_commands(
        rig,
        config.model_copy(update={'command_zero': 'as_recorded'}),
        np.full((1, run.commands.shape[1]), config.settled_within),
        path,
    )[0]
    begin = run.time_s - config.settled_s
    # Index of the row with the command in effect at `begin`.
    first = np.searchsorted(run.time_s, begin + _ROUNDING_S, side='right') - 1
    commands = run.commands if run.commanded is None else run.commanded
    stands = [
        bool(start >= 0 and np.all(np.abs(commands[i] - commands[start : i + 1]) <= within))
        for i, start in enumerate(first)
    ]
    return np.array(stands)


def measured_axes(
    sections: Sequence[str], quaternions: Array
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """
    Return the z axes (n, 3) of sections from quaternions (n, sections, 4), and notes.

    A section without an orientation in any row, such as a tip measured as a point, has no axes.
    """
    axes = {name: z_axes(quaternions[:, k]) for k, name in enumerate(sections)}
    without = [name for name, values in axes.items() if not np.isfinite(values).any()]
    notes = (f'no orientation of {", ".join(without)} was measured',) if without else ()
    return {name: values for name, values in axes.items() if name not in without}, notes


def z_axes(quaternions: Array) -> Array:
    """Return the z axes (n, 3) of rotations given as quaternions (n, 4), x, y, z, w."""
    norm = np.linalg.norm(quaternions, axis=1, keepdims=True)
    with np.errstate(invalid='ignore', divide='ignore'):
        x, y, z, w = (quaternions / norm).T
    return np.stack(
        [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], axis=1
    )
