"""
Fit any fields of a rig file to measurements.

    python -m softarm_reproduction.fit_fields RIG DATA... --rows 0,2,4:8
        --scale 'segments[*].profile.young_modulus_Pa'
        --shift 'recording.markers.p1.offset_m[0]=0.005'

`--scale` multiplies all matching values by one factor, with a prior spread of about a third.
`--shift` adds an offset to each matching value, with the prior spread behind the equals sign. The
file's values are the centre of the prior. Errors have a soft L1 loss. The program prints `--set`
options and the remaining share of the prior spread: if it is close to 1, the data do not determine
the field. The intervals are formal; true ones are wider.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.cli.chosen_rows import chosen_rows
from softarm_ros.cli.measured_run import MeasuredRun
from softarm_ros.cli.prediction import predict
from softarm_ros.cli.read_run import read_run
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.loader import find_rig, load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.yaml_document import read_yaml

SCALE_SPREAD = 0.3  # of the logarithm
SIGMA_M, SIGMA_AXIS = 0.003, 0.03  # errors of a good model: positions [m], axes
_REFUSED = 10.0  # error, in sigmas, of a row that the model cannot predict
_MAX_ROWS = 600


@dataclass(frozen=True)
class Field:
    """Values of a file at `paths`, scaled by exp(spread x) or shifted by spread x."""

    name: str
    paths: tuple[str, ...]
    values: tuple[float, ...]
    spread: float
    scaled: bool

    def settings(self, x: float) -> list[str]:
        """Return `field=value` settings for an unknown x in units of the spread."""
        move = float(self.spread * x)
        return [
            f'{path}={value * np.exp(move) if self.scaled else value + move:.9g}'
            for path, value in zip(self.paths, self.values)
        ]


def fields_of(rig_file: Path, scaled: Sequence[str], shifted: Sequence[str]) -> list[Field]:
    """
    Return the unknowns: one for each `--scale`, one for each value that a `--shift` matches.

    Raises
    ------
    ValueError
        If no number of the file matches a pattern.

    """
    data = read_yaml(rig_file).data
    found = []
    for pattern in scaled:
        hits = _matches(data, pattern)
        found.append(Field(pattern, tuple(hits), tuple(hits.values()), SCALE_SPREAD, True))
    for entry in shifted:
        pattern, _, spread = entry.partition('=')
        found += [
            Field(path, (path,), (value,), float(spread), False)
            for path, value in _matches(data, pattern).items()
        ]
    return found


def fit(rig_name: str, paths: Sequence[Path], rows: str | None, unknowns: list[Field]) -> Any:
    """Return scipy's result; its x is 1 plus the unknowns in units of their spreads."""
    file = find_rig(rig_name)

    def residuals(beside_one: Array) -> Array:
        x = beside_one - 1.0  # around 1, as `diff_step` is relative to x
        settings = [text for field, value in zip(unknowns, x) for text in field.settings(value)]
        rig = load_rig(file, settings)
        model = rig.model()
        errors = [_errors(rig, predict(rig, model, run), run) for run in _runs(rig, paths, rows)]
        return np.concatenate([*errors, x])

    return least_squares(
        residuals, np.ones(len(unknowns)), loss='soft_l1', diff_step=1e-2, max_nfev=30
    )


def _runs(rig: Rig, paths: Sequence[Path], rows: str | None) -> list[MeasuredRun]:
    found = [chosen_rows(read_run(rig, path), rows, 1) for path in paths]
    every = max(1, sum(len(run) for run in found) // _MAX_ROWS)
    return [run.rows(np.arange(0, len(run), every)) for run in found]


def _errors(rig: Rig, prediction: Any, run: MeasuredRun) -> Array:
    parts = [
        *((prediction.points[n] - v) / SIGMA_M for n, v in run.points.items()),
        *((prediction.axes[n] - v) / SIGMA_AXIS for n, v in run.axes.items()),
    ]
    # Rows close in time are not independent.
    share = min(1.0, 50.0 / len(run)) ** 0.5
    errors = share * np.concatenate([part.ravel() for part in parts])
    return np.nan_to_num(errors, nan=share * _REFUSED)


def _matches(data: Any, pattern: str) -> dict[str, float]:
    """Return path and value of all numbers that match a pattern; `*` matches any index."""
    found: dict[str, float] = {}
    parts = re.findall(r'[A-Za-z_]\w*|\[(?:\d+|\*)\]', pattern)

    def walk(node: Any, rest: Sequence[str], path: str) -> None:
        if not rest:
            if isinstance(node, (int, float)) and not isinstance(node, bool):
                found[path] = float(node)
            return
        part = rest[0]
        if part.startswith('[') and isinstance(node, (list, tuple)):
            chosen = range(len(node)) if part == '[*]' else [int(part[1:-1])]
            for i in chosen:
                walk(node[i], rest[1:], f'{path}[{i}]')
        elif isinstance(node, dict) and part in node:
            walk(node[part], rest[1:], f'{path}.{part}' if path else part)

    walk(data, parts, '')
    if not found:
        raise ValueError(f'{pattern}: matches no number of the rig file')
    return found


def main() -> None:
    """Fit the fields and print their values and intervals."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('rig')
    parser.add_argument('data', type=Path, nargs='+')
    parser.add_argument('--scale', nargs='*', default=[], metavar='FIELD')
    parser.add_argument('--shift', nargs='*', default=[], metavar='FIELD=SPREAD')
    parser.add_argument('--rows')
    arguments = parser.parse_args()
    unknowns = fields_of(find_rig(arguments.rig), arguments.scale, arguments.shift)
    found = fit(arguments.rig, arguments.data, arguments.rows, unknowns)
    left = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    print(f'{found.message} cost {found.cost:.1f} after {found.nfev} evaluations')
    for field, x, share in zip(unknowns, found.x - 1.0, left):
        for text in field.settings(x):
            print(f'  {text}    (+- {field.spread * share:.3g}, {share:.2f} of the prior)')


if __name__ == '__main__':
    main()
