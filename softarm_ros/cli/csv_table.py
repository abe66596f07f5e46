"""A CSV file with a heading, as columns of numbers."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softarm_ros.cli.cli_errors import number_of
from softarm_ros.cli.measured_run import MeasurementError
from softarm_ros.geometry.arrays import Array

_SHOWN = 40  # characters of a cell in a message: a quote that is not closed spans many lines
_LARGEST = 1e100  # larger numbers are marks of a missing reading, and their squares overflow


def cell_text(text: str) -> str:
    """Return the text of a cell for a message: quoted, and shortened if it is long."""
    return repr(text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...')


def _begins_with_number(row: list[str]) -> bool:
    """Return whether the first cell with text, if any, is a number; no heading begins with one."""
    try:
        number_of(next(filter(None, map(str.strip, row)), 'nan'))
    except ValueError:
        return False
    return True


def _undecodable_line(path: Path) -> int:
    """Return the line with the first byte that is not UTF-8; a decoder counts in its buffer."""
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b'\n', 0, error.start) + 1
    return 1


class CsvTable:
    """
    A CSV file with a heading; empty cells and `nan` are missing values, empty lines are skipped.

    Lines that begin with `#` are comments. The last one before the rows is the heading if no other
    line is, as in files of numpy.savetxt.

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
                comment: list[str] = []
                for row in filter(None, reader):
                    if row[0].lstrip().startswith('#'):
                        comment = row
                    elif self._heading:
                        self._add(reader.line_num, row)
                    elif comment and _begins_with_number(row):
                        self._begin(comment)
                        self._add(reader.line_num, row)
                    else:
                        self._begin(row)
        except UnicodeDecodeError:
            raise MeasurementError(
                f'{path}: cannot be read (line {_undecodable_line(path)} is not UTF-8); expected '
                'text in UTF-8: save the file again with this encoding'
            ) from None
        except (OSError, csv.Error) as error:
            why = getattr(error, 'strerror', None) or error
            raise MeasurementError(f'{path}: cannot be read ({why})') from None
        if not len(self):
            raise MeasurementError(f'{path}: expected a heading and rows of numbers')

    def _begin(self, heading: list[str]) -> None:
        heading[0] = heading[0].strip().removeprefix('#')
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
                column.append(number_of(text) if text else math.nan)
            except ValueError:
                column.append(math.nan)
                self._no_number.setdefault(index, (line, text))

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    def has(self, names: Sequence[str]) -> bool:
        """Return whether all of these columns exist."""
        return not self.missing(names)

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return those of these columns that do not exist."""
        return [name for name in names if name not in self._heading]

    def columns(self, names: Sequence[str]) -> Array:
        """Return columns (n, k) by their names."""
        missing = self.missing(names)
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
            raise MeasurementError(
                f'{self._path}:{line}: {name} = {cell_text(text)}: expected a number'
            )
        values = np.array(self._columns[index])
        beyond = np.flatnonzero(np.isfinite(values) & (np.abs(values) > _LARGEST))
        if len(beyond):
            raise MeasurementError(
                f'{self._path}: {name} = {values[beyond[0]]:g} at row {beyond[0]} (the first is '
                f'0): expected at most {_LARGEST:g}; leave a field empty that was not measured'
            )
        return values
