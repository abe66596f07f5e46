"""`softarm score`: compare models' predictions for recorded commands with measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.cli.baselines import baselines
from softarm_ros.cli.measured_run import MeasuredRun
from softarm_ros.cli.prediction import Prediction, corrected_by, ignored_load, predict
from softarm_ros.cli.text_output import write_file
from softarm_ros.cli.work_bar import Show, show_nothing
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.schema import Rig

_HEAD = f'{"":<42}{"RMS":>9}{"median":>9}{"90 %":>9}'


@dataclass(frozen=True)
class Errors:
    """Errors of one measured quantity over `rows` rows: RMS, median and 90th percentile."""

    what: str
    unit: str
    rms: float
    median: float
    p90: float
    rows: int

    def as_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary, with None in place of NaN."""
        return {
            n: None if isinstance(v, float) and math.isnan(v) else v for n, v in vars(self).items()
        }


@dataclass(frozen=True)
class Score:
    """Errors of one prediction for one run."""

    run: str
    by: str
    rows: int
    errors: tuple[Errors, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the score as a dictionary; each of its errors names its unit."""
        return {
            'run': self.run,
            'by': self.by,
            'rows': self.rows,
            'errors': [e.as_json() for e in self.errors],
            'notes': list(self.notes),
        }


def predictions(
    rig: Rig, models: Sequence[str], run: MeasuredRun, show: Show = show_nothing
) -> list[Prediction]:
    """Return the baselines, then the predictions of each model."""
    return [
        *baselines(rig, run, models[0]),
        *(prediction for name in models for prediction in _of_model(rig, name, run, show)),
    ]


def _of_model(rig: Rig, name: str, run: MeasuredRun, show: Show) -> list[Prediction]:
    """Return a model's prediction, and another with the rig's residual, if it has one."""
    rig = run.as_it_was(rig)
    physics = predict(rig, rig.physics(name), run, show=partial(show, f'{run.source} by {name}'))
    physics = replace(physics, notes=(*physics.notes, *ignored_load(rig, name, run, physics)))
    residual = rig.learned_residual()
    if residual is None or run.remembered is None or name != rig.default_model:
        return [physics]
    return [physics, corrected_by(rig, residual, run.remembered, physics, run)]


def score(prediction: Prediction, run: MeasuredRun) -> Score:
    """Return the errors of a prediction against the measurements."""
    errors = [_errors(what, unit, values) for what, unit, values in distances(prediction, run)]
    return Score(run.source, prediction.name, len(run), tuple(errors), prediction.notes)


def distances(prediction: Prediction, run: MeasuredRun) -> list[tuple[str, str, Array]]:
    """Return (name, unit, distance of prediction and measurement (n,)) for each quantity."""
    found = []
    for name, measured in run.points.items():
        distance = np.linalg.norm(prediction.points[name] - measured, axis=1)
        found.append((name, 'mm', 1e3 * distance))
    for name, measured in run.axes.items():
        predicted = prediction.axes[name]
        across = np.linalg.norm(np.cross(predicted, measured), axis=1)
        angle = np.arctan2(across, np.sum(predicted * measured, axis=1))
        found.append((f'{name} axis', 'deg', np.rad2deg(angle)))
    return found


def _errors(what: str, unit: str, values: Array) -> Errors:
    found = values[np.isfinite(values)]
    if not len(found):  # the model refuses all rows
        return Errors(what, unit, math.nan, math.nan, math.nan, 0)
    return Errors(
        what,
        unit,
        float(np.sqrt(np.mean(found**2))),
        float(np.median(found)),
        float(np.percentile(found, 90.0)),
        len(found),
    )


def table(rig: Rig, scores: Iterable[Score]) -> list[str]:
    """Return the lines of the printed table."""
    lines: list[str] = []
    run = ''
    for entry in scores:
        if entry.run != run:
            run = entry.run
            lines += ['', f'{rig.name}, {run}: {entry.rows} rows', _HEAD]
        lines += [
            f'{entry.by if i == 0 else "":<23} {e.what:<17} {e.rms:9.2f} {e.median:8.2f}'
            f' {e.p90:8.2f}  {e.unit}' + (f'  ({e.rows} rows)' if e.rows != entry.rows else '')
            for i, e in enumerate(entry.errors)
        ]
        lines += [f'  {note}' for note in entry.notes]
    return lines


def check_models(rig: Rig, models: Sequence[str]) -> list[str]:
    """Return the requested models, or the default; raise RigError for an unknown model."""
    return [rig.model_name(name) for name in models] or [rig.default_model]


def save_json(
    path: Path, rig: Rig, scores: Sequence[Score], notes: Mapping[str, Sequence[str]]
) -> None:
    """Write all scores, and the notes of each run (`MeasuredRun.notes`) by its name."""
    import json

    written = {
        'rig': rig.name,
        'notes': {run: list(of_run) for run, of_run in notes.items()},
        'scores': [s.as_json() for s in scores],
    }
    write_file(json.dumps(written, indent=2) + '\n', path, '--json')
