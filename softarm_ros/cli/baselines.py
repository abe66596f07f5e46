"""Predictions without a command, which a model has to surpass."""

from __future__ import annotations

import numpy as np

from softarm_ros.cli.measured_run import MeasuredRun
from softarm_ros.cli.prediction import Prediction, as_measured
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.rigs.schema import Rig

STRAIGHT, MEAN = 'arm at rest', 'mean of the measured'


def baselines(rig: Rig, run: MeasuredRun, name: str | None = None) -> list[Prediction]:
    """Return the baselines for every model: the arm at rest, and the mean of the measurements."""
    return [_at_rest(rig.physics(name), rig, run), _mean(run)]


def _at_rest(model: ArmModel, rig: Rig, run: MeasuredRun) -> Prediction:
    points, axes = as_measured(rig, run, model, [model.shape_of(model.rest_configuration)])
    return Prediction(STRAIGHT, _repeated(points, len(run)), _repeated(axes, len(run)))


def _mean(run: MeasuredRun) -> Prediction:
    """Return the mean of the scored rows, the best constant prediction."""
    points = {name: values.mean(axis=0)[None] for name, values in run.points.items()}
    axes = {}
    for name, values in run.axes.items():
        mean = np.nanmean(values, axis=0)
        axes[name] = (mean / np.linalg.norm(mean))[None]
    return Prediction(MEAN, _repeated(points, len(run)), _repeated(axes, len(run)))


def _repeated(values: dict[str, Array], count: int) -> dict[str, Array]:
    return {name: np.repeat(value, count, axis=0) for name, value in values.items()}
