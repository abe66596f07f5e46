"""Try the parts of other packages that a rig names, before they are needed in motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.control.controller import AnswerError
from softarm_ros.plant.errors import PlantError
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.part_registry import registrations
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_pose_intake, build_tracker
from softarm_ros.runtime.direct import finite_state
from softarm_ros.runtime.part_failure import FAILURES, OURS, failure_text, part_at_fault
from softarm_ros.runtime.pose_intake import measure

if TYPE_CHECKING:
    from softarm_ros.models.arm_model import ArmModel
    from softarm_ros.rigs.schema import Rig

_PERIODS = 20  # of the loop; the first pose comes after the sensor's delay
_AWAY = 0.05  # rad or share of a scale: distance between two different postures


def try_parts(rig: Rig, name: str) -> None:
    """
    Build the parts of a rig that other packages provide, and check the answers of each.

    Raises
    ------
    RigError
        Names the first part that fails or gives an invalid answer.

    """
    others = {entry.name for entry in registrations() if not entry.built_in}
    loop = {f'model.{rig.default_model}', f'controller.{rig.tracker.kind}'}
    loop.add(f'estimator.{rig.estimator.kind}')
    trials: list[Callable[[Rig], None]] = []
    if loop & others:
        trials.append(_try_loop)
    if rig.plant is not None:
        plant = {
            f'body.{rig.plant.kind}',
            f'sensors.{rig.plant.mocap.kind}',
            f'medium.{rig.plant.medium.kind}',
        }
        if (plant | loop) & others:
            trials.append(_try_plant)
    for trial in trials:
        try:
            trial(rig)
        except FAILURES as error:
            if not (isinstance(error, OURS) or part_at_fault(error)):
                raise  # a bug of this package
            raise RigError(name, failure_text(error)) from error


def _try_loop(rig: Rig) -> None:
    """Let the controller take a few steps with the model."""
    model, period_s = rig.model(), 1.0 / rig.tracker.rate_hz
    tracker = build_tracker(rig, model)
    for _ in range(3):
        tracker.step(np.zeros(3), np.zeros(3), period_s)
    _require_own_arrays(model)


def _require_own_arrays(model: ArmModel) -> None:
    """Raise AnswerError if a posture changes when the model is asked for another one."""
    rest = model.rest_configuration
    first = model.posture_of(rest)
    fields = ('configuration', 'tip', 'tip_jacobian', 'actuation', 'actuation_jacobian')
    before = {field: getattr(first, field).copy() for field in fields}
    second = model.posture_of(rest + _AWAY * np.asarray(model.configuration_scale), first)
    for field in fields:
        getattr(second, field)
        if not np.array_equal(before[field], getattr(first, field), equal_nan=True):
            raise AnswerError(
                f'model {model.name} ({type(model).__name__}) changes {field} of a posture when '
                'it returns the next one; expected new arrays for each posture'
            )


def _try_plant(rig: Rig) -> None:
    """Let the simulated arm stand for some periods; check what sensor and estimator answer."""
    plant, intake = build_plant(rig, 0), build_pose_intake(rig, rig.model())
    sensor = f'sensor {rig.plant_for("sim").mocap.kind}'
    for _ in range(_PERIODS):
        plant.step(None, 1.0 / rig.tracker.rate_hz)
        now = plant.time_s
        for frame in measure(plant, intake, now):
            if not np.isfinite(frame.section_tips).all():
                raise PlantError(f'{sensor}: poses are not finite')
            refusal = intake.watch.wrong(now, frame.stamp_s, 'base', frame.section_tips[-1, :3, 3])
            if refusal is not None:
                raise PlantError(f'{sensor}: {refusal}')
        intake.take(now)
        intake.pace(now)
        finite_state(plant)
