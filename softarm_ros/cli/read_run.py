"""Reads measurements from a bag, a file of `softarm excite` or another CSV file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from softarm_ros.cli.measured_bag import read_bag_run
from softarm_ros.cli.measured_csv import read_csv_run
from softarm_ros.cli.measured_excitation import AROUND, read_excitation, sections_seen
from softarm_ros.cli.measured_run import (
    MeasuredRun,
    MeasurementError,
    with_memory,
    without_flips,
)
from softarm_ros.nodes.bag_messages import is_bag
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.schema import Rig


def read_run(rig: Rig, path: Path) -> MeasuredRun:
    """
    Return the measurements of a CSV file, by the rig's `recording`, or of a bag.

    `NAME:tip_load_kg=0.1` states the tip weight or the gravity for this file (fields of `AROUND`,
    separated by commas); files of `softarm excite` contain these fields.

    Raises
    ------
    MeasurementError
        If the file cannot be read, lacks data or complete rows, or a stated value is invalid.

    """
    path, around = _stated(path)
    run = _read(rig, path)
    run = replace(run, around={**run.around, **around}) if around else run
    ours = values_of(rig, list(run.around))
    other = [
        f'{field} = {value:g} (rig file: {ours[field]:g})'
        for field, value in run.around.items()
        if value != ours[field]
    ]
    if not other:
        return run
    return replace(run, notes=(*run.notes, f'recorded with {", ".join(other)}'))


def file_of(path: Path) -> Path:
    """Return the path of the file or bag, without the fields stated behind it."""
    return _stated(path)[0]


def require_new(option: str, output: Path, rig: Rig, recordings: Sequence[Path]) -> None:
    """Raise MeasurementError if an output file is the rig file or a recording that is read."""
    read = [(file_of(path), 'a recording') for path in recordings]
    if rig.source is not None:
        read.append((rig.source, 'the rig file'))
        if rig.residual is not None:
            read.append((rig.source.parent / rig.residual.file, 'the residual of the rig file'))
    for path, what in read:
        if path.exists() and output.exists() and path.samefile(output):
            raise MeasurementError(f'{option} {output}: it is {what}; expected a new file')


def _stated(path: Path) -> tuple[Path, dict[str, float]]:
    """Return a path without the fields stated behind it, and these fields."""
    name, colon, text = path.name.rpartition(':')
    if not colon or '=' not in text:
        return path, {}
    found = {}
    for piece in text.split(','):
        field, _, number = piece.partition('=')
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if field not in AROUND or not math.isfinite(value):
            raise MeasurementError(
                f'{path}: {piece!r} behind the name of a file: expected FIELD=NUMBER of '
                f'{", ".join(AROUND)}'
            )
        if field == AROUND[0] and value < 0.0:
            raise MeasurementError(f'{path}: {field} = {value:g}: expected at least 0')
        found[field] = value
    return path.with_name(name), found


def _read(rig: Rig, path: Path) -> MeasuredRun:
    if is_bag(path):
        return with_memory(rig, without_flips(read_bag_run(rig, path)))
    if sections_seen(rig, path):
        return with_memory(rig, without_flips(read_excitation(rig, path)))
    return read_csv_run(rig, path)
