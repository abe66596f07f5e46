"""The devices of cable-driven arms: a board with a stepper motor for each cable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softarm_ros.drivers.stepper_config import (
    BoardLimitError,
    CableLimits,
    board_limits,
)
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import FieldPath, Problem, listed

if TYPE_CHECKING:
    from softarm_ros.control.limits import ActuatorLimits


def cable_limits(limits: ActuatorLimits) -> CableLimits:
    """Return the actuator limits in the form that the driver takes."""
    return CableLimits(
        limits.position_min, limits.position_max, limits.max_speed, limits.max_acceleration
    )


@check('actuators', 'devices')
def _motors_of_the_actuators(rig: Any) -> Iterator[Problem]:
    motors = [motor.name for motor in rig.devices.steppers.motors]
    names = [a.name for a in rig.actuators]
    if motors != names:
        yield Problem(
            ('drives', 'steppers', 'motors'),
            f'expected one for each actuator, in the same order: {listed(names)}',
            listed(motors),
        )


@check('actuators', 'devices')
def _limits_of_the_board(rig: Any) -> Iterator[Problem]:
    if len(rig.devices.steppers.motors) != len(rig.actuators):
        return
    columns = ('position_min_m', 'position_max_m', 'max_speed_m_s', 'max_acceleration_m_s2')
    limits = CableLimits(*(np.array([getattr(a, c) for a in rig.actuators]) for c in columns))
    try:
        board_limits(rig.devices.steppers, limits)
    except BoardLimitError as error:
        path: tuple[str | int, ...] = ('drives', 'steppers', 'motors', error.motor, error.field)
        if error.field == 'acceleration_m_s2':
            path = ('drives', 'steppers', error.field)
        yield Problem(path, error.text)


@check('actuators', 'devices')
def _pulleys(rig: Any) -> Iterator[Problem]:
    yield from other_pulleys(rig, ('drives', 'steppers', 'motors'), rig.devices.steppers.motors)


def other_pulleys(rig: Any, path: FieldPath, motors: Sequence[Any]) -> Iterator[Problem]:
    """Yield a problem for each motor whose pulley is not the one that its actuator states."""
    for i, (motor, actuator) in enumerate(zip(motors, rig.actuators)):
        stated = actuator.pulley_radius_m
        if stated is not None and stated != motor.pulley_radius_m:
            yield Problem(
                (*path, i, 'pulley_radius_m'),
                f'expected {stated:g}, as arm.actuators[{i}].pulley_radius_m',
                f'{motor.pulley_radius_m:g}',
            )


CHECKS = checks_in(globals())
