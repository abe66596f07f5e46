"""Compiled motion of open-loop steppers, one per cable."""

from __future__ import annotations

import math
from typing import NamedTuple

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


class StepperParameters(NamedTuple):
    """Limits and play, each (m,): [m/s], [m/s^2], [m], [m]."""

    max_speed: Array
    max_acceleration: Array
    backlash: Array
    slack: Array


class StepperState(NamedTuple):
    """
    State of the motors and pulleys, each (m,).

    Attributes
    ----------
    target, position, velocity
        Of the motor, as cable length [m, m, m/s].
    pulley
        Position after the play [m].
    contraction
        Of the cable: pulley minus slack [m].

    """

    target: Array
    position: Array
    velocity: Array
    pulley: Array
    contraction: Array


@kernel(allocates=False)
def step_motors(steppers: StepperParameters, motors: StepperState, h: float) -> None:
    """Advance every motor by h [s] and move its pulley within the play."""
    for i in range(motors.target.shape[0]):
        position, velocity = advance_motor(
            motors.position[i],
            motors.velocity[i],
            motors.target[i],
            steppers.max_speed[i],
            steppers.max_acceleration[i],
            h,
        )
        motors.position[i], motors.velocity[i] = position, velocity
        _drag(steppers, motors, i)


@kernel(allocates=False)
def turn_motors(steppers: StepperParameters, motors: StepperState, h: float) -> None:
    """Advance every motor by h [s] at its present velocity, without its limits."""
    for i in range(motors.target.shape[0]):
        motors.position[i] += h * motors.velocity[i]
        _drag(steppers, motors, i)


@kernel(allocates=False)
def _drag(steppers: StepperParameters, motors: StepperState, i: int) -> None:
    """Move the pulley with its motor, within the play."""
    position, play = motors.position[i], 0.5 * steppers.backlash[i]
    motors.pulley[i] = min(max(motors.pulley[i], position - play), position + play)
    motors.contraction[i] = motors.pulley[i] - steppers.slack[i]


@kernel(allocates=False)
def advance_motor(
    position: float, velocity: float, target: float, speed: float, acceleration: float, h: float
) -> tuple[float, float]:
    """
    Return position [m] and velocity [m/s] after h [s] of a trapezoidal motion to `target`.

    Speed and acceleration limits hold within the step as well. The target is reached without
    overshoot, unless it lies behind or within the stopping distance; then the motor stops first.
    """
    step = acceleration * h
    distance = target - position
    side = 1.0
    if velocity < 0.0 or (velocity == 0.0 and distance < 0.0):
        side = -1.0
    v, d = side * velocity, side * distance
    stopping = 0.5 * v * v / acceleration
    # Rounding must not turn a motion on the braking parabola into a missed target.
    slip = 1e-12 * (abs(position) + abs(target)) + 1e-18
    if d < stopping - slip:
        # The target is too close or behind: brake at the limit.
        if v <= step:
            return position + side * stopping, 0.0
        return position + side * (v - 0.5 * step) * h, side * (v - step)
    peak = math.sqrt(max(acceleration * d + 0.5 * v * v, 0.0))
    if 2.0 * peak - v <= step and peak <= speed:
        return target, 0.0
    inside = max(0.25 * step * step - step * v + 2.0 * acceleration * d, 0.0)
    faster = min(min(v + step, speed), math.sqrt(inside) - 0.5 * step)
    faster = max(faster, max(v - step, 0.0))
    return position + side * 0.5 * (v + faster) * h, side * faster
