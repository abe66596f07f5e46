"""Predictions of a model for the recorded commands of a run, as the markers would measure them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.measured_run import MeasuredRun
from softarm_ros.control.controller import AnswerError
from softarm_ros.control.limits import ActuatorLimits, LimitError
from softarm_ros.geometry.answers import has_finite_floats, has_floats, misfit, numbers
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3, log_so3
from softarm_ros.models.arm_model import ArmModel, ModelError, Shape, described_model
from softarm_ros.models.residual import Residual
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.schema import Rig

# A recorded command beyond an actuator's range by up to this share of the range is clipped.
BEYOND = 0.01
_TURNS, _RELAXATION, _STILL_RAD = 100, 0.3, 1e-5
_COMPARED = 3  # rows compared with and without the weight on the tip
_SHOWN = 50  # rows predicted between updates of the progress


@dataclass(frozen=True)
class Prediction:
    """
    Predictions for a run by a model or baseline; NaN if there is none.

    `points` and `axes` are as in `MeasuredRun`; `notes` report rows without a prediction.
    """

    name: str
    points: dict[str, Array]
    axes: dict[str, Array]
    notes: tuple[str, ...] = ()


def ignored_load(
    rig: Rig, name: str | None, run: MeasuredRun, loaded: Prediction
) -> Iterator[str]:
    """
    Yield a note if a model predicts the same without the weight on the tip.

    `name` is None for the rig's default model; the rig must have the run's tip weight and gravity.
    """
    weight_kg = rig.around.tip_load_kg
    if weight_kg == 0.0:
        return
    few = np.linspace(0, len(run) - 1, _COMPARED).astype(np.int64)
    rig = with_values(rig, {'tip_load_kg': 0.0})
    light = replace(run.rows(few), around={})
    bare = predict(rig, rig.physics(name), light, strict=False)
    pairs = [(bare.points[n], values[few]) for n, values in loaded.points.items()]
    pairs += [(bare.axes[n], values[few]) for n, values in loaded.axes.items()]
    seen = any(np.isfinite(under).any() for _, under in pairs)  # False if all rows are refused
    if seen and all(np.array_equal(free, under, equal_nan=True) for free, under in pairs):
        yield f'tip_load_kg = {weight_kg:g} changes nothing of what {loaded.name} predicts'


def corrected_by(
    rig: Rig, residual: Residual, remembered: Array, physics: Prediction, run: MeasuredRun
) -> Prediction:
    """Return a model's prediction, corrected by a residual at features (n, f)."""
    errors, spread, trust = residual.at(remembered)
    turn = run.mount.rotation
    index = {section: k for k, section in enumerate(rig.section_names)}
    points = {
        n: values + errors[:, index[run.places[n].section], :3] @ turn.T
        for n, values in physics.points.items()
    }
    axes = {
        n: _turned(values, errors[:, index[n], 3:] @ turn.T) for n, values in physics.axes.items()
    }
    doubted = float(np.mean(trust < 1.0))
    says = ', '.join(
        [
            f'{n} {1e3 * np.median(np.linalg.norm(s, axis=1)):.2g} mm'
            for n in points
            for s in [spread[:, index[run.places[n].section], :3]]
        ]
        + [
            f'{n} {np.rad2deg(np.median(np.linalg.norm(spread[:, index[n], 3:], axis=1))):.2g} deg'
            for n in axes
        ]
    )
    notes = (
        f'standard deviation that the residual states: {says}; {100 * doubted:.0f} % of the rows '
        'lie beyond its data, where it fades',
    )
    return Prediction(f'{physics.name} + learned', points, axes, (*physics.notes, *notes))


def _turned(axes: Array, turns: Array) -> Array:
    """Return axes (n, 3) rotated by rotation vectors (n, 3)."""
    return np.array([exp_so3(turn) @ axis for turn, axis in zip(turns, axes)]).reshape(-1, 3)


def predict(
    rig: Rig,
    model: ArmModel,
    run: MeasuredRun,
    *,
    strict: bool = True,
    show: Callable[[float | None], None] = lambda _: None,
) -> Prediction:
    """
    Return a model's predictions for the commands of a run; rows that it refuses are NaN.

    The rig must have the run's tip weight and gravity (`MeasuredRun.as_it_was`). `show` gets the
    share of rows predicted so far, or None if it is unknown.

    Raises
    ------
    ValueError
        If the rig's tip weight or gravity differ from the run's.
    AnswerError
        If the model does not return one finite frame for each section tip.
    ModelError
        If `strict` and the model refuses every row.

    """
    if run.as_it_was(rig) is not rig:
        raise ValueError(f'{run.source} was recorded with {run.around}; expected a rig with these')
    limits = rig.actuator_limits()
    commands, clipped = within_limits(run.commands, limits)
    hysteresis = rig.operator()
    if hysteresis is not None and run.lagging is not None and np.any(hysteresis.weights):
        commands = commands - hysteresis.lacking(run.lagging)
    many = getattr(model, 'section_tips_of', None)
    if many is not None and run.tip_force is None:
        show(None)
        frames = many(commands)
        expected = (len(commands), len(rig.section_names), 4, 4)
        if not has_floats(frames, expected):
            raise _unfit(model, frames, numbers(expected))
        refused = np.isnan(frames[:, -1, 0, 3])
        reason = 'an arc would close, or the arm falls aside'
        if strict and len(commands) and refused.all():
            raise ModelError(f'{run.source}: model {model.name} refuses every row: {reason}')
        notes = [*_clipped_note(clipped), *_beyond(limits, commands, ~refused)]
        if refused.any():
            notes.append(f'{refused.sum()} rows refused: {reason}')
        points, axes = _of_frames(rig, run, frames)
        return Prediction(model.name, points, axes, tuple(notes))
    causes = commands if run.tip_force is None else np.hstack([commands, run.tip_force])
    unique, index = np.unique(causes, axis=0, return_inverse=True)
    shapes: list[Shape | None] = []
    refusals: dict[str, int] = {}
    counts = np.bincount(index.reshape(-1), minlength=len(unique))
    for i, (cause, count) in enumerate(zip(unique, counts)):
        if i % _SHOWN == 0:
            show(i / len(unique))
        command, force = np.split(cause, [commands.shape[1]])
        try:
            shapes.append(
                model.forward(command) if not np.any(force) else loaded(model, command, force)
            )
        except ValueError as error:  # includes ModelError and LimitError
            shapes.append(None)
            text = str(error)
            refusals[text] = refusals.get(text, 0) + int(count)
    chosen = index.reshape(-1)
    predicted = np.array([shape is not None for shape in shapes], dtype=bool)[chosen]
    notes = [*_clipped_note(clipped), *_beyond(limits, commands, predicted)]
    if refusals:
        first = max(refusals, key=lambda text: refusals[text])
        notes.append(f'{sum(refusals.values())} rows refused, as: {first}')
    if strict and len(refusals) and all(shape is None for shape in shapes):
        raise ModelError(f'{run.source}: model {model.name} refuses every row: {first}')
    points, axes = as_measured(rig, run, model, shapes)
    return Prediction(
        model.name,
        {name: values[chosen] for name, values in points.items()},
        {name: values[chosen] for name, values in axes.items()},
        tuple(notes),
    )


def _beyond(limits: ActuatorLimits, commands: Array, predicted: NDArray[np.bool_]) -> list[str]:
    """Return a note if predicted rows (n,) have commands beyond the limits of actuators."""
    over = np.maximum(limits.position_min - commands, commands - limits.position_max)
    over = np.where(
        over > limits.rounding, over / (limits.position_max - limits.position_min), 0.0
    )
    rows = predicted & over.any(axis=1)
    if not rows.any():
        return []
    i, k = np.unravel_index(np.argmax(np.where(rows[:, None], over, 0.0)), over.shape)
    least, most = limits.position_min[k], limits.position_max[k]
    furthest = LimitError(limits.names[k], commands[i, k], least, most, limits.unit)
    return [f'{rows.sum()} rows predicted beyond the limits of actuators; furthest: {furthest}']


def loaded(model: ArmModel, command: Array, force: Array) -> Shape:
    """
    Return the shape under a force (3,) [N] that rotates with the tip.

    Raises
    ------
    ModelError
        If the model refuses the load, or the iteration finds no equilibrium.

    """
    shape = model.forward(command)
    turn = shape.tip[:3, :3]
    for _ in range(_TURNS):
        shape = model.forward(command, turn @ force)
        step = log_so3(shape.tip[:3, :3] @ turn.T)
        if np.abs(step).max() < _STILL_RAD:
            return shape
        # Short steps: with full ones, a force that follows the tip may oscillate.
        turn = exp_so3(_RELAXATION * step) @ turn
    raise ModelError(
        f'no equilibrium was found under {np.linalg.norm(force):.3g} N that turn with the tip'
    )


def within_limits(commands: Array, limits: ActuatorLimits) -> tuple[Array, int]:
    """Return commands (n, m), clipped if barely beyond a limit, and the number of rows clipped."""
    low, high = limits.position_min, limits.position_max
    slack = BEYOND * (high - low)
    near = np.clip(commands, low, high)
    barely = np.abs(near - commands) <= slack
    taken = np.where(barely, near, commands)
    return taken, int(np.sum(np.any(taken != commands, axis=1)))


def _clipped_note(clipped: int) -> list[str]:
    if not clipped:
        return []
    return [
        f'{clipped} rows up to {100 * BEYOND:g} % of its range beyond the limit of an '
        'actuator: taken at the limit'
    ]


def as_measured(
    rig: Rig, run: MeasuredRun, model: ArmModel, shapes: Sequence[Shape | None]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return points and axes (n, 3) in the measurement frame, for shapes in the base frame."""
    index = {name: k for k, name in enumerate(rig.section_names)}
    frames = np.full((len(shapes), len(index), 4, 4), np.nan)
    for i, shape in enumerate(shapes):
        if shape is not None:
            tips = shape.section_tips
            if not has_finite_floats(tips, frames.shape[1:]):  # one would be that of all sections
                raise _unfit(model, tips, f'{numbers(frames.shape[1:])} finite')
            frames[i] = tips
    return _of_frames(rig, run, frames)


def _of_frames(
    rig: Rig, run: MeasuredRun, frames: Array
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return points and axes (n, 3) in the measurement frame, for tips (n, sections, 4, 4)."""
    index = {name: k for k, name in enumerate(rig.section_names)}
    turn, origin = run.mount.rotation, run.mount.position
    points = {}
    for name, place in run.places.items():
        frame = frames[:, index[place.section]]
        point = frame[:, :3, 3] + frame[:, :3, :3] @ np.asarray(place.offset_m)
        points[name] = origin + point @ turn.T
    axes = {name: frames[:, index[name], :3, 2] @ turn.T for name in run.axes}
    return points, axes


def _unfit(model: ArmModel, frames: object, expected: str) -> AnswerError:
    return AnswerError(misfit(described_model(model), 'section_tips', frames, expected))
