"""Muscle lengths that bring an arm of parallel muscles to a pose, within their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import finite_array
from softarm_ros.geometry.poses import displacement, pose
from softarm_ros.models.arm_model import Array, InverseSolution, ModelError, Vector3
from softarm_ros.models.minimum_energy.muscles import clamp_lengths, muscle_lengths
from softarm_ros.models.minimum_energy.rod import node_poses

if TYPE_CHECKING:
    from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm, MuscleEquilibrium

_ITERATIONS = 30
_TIP_TOLERANCE = 1e-8  # of the arm's length, and in rad
_SAME_SHAPE = 1e-6  # of the arm's length, between tips


def search_lengths(
    arm: MinimumEnergyArm,
    position: Vector3,
    orientation: Array | None,
    guess: Array | None,
    tip_force: Vector3,
) -> InverseSolution:
    """
    Return what `MinimumEnergyArm.inverse` promises, by Newton's method within limits.

    A guess from which it does not arrive, or arrives at lengths under which the arm would settle
    into another shape, is given up for the start without one.
    """
    point = finite_array(position, (3,), 'position')
    target = pose(np.eye(3) if orientation is None else orientation, point)
    rows = 3 if orientation is None else 6
    if guess is not None:
        near = _search(arm, target, rows, arm.checked_lengths(guess).ravel(), tip_force)
        if near is not None and near.converged:
            return near
    held = arm.rod.reach(position, orientation, tip_force)
    if not held.converged:
        lengths = np.full(3 * arm.modules.modules, arm.neutral_length())
    else:
        lengths, _ = clamp_lengths(muscle_lengths(held, arm.modules), arm.modules)
    found = _search(arm, target, rows, lengths, tip_force)
    if found is None:
        raise ModelError(f'no stable shape to start from towards {np.round(point, 4).tolist()} m')
    return found


def _search(
    arm: MinimumEnergyArm, target: Array, rows: int, start: Array, tip_force: Vector3
) -> InverseSolution | None:
    """Return where the search from lengths `start` ends; None if the arm cannot have these."""
    lengths = start
    try:
        state = arm.equilibrium(lengths, tip_force)
    except ModelError:
        return None
    error = _error(arm, state, target, rows)
    for _ in range(_ITERATIONS):
        if _arrived(arm, error):
            break
        wanted = lengths + _bounded_step(
            arm, arm.state_jacobian(state, lengths, tip_force)[:rows], error, lengths
        )
        moved = _move(arm, lengths, wanted, tip_force, state, target, error)
        if moved is None:
            break
        lengths, state, error = moved
    message = _overload(arm, state) if _arrived(arm, error) else _why_short(arm, lengths, error)
    message = message or _other_shape(arm, lengths, state, tip_force)
    return InverseSolution(
        actuation=lengths,
        shape=arm.shape_of_state(state, lengths),
        residual=float(np.linalg.norm(error[:3])),
        converged=not message,
        message=message,
    )


def _other_shape(
    arm: MinimumEnergyArm, lengths: Array, state: MuscleEquilibrium, tip_force: Vector3
) -> str:
    """Return a message if the arm, left to itself under these lengths, takes another shape."""
    try:
        alone = arm.equilibrium(lengths, tip_force)
    except ModelError as error:
        return str(error)
    apart = float(np.linalg.norm(alone.positions[-1] - state.positions[-1]))
    if apart <= _SAME_SHAPE * arm.rest_length_m:
        return ''
    return f'under these lengths the arm also has a shape whose tip is {1e3 * apart:.1f} mm away'


def _error(arm: MinimumEnergyArm, state: MuscleEquilibrium, target: Array, rows: int) -> Array:
    tip = node_poses(state.nodes[-1:], state.positions[-1:])[0]
    return displacement(tip, target)[:rows]


def _arrived(arm: MinimumEnergyArm, error: Array) -> bool:
    linear = float(np.linalg.norm(error[:3])) / arm.rest_length_m
    return linear <= _TIP_TOLERANCE and float(np.linalg.norm(error[3:])) <= _TIP_TOLERANCE


def _bounded_step(arm: MinimumEnergyArm, jacobian: Array, error: Array, lengths: Array) -> Array:
    """Return the smallest change of length that closes `error`, muscles at limits excepted."""
    config = arm.modules
    low, high = config.min_length_m - lengths, config.max_length_m - lengths
    step, free = np.zeros(lengths.size), np.ones(lengths.size, dtype=bool)
    for _ in range(lengths.size):
        rest = error - jacobian[:, ~free] @ step[~free]
        step[free] = np.linalg.lstsq(jacobian[:, free], rest, rcond=1e-9)[0]
        outside = free & ((step < low) | (step > high))
        if not outside.any():
            break
        step = np.where(outside, np.clip(step, low, high), step)
        free &= ~outside
        if not free.any():
            break
    return np.clip(step, low, high)


def _move(
    arm: MinimumEnergyArm,
    lengths: Array,
    wanted: Array,
    tip_force: Vector3,
    state: MuscleEquilibrium,
    target: Array,
    error: Array,
) -> tuple[Array, MuscleEquilibrium, Array] | None:
    """Return the new lengths, state and error of the largest step that brings it closer."""
    scale = 1.0
    for _ in range(12):
        trial = lengths + scale * (wanted - lengths)
        try:
            moved = arm.equilibrium(trial, tip_force, state)
        except ModelError:
            scale *= 0.5
            continue
        remaining = _error(arm, moved, target, error.size)
        if np.linalg.norm(remaining) < (1.0 - 1e-3 * scale) * np.linalg.norm(error):
            return trial, moved, remaining
        scale *= 0.5
    return None


def _overload(arm: MinimumEnergyArm, state: MuscleEquilibrium) -> str:
    """Return which muscles would have to pull harder than they can, or nothing."""
    limit = arm.modules.max_pull_N
    return '; '.join(
        f'{name} would have to pull {tension:.1f} N, {limit:g} N at most'
        for name, tension in zip(arm.actuator_names, state.tensions)
        if tension > limit
    )


def _why_short(arm: MinimumEnergyArm, lengths: Array, error: Array) -> str:
    config = arm.modules
    at_limit = [
        f'{name} at {1e3 * value:.1f} mm'
        for name, value in zip(arm.actuator_names, lengths)
        if min(value - config.min_length_m, config.max_length_m - value) < 1e-9
    ]
    message = f'the tip stays {1e3 * np.linalg.norm(error[:3]):.3g} mm off its target'
    if error.size == 6:
        message += f' and {np.degrees(np.linalg.norm(error[3:])):.3g} deg'
    return message + (f'; at their limits: {", ".join(at_limit)}' if at_limit else '')
