"""CSV files of commands and measured section tips, read as the rig file says."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.pair_identification import PairRecording
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.recording import RecordingConfig
from softarm_ros.rigs.schema import Rig

Rows = NDArray[np.int64]


class RecordingError(UsageError):
    """A recording cannot be read, or has too few data; the message names file and column."""


@dataclass(frozen=True)
class Recording:
    """
    One file.

    Attributes
    ----------
    source : str
        Its name, for messages.
    measured : PairRecording
        What it holds; `time_s` is None if the file has no column of time.
    skipped : int
        Rows left out because a value is missing or not finite.

    """

    source: str
    measured: PairRecording
    skipped: int


def recording_of(rig: Rig) -> RecordingConfig:
    """
    Return the rig's block `recording`.

    Raises
    ------
    RecordingError
        If it has none.

    """
    recording = rig.recording
    if recording is None:
        raise RecordingError(
            f'rig {rig.name!r} has no block `recording` that says how data are read'
        )
    return recording


def read_recording(rig: Rig, path: Path) -> Recording:
    """
    Read a CSV file with a heading, as the rig's `recording` maps its columns.

    Raises
    ------
    RecordingError
        If the file cannot be read, a column is missing, a value is no number, times do not
        increase, or no row is complete.

    """
    config = recording_of(rig)
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:
            table = list(csv.reader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f'{path}: cannot be read ({error})') from None
    if len(table) < 2:
        raise RecordingError(f'{path}: expected a heading and rows of numbers')
    heading = [name.strip() for name in table[0]]
    commands = [config.commands[name] for name in rig.actuator_names]
    tips = [column for name in rig.section_names for column in config.section_tips[name]]
    timed = config.time is not None and config.time in heading
    wanted = [*([str(config.time)] if timed else []), *commands, *tips]
    missing = [name for name in wanted if name not in heading]
    if missing:
        raise RecordingError(
            f'{path}: no column {", ".join(missing)}; there are {", ".join(heading)}'
        )
    values = _numbers(path, table, [heading.index(name) for name in wanted])
    complete = np.all(np.isfinite(values), axis=1)
    if not np.any(complete):
        raise RecordingError(f'{path}: no row has all of {", ".join(wanted)}')
    values, first = values[complete], int(timed)
    time = values[:, 0].copy() if timed else None
    if time is not None and np.any(np.diff(time) <= 0.0):
        row = int(np.flatnonzero(np.diff(time) <= 0.0)[0]) + 1
        raise RecordingError(f'{path}: {config.time} does not increase at {time[row]:g} s')
    contractions = values[:, first : first + len(commands)] * _contraction_per_unit(rig, config)
    measured = PairRecording(
        time, contractions, values[:, first + len(commands) :].reshape(len(values), -1, 3)
    )
    return Recording(path.name, measured, int(np.sum(~complete)))


def split_rows(
    recording: PairRecording, block_s: float = 2.5, guard_s: float = 0.5
) -> tuple[Rows, Rows]:
    """
    Return rows to identify from and rows to predict.

    The recording of a moving arm is cut into blocks of `block_s`, identified from and predicted in
    turn; `guard_s` at both ends of a predicted block are left out, so that no predicted sample has
    an identified neighbour. Poses at rest are divided in turn by their command: repetitions of one
    command stay together.
    """
    if recording.time_s is None:
        _, group = np.unique(recording.contractions, axis=0, return_inverse=True)
        group = group.reshape(-1)
        return np.flatnonzero(group % 2 == 0), np.flatnonzero(group % 2 == 1)
    since = recording.time_s - recording.time_s[0]
    block, within = np.floor(since / block_s).astype(int), since % block_s
    inside = (within >= guard_s) & (within <= block_s - guard_s)
    return np.flatnonzero(block % 2 == 0), np.flatnonzero((block % 2 == 1) & inside)


def _contraction_per_unit(rig: Rig, config: RecordingConfig) -> Array:
    """Return (m,) metres of contraction per unit of the recorded command."""
    if config.command_unit == 'm':
        return np.ones(len(CableArm.of(rig).actuators))
    radii = np.array([a.pulley_radius_m for a in CableArm.of(rig).actuators], dtype=float)
    return np.asarray(np.deg2rad(radii) if config.command_unit == 'deg' else radii)


def _numbers(path: Path, table: list[list[str]], columns: list[int]) -> Array:
    values = np.full((len(table) - 1, len(columns)), np.nan)
    for i, row in enumerate(table[1:]):
        for j, column in enumerate(columns):
            text = row[column].strip() if column < len(row) else ''
            if text:
                try:
                    values[i, j] = float(text)
                except ValueError:
                    raise RecordingError(
                        f'{path}:{i + 2}: {table[0][column]} = {text!r}: expected a number'
                    ) from None
    return values
