"""The folder of a report: checks that it is writable, and writes its data files."""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.coordinates import not_bending
from softarm_ros.runtime.run_record import RunRecord
from softarm_ros.whole_file import whole_file, write_text

PAGE, SUMMARY, DATA = 'index.html', 'summary.json', 'data.csv'
MAX_EVENTS = 200  # most events on a page; summary.json has all of them


class FolderError(UsageError):
    """A folder for a report cannot be used; the message names the folder and the reason."""


def prepare_folder(path: Path) -> None:
    """
    Make sure that a report can be written into a folder; create the folder if necessary.

    Call it before a run, so that its results cannot be lost.

    Raises
    ------
    FolderError
        If the path is not a folder, cannot be created or cannot be written.

    """
    require_writable_folder(path)
    for name in (PAGE, SUMMARY, DATA):
        file = path / name
        if file.is_dir():
            raise FolderError(f'report folder {path}: {name} in it is a folder; remove it')
        if file.exists() and not os.access(file, os.W_OK):
            raise FolderError(f'report folder {path}: {name} in it is read-only')


def require_writable_folder(path: Path) -> None:
    """Make sure that files can be written into a folder; create it if necessary. FolderError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FolderError(f'report folder {path}: a file is in the way') from None
    except (OSError, ValueError) as error:
        raise FolderError(f'report folder {path}: cannot be created ({_why(error)})') from None
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise FolderError(f'report folder {path}: cannot be written ({_why(error)})') from None


def _why(error: Exception) -> str:
    return getattr(error, 'strerror', None) or str(error)


def write_json(value: dict[str, Any], file: Path) -> None:
    """Write a mapping as JSON; non-finite numbers become null."""
    text = json.dumps(_finite(value), indent=2, allow_nan=False, ensure_ascii=False)
    write_text(file, text + '\n')


def _finite(value: Any) -> Any:
    """Return the same structure with None in place of non-finite numbers."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_samples(record: RunRecord, file: Path) -> None:
    """
    Write one row per control cycle; column names state units, empty cells: no measurement.

    A configuration coordinate that is no bending has its SI unit; the model names it.
    """
    s, info = record.samples, record.info
    unit, effort_unit = info.actuator_unit, info.effort_unit.replace(' ', '_')
    other = {info.configuration_names[k] for k in not_bending(info.configuration_names)}
    header = [
        'time_s',
        'phase',
        'lap',
        *[f'reference_{a}_m' for a in 'xyz'],
        *[f'tip_{a}_m' for a in 'xyz'],
        *[f'true_tip_{a}_m' for a in 'xyz'],
        'error_m',
        'measured_error_m',
        *[
            f'configuration_{name}' if name in other else f'{name}_rad'
            for name in info.configuration_names
        ],
        *[f'{name}_command_{unit}' for name in info.actuator_names],
        *[f'{name}_position_{unit}' for name in info.actuator_names],
        *[f'{name}_effort_{effort_unit}' for name in info.actuator_names],
    ]
    numbers = np.column_stack(
        [
            *(s.reference, s.tip, s.true_tip, s.error, s.measured_error),
            *(s.configuration, s.command, s.position, s.effort),
        ]
    )
    with whole_file(file) as part, part.open('w', newline='', encoding='utf-8') as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for time, phase, lap, row in zip(s.time_s, s.phase, s.lap, numbers):
            writer.writerow([f'{time:.9g}', phase, int(lap), *_cells(row)])


def _cells(row: Iterable[float]) -> list[str]:
    return [f'{v:.9g}' if math.isfinite(v) else '' for v in row]
