"""
Files of `softarm excite`: commands and section tips in the base frame.

They state which weight hung on the tip and how the arm lay, by the names of the rig's fields.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softarm_ros.cli.measured_run import MeasuredRun, MeasurementError, Mount, measured_axes
from softarm_ros.control.excited_rows import ExcitedRows
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.recording import MarkerConfig
from softarm_ros.rigs.schema import Rig

AROUND = ('tip_load_kg', *(f'gravity_m_s2[{i}]' for i in range(3)))
_POSE = ('x_m', 'y_m', 'z_m', 'qx', 'qy', 'qz', 'qw')


def heading_of(rig: Rig, sections: Sequence[str]) -> list[str]:
    """Return the columns of a rig's files of some sections; no time stands at poses at rest."""
    unit = rig.actuator_limits().unit
    return [
        'time_s',
        *AROUND,
        *(f'{name} command_{unit}' for name in rig.actuator_names),
        *(f'{name} {part}' for name in sections for part in _POSE),
    ]


def sections_seen(rig: Rig, path: Path) -> tuple[str, ...]:
    """
    Return the sections in a CSV file of this rig, by its heading; none of another kind of file.

    Raises
    ------
    MeasurementError
        If it is a file of this kind, but its columns are not those of the rig.

    """
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:  # as spreadsheets save it
            heading = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return ()  # the reader of other files says what is wrong
    names = tuple(rig.section_names)
    seen = next((n for n in (names, names[-1:]) if heading == heading_of(rig, n)), ())
    if not seen and heading[: 1 + len(AROUND)] == ['time_s', *AROUND]:
        theirs, ours = (
            ', '.join(column for column in columns if ' command_' in column)
            for columns in (heading, heading_of(rig, names))
        )
        raise MeasurementError(
            f'{path}: a file of `softarm excite` of another arm, or with other columns: it has '
            f'{theirs or "no commands"}; those of {rig.name} are {ours}, then the poses'
        )
    return seen


def require_writable(path: Path) -> None:
    """Raise MeasurementError if a file could not be written: before an arm moves for minutes."""
    there = path.exists()
    try:
        path.open('a', encoding='utf-8').close()
        if not there:
            path.unlink()
    except OSError as error:
        raise MeasurementError(f'{path}: cannot be written ({error.strerror})') from None


def write_excitation(rig: Rig, rows: ExcitedRows, path: Path) -> None:
    """
    Write rows: of all sections, or of the tip alone where the sensor does not see every section.

    Raises
    ------
    MeasurementError
        If the file cannot be written.

    """
    names = tuple(rig.section_names)
    if rows.section_tips.shape[1] != len(names):
        names = names[-1:]
    around = [repr(value) for value in values_of(rig, AROUND).values()]
    try:
        with path.open('w', newline='', encoding='utf-8') as file:
            writer = csv.writer(file)
            writer.writerow(heading_of(rig, names))
            for time, command, tips in zip(rows.time_s, rows.commands, rows.section_tips):
                row = ['' if np.isnan(time) else f'{time:.6f}', *around]
                row += [f'{c:.9g}' for c in command]
                for tip in tips[-len(names) :]:
                    numbers = (*tip[:3, 3], *quaternion_from_matrix(tip[:3, :3]))
                    row += [f'{value:.8f}' for value in numbers]
                writer.writerow(row)
    except OSError as error:
        raise MeasurementError(f'{path}: cannot be written ({error.strerror})') from None


def read_excitation(rig: Rig, path: Path) -> MeasuredRun:
    """Return the rows of a file; MeasurementError that names the row where a number is missing."""
    with path.open(newline='', encoding='utf-8-sig') as file:
        reader = csv.reader(file)
        next(reader)
        lines = [(reader.line_num, row) for row in reader if row]
    names = sections_seen(rig, path)
    width = len(heading_of(rig, names))
    values = np.empty((len(lines), width))
    for i, (line, row) in enumerate(lines):
        try:
            values[i] = [float(cell) if cell else np.nan for cell in row]
        except ValueError:
            raise MeasurementError(f'{path}:{line}: expected {width} numbers') from None
    if not len(lines) or not np.all(np.isfinite(values[:, 1:])):
        raise MeasurementError(f'{path}: expected rows in which only the time may be empty')
    count = len(rig.actuator_names)
    first = 1 + len(AROUND)
    if np.any(values[:, 1:first] != values[0, 1:first]):
        raise MeasurementError(f'{path}: expected the same {", ".join(AROUND)} in all rows')
    timed = np.isfinite(values[:, 0])
    if timed.any() and not timed.all():
        line = lines[int(np.flatnonzero(~timed)[0])][0]
        raise MeasurementError(
            f'{path}:{line}: no time; expected one in all rows, or in none (poses at rest)'
        )
    time = values[:, 0] - values[0, 0] if timed.all() else None
    if time is not None and (np.diff(time) <= 0.0).any():
        line = lines[int(np.flatnonzero(np.diff(time) <= 0.0)[0]) + 1][0]
        raise MeasurementError(f'{path}:{line}: time does not increase')
    poses = values[:, first + count :].reshape(len(lines), -1, len(_POSE))
    axes, without = measured_axes(names, poses[:, :, 3:])
    return MeasuredRun(
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
