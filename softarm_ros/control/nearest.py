"""Search for the configuration within an arm's limits whose tip is nearest to a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.controller import VelocityBounds
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.quadratic import within_bounds
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture

_STEPS = 80
_TRUST = 0.25  # largest step, as a share of each coordinate's scale
_DAMPING = 1e-5  # relative to the arm's length squared
_EXACT = 1e-6  # share of the arm's length: a smaller distance ends the search
_STALLED = 1e-5  # share of the arm's length: a step that gains less ends the search
_INSIDE = 1e-3  # margin to the end of an actuator's range, as its share, for linearization errors
_HALVINGS = 8
_DRAWN_IN = (1.0, 0.99, 0.95, 0.85, 0.7, 0.5)  # shares of the distance from rest to a start


@dataclass(frozen=True)
class Nearest:
    """End of a search: configuration (dof,), its tip (3,) [m], distance from the target."""

    configuration: Array
    tip: Array
    miss_m: float


def nearest_configuration(
    model: ArmModel,
    room: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
    target: Array,
    start: Array,
) -> Nearest:
    """
    Move a configuration (dof,) until its tip is nearest to a target (3,) [m], within all limits.

    Damped least squares; each step is a small quadratic programme with bounds. The search ends at
    the target, or where no step leads nearer.

    Raises
    ------
    ValueError
        If the model cannot compute a shape at the start.

    """
    scale = np.asarray(model.configuration_scale, dtype=float)
    length = model.rest_length_m
    here = model.posture_of(configuration_limits.clipped(np.array(start, dtype=float)))
    miss = float(np.linalg.norm(target - here.tip))
    for _ in range(_STEPS):
        if miss <= _EXACT * length:
            break
        step = _step(here, target, room, configuration_limits, scale, length)
        if step is None:
            break
        found = _shortened(model, room, configuration_limits, here, step, target, miss)
        if found is None:
            break
        gained = miss - found[1]
        here, miss = found
        if gained < _STALLED * length:
            break
    return Nearest(here.configuration.copy(), here.tip.copy(), miss)


def allowed(
    model: ArmModel,
    room: ActuatorLimits,
    limits: ConfigurationLimits,
    configuration: Array,
) -> bool:
    """Return whether a configuration (dof,) and its actuation are within all limits."""
    try:
        limits.check(configuration, model.configuration_names)
        posture = model.posture_of(configuration)
        room.check(posture.actuation)
    except ValueError:
        return False
    return True


def nearest_from(
    model: ArmModel,
    room: ActuatorLimits,
    limits: ConfigurationLimits,
    target: Array,
    start: Array,
) -> Nearest | None:
    """
    Search as `nearest_configuration`, from any start (dof,); None if it ends beyond a limit.

    A search does not return from beyond a limit, so a start beyond one is first moved towards the
    arm at rest. None also if the model has no shape there.
    """
    begin = _drawn_in(model, room, limits, start)
    try:
        found = nearest_configuration(model, room, limits, target, begin)
    except ValueError:
        return None
    return found if allowed(model, room, limits, found.configuration) else None


def _drawn_in(
    model: ArmModel,
    room: ActuatorLimits,
    limits: ConfigurationLimits,
    start: Array,
) -> Array:
    """Return the allowed configuration (dof,) nearest to a start on the line to rest."""
    rest = model.rest_configuration
    for share in _DRAWN_IN:
        begin = rest + share * (start - rest)
        if allowed(model, room, limits, begin):
            return begin
    return rest


def _step(
    here: Posture,
    target: Array,
    room: ActuatorLimits,
    limits: ConfigurationLimits,
    scale: Array,
    length: float,
) -> Array | None:
    J = here.tip_jacobian * scale
    H = J.T @ J + _DAMPING * length**2 * np.eye(len(scale))
    f = -(J.T @ (target - here.tip))
    weight = 1.0 / np.trace(H)
    span = room.position_max - room.position_min
    free = _INSIDE * span
    # An actuation that already exceeds the range must only not go further out.
    low = np.minimum(room.position_min + free - here.actuation, 0.0)
    high = np.maximum(room.position_max - free - here.actuation, 0.0)
    unit = 1.0 / np.maximum(span, 1e-300)
    rows, row_low, row_high = limits.velocity_bounds(here.configuration, 1.0)
    bounds = VelocityBounds(
        np.ascontiguousarray(
            np.vstack(
                [here.actuation_jacobian * scale * unit[:, None], rows * scale, np.eye(len(scale))]
            )
        ),
        np.concatenate([low * unit, row_low, np.full(len(scale), -_TRUST)]),
        np.concatenate([high * unit, row_high, np.full(len(scale), _TRUST)]),
    )
    # No step is always within: soft bounds would be exceeded, and the search end too early.
    x = within_bounds(H * weight, f * weight, bounds, soft=False)
    return None if x is None else np.asarray(x * scale)


def _shortened(
    model: ArmModel,
    room: ActuatorLimits,
    limits: ConfigurationLimits,
    here: Posture,
    step: Array,
    target: Array,
    miss: float,
) -> tuple[Posture, float] | None:
    """Return the posture after the step, or a shorter one, and its miss [m]; None if no nearer."""
    inside = room.hold(here.actuation)
    share = 1.0
    for _ in range(_HALVINGS):
        try:
            there = model.posture_of(limits.clipped(here.configuration + share * step), here)
            left = float(np.linalg.norm(target - there.tip))
            if left < miss and (room.hold(there.actuation) or not inside):
                return there, left
        except ValueError:  # the model cannot compute this configuration
            pass
        share *= 0.5
    return None
