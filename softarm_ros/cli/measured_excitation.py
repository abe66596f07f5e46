"""
Files of `softarm excite`: commands and section tips in the base frame.

They state the tip weight and the gravity in the base frame, by the names of the rig's fields.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from softarm_ros.cli.cli_errors import number_of
from softarm_ros.cli.csv_table import cell_text
from softarm_ros.cli.measured_run import (
    MeasuredRun,
    MeasurementError,
    Mount,
    measured_axes,
)
from softarm_ros.cli.recording_warnings import other_commands, other_lengths
from softarm_ros.control.excited_rows import ExcitedRows
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.recording import MarkerConfig
from softarm_ros.rigs.schema import Rig
from softarm_ros.whole_file import whole_file

AROUND = ('tip_load_kg', *(f'gravity_m_s2[{i}]' for i in range(3)))
_POSE = ('x_m', 'y_m', 'z_m', 'qx', 'qy', 'qz', 'qw')


def heading_of(rig: Rig, sections: Sequence[str]) -> list[str]:
    """Return the columns of a rig's file with these sections; times are empty for rest poses."""
    unit = rig.actuator_limits().unit
    return [
        'time_s',
        *AROUND,
        *(f'{name} command_{unit}' for name in rig.actuator_names),
        *(f'{name} {part}' for name in sections for part in _POSE),
    ]


def sections_seen(rig: Rig, path: Path) -> tuple[str, ...]:
    """
    Return the sections in a CSV file of this rig, by its heading; none for other kinds of file.

    Raises
    ------
    MeasurementError
        If it is a file of `softarm excite`, but its columns do not fit the rig.

    """
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:  # spreadsheets write a BOM
            heading = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return ()  # the reader of other files reports the error
    names = tuple(rig.section_names)
    seen = next((n for n in (names, names[-1:]) if heading == heading_of(rig, n)), ())
    if not seen and heading[: 1 + len(AROUND)] == ['time_s', *AROUND]:
        whole = heading_of(rig, names)
        theirs, ours = (
            ', '.join(column for column in columns if ' command_' in column)
            for columns in (heading, whole)
        )
        if theirs == ours:
            theirs, ours = ', '.join(heading), ', '.join(whole)
        raise MeasurementError(
            f'{path}: a file of `softarm excite` of another arm, or with other columns: it has '
            f'{theirs or "no commands"}; those of {rig.name} are {ours}'
            + (', then the poses' if ours != ', '.join(whole) else '')
        )
    return seen


def write_excitation(rig: Rig, rows: ExcitedRows, path: Path) -> None:
    """
    Write rows with all sections, or with the tip alone if the sensor does not see every section.

    Raises
    ------
    NotWrittenError
        If the file cannot be written.

    """
    names = tuple(rig.section_names)
    if rows.section_tips.shape[1] != len(names):
        names = names[-1:]
    around = [repr(value) for value in values_of(rig, AROUND).values()]
    with whole_file(path) as part, part.open('w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file)
        writer.writerow(heading_of(rig, names))
        for time, command, tips in zip(rows.time_s, rows.commands, rows.section_tips):
            row = ['' if np.isnan(time) else f'{time:.6f}', *around]
            row += [f'{c:.9g}' for c in command]
            for tip in tips[-len(names) :]:
                numbers = (*tip[:3, 3], *quaternion_from_matrix(tip[:3, :3]))
                row += [f'{value:.8f}' for value in numbers]
            writer.writerow(row)


def read_excitation(rig: Rig, path: Path) -> MeasuredRun:
    """
    Return the rows of a file of `softarm excite`.

    Raises
    ------
    MeasurementError
        If a number is missing or invalid; names line and column.

    """
    names = sections_seen(rig, path)
    heading = heading_of(rig, names)
    with path.open(newline='', encoding='utf-8-sig') as file:
        reader = csv.reader(file)
        next(reader)
        lines, values = _numbers(path, heading, reader)
    first, count = 1 + len(AROUND), len(rig.actuator_names)
    for column in range(1, first):
        other = np.flatnonzero(values[:, column] != values[0, column])
        if len(other):
            raise MeasurementError(
                f'{path}:{lines[other[0]]}: {heading[column]} = {values[other[0], column]:g} '
                f'after {values[0, column]:g}; expected the same {", ".join(AROUND)} in all rows'
            )
    if values[0, 1] < 0.0:
        raise MeasurementError(
            f'{path}:{lines[0]}: {AROUND[0]} = {values[0, 1]:g}: expected at least 0'
        )
    timed = np.isfinite(values[:, 0])
    if timed.any() and not timed.all():
        line = lines[int(np.flatnonzero(~timed)[0])]
        raise MeasurementError(
            f'{path}:{line}: no time; expected one in all rows, or in none (poses at rest)'
        )
    time = values[:, 0] - values[0, 0] if timed.all() else None
    if time is not None and (np.diff(time) <= 0.0).any():
        line = lines[int(np.flatnonzero(np.diff(time) <= 0.0)[0]) + 1]
        raise MeasurementError(f'{path}:{line}: time does not increase')
    poses = values[:, first + count :].reshape(len(lines), -1, len(_POSE))
    axes, without = measured_axes(names, poses[:, :, 3:])
    run = MeasuredRun(
        path.name,
        time,
        values[:, first : first + count],
        {name: poses[:, k, :3] for k, name in enumerate(names)},
        {name: MarkerConfig(columns=('', '', ''), section=name) for name in names},
        axes,
        Mount(np.zeros(3), np.eye(3)),
        without,
        in_base=True,
        around=dict(zip(AROUND, values[0, 1:first].tolist())),
    )
    unit = rig.actuator_limits().unit
    told = (*other_lengths(rig, run, 'in m'), *other_commands(rig, run, f'in {unit}'))
    return replace(run, notes=(*run.notes, *told))


def _numbers(
    path: Path, heading: Sequence[str], rows: Iterable[Sequence[str]]
) -> tuple[list[int], Array]:
    """Return line numbers (n,) and values (n, columns) of rows; an empty time becomes NaN."""
    lines: list[int] = []
    values: list[list[float]] = []
    for line, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(heading):
            raise MeasurementError(
                f'{path}:{line}: {len(row)} cells; expected {len(heading)} numbers'
            )
        lines.append(line)
        values.append([])
        for column, cell in zip(heading, row):
            try:
                number = number_of(cell) if cell or column != heading[0] else math.nan
            except ValueError:
                number = math.inf
            if not math.isfinite(number) and (cell or column != heading[0]):
                raise MeasurementError(
                    f'{path}:{line}: {column} = {cell_text(cell)}: expected a number; only the '
                    'time may be empty'
                )
            values[-1].append(number)
    if not values:
        raise MeasurementError(f'{path}: no rows below the heading')
    return lines, np.array(values)
