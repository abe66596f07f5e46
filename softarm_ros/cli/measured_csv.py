"""Commands and measurements of an arm, from a CSV file that `recording` describes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.actuation import joined
from softarm_ros.cli.csv_table import CsvTable
from softarm_ros.cli.measured_run import (
    ROUNDING_S,
    Followed,
    MeasuredRun,
    MeasurementError,
    Rows,
    in_effect,
    mount_of,
    with_memory,
    without_flips,
    z_axes,
)
from softarm_ros.cli.recording_warnings import (
    missing_commands,
    not_at_rest,
    other_commands,
    other_lengths,
    other_turns,
    suspicious_values,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.recording import (
    COMMAND_UNITS,
    LENGTH_UNITS,
    TIME_UNITS,
    MarkerConfig,
    RecordingConfig,
)
from softarm_ros.rigs.schema import Rig


def read_csv_run(rig: Rig, path: Path) -> MeasuredRun:
    """Return the measurements of a CSV file; see `read_run`."""
    table, config = CsvTable(path), rig.recording
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
            *suspicious_values(config, time, seen),
            *_without_force(table, config),
        ),
        tip_force=_force(table, config, path),
        commanded=None if measured is None else commands,
    )
    run = replace(run, notes=(*run.notes, *other_turns(config, run, turns)))
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
    told = (*units, *not_at_rest(rig, config, run), *missing_commands(config, run))
    run = replace(run, notes=(*run.notes, *told))
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
    rig: Rig, config: RecordingConfig, table: CsvTable
) -> tuple[Array | None, tuple[str, ...]]:
    """Return measured actuator positions (n, m), or None if the file has none, and notes."""
    columns = [config.measured[name] for name in rig.actuator_names if config.measured]
    if not columns:
        return None, ()
    missing = table.missing(columns)
    if missing:
        return None, (f'no {", ".join(missing)}: actuators as commanded',)
    return table.columns(columns), (f'actuators as measured: {", ".join(columns)}',)


def _force(table: CsvTable, config: RecordingConfig, path: Path) -> Array | None:
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


def _without_force(table: CsvTable, config: RecordingConfig) -> Iterator[str]:
    """Yield a note if a file lacks columns of the force on the tip."""
    missing = table.missing(config.tip_force or ())
    if missing:
        yield f'no {", ".join(missing)}: force on the tip not taken into account'


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
    first = np.searchsorted(run.time_s, begin + ROUNDING_S, side='right') - 1
    commands = run.asked
    stands = [
        bool(start >= 0 and np.all(np.abs(commands[i] - commands[start : i + 1]) <= within))
        for i, start in enumerate(first)
    ]
    return np.array(stands)
