"""Try the parts of other packages that a rig names, before they are needed in motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.control.controller import (
    AnswerError,
    Controller,
    ControlState,
    Motion,
    TipReference,
    VelocityBounds,
)
from softarm_ros.control.reach import inverse_of
from softarm_ros.geometry.answers import described, has_finite_floats, misfit, numbers
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Shape, described_model
from softarm_ros.plant.errors import PlantError
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.part_registry import registrations
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_pose_intake, build_tracker
from softarm_ros.runtime.direct import finite_state
from softarm_ros.runtime.part_failure import FAILURES, OURS, failure_text, part_at_fault
from softarm_ros.runtime.pose_intake import measure

if TYPE_CHECKING:
    from softarm_ros.models.arm_model import ArmModel, Posture
    from softarm_ros.rigs.schema import Rig

_PERIODS = 20  # of the loop; the first pose comes after the sensor's delay
_AWAY = 0.05  # rad or share of a scale: distance between two different postures
_POSTURE = ('configuration', 'tip', 'tip_jacobian', 'actuation', 'actuation_jacobian')
_BOUNDS = ('rows', 'low', 'high')
_GIVEN = 'that it is given; expected to work on a copy'


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
    _watch(tracker.controller)
    for _ in range(3):
        tracker.step(np.zeros(3), np.zeros(3), period_s)
    _require_own_arrays(model)
    _require_answers(model)


def _watch(controller: Controller) -> None:
    """Let a controller raise AnswerError if it changes arrays that it is given."""
    velocity, named = controller.velocity, f'controller {type(controller).__name__}'

    def watched(
        state: ControlState, reference: TipReference, bounds: VelocityBounds, period_s: float
    ) -> Motion:
        def given() -> dict[str, Array]:
            arrays = {f'state.command.{name}': a for name, a in _arrays_of(state.command).items()}
            arrays |= {f'state.{name}': getattr(state, name) for name in ('jacobian', 'scale')}
            return arrays | {f'bounds.{name}': getattr(bounds, name) for name in _BOUNDS}

        with _unchanged(given, named, _GIVEN):
            return velocity(state, reference, bounds, period_s)

    controller.velocity = watched  # type: ignore[method-assign]


def _require_own_arrays(model: ArmModel) -> None:
    """Raise AnswerError if a posture changes when the model is asked for another one."""
    first = model.posture_of(model.rest_configuration)
    words = 'of a posture when it returns the next one; expected new arrays for each posture'
    with _unchanged(lambda: _arrays_of(first), described_model(model), words):
        _arrays_of(model.posture_of(_bent(model), first))


def _require_answers(model: ArmModel) -> None:
    """Raise AnswerError unless a model returns finite arrays of the right shape."""
    for name, value, shape in _answers(model):
        if not has_finite_floats(value, shape):
            raise AnswerError(
                misfit(described_model(model), name, value, f'{numbers(shape)} finite')
            )


def _answers(model: ArmModel) -> Iterator[tuple[str, Array, tuple[int, ...]]]:
    """Yield what a model returns at rest, by name, and its shape; later ones use earlier ones."""
    rest, m = model.rest_configuration, len(model.actuator_names)
    yield 'actuation_of', (actuation := model.actuation_of(rest)), (m,)
    yield 'configuration_of', model.configuration_of(actuation), rest.shape
    yield 'tips_of', (tips := model.tips_of(rest[None])), (1, 3)
    yield 'jacobian', model.jacobian(actuation), (6, m)
    shape: object = model.forward(actuation)
    if not isinstance(shape, Shape):
        raise AnswerError(
            f'{described_model(model)} returned forward {described(shape)}; expected a Shape'
        )
    yield 'tip of forward', shape.tip, (4, 4)
    yield 'actuation of inverse', inverse_of(model, tips[0], actuation).actuation, (m,)


def _bent(model: ArmModel) -> Array:
    """Return a configuration (dof,) beside the one at rest."""
    return model.rest_configuration + _AWAY * np.asarray(model.configuration_scale)


def _arrays_of(posture: Posture) -> dict[str, Array]:
    return {name: getattr(posture, name) for name in _POSTURE}


@contextmanager
def _unchanged(read: Callable[[], dict[str, Array]], whose: str, words: str) -> Iterator[None]:
    """Raise AnswerError if a block changes the arrays that `read` returns."""
    before = {name: np.array(value) for name, value in read().items()}
    yield
    for name, value in read().items():
        if not np.array_equal(before[name], value, equal_nan=True):
            raise AnswerError(f'{whose} changes {name} {words}')


def _try_plant(rig: Rig) -> None:
    """Let the simulated arm stand for some periods; check what sensor and estimator answer."""
    model = rig.model()
    plant, intake = build_plant(rig, 0), build_pose_intake(rig, model)
    estimator, posture = intake.estimator, model.posture_of(_bent(model))
    named = f'estimator {type(estimator).__name__}'
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
        with _unchanged(lambda: _arrays_of(posture), named, f'of the posture {_GIVEN}'):
            estimator.command(now, posture)
        intake.on_actuators(now, finite_state(plant).position)
