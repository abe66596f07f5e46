"""Consistency of the servos of a Dynamixel bus with the cables they wind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softarm_ros.drivers.dynamixel.config import profiles
from softarm_ros.drivers.stepper_config import BoardLimitError, CableLimits
from softarm_ros.rigs.arms.cable_devices import other_pulleys
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem, listed

_DEVICE = ('drives', 'dynamixel')


@check('actuators', 'devices')
def _servos_of_the_actuators(rig: Any) -> Iterator[Problem]:
    servos = [servo.name for servo in rig.devices.dynamixel.servos]
    names = [a.name for a in rig.actuators]
    if servos != names:
        yield Problem(
            (*_DEVICE, 'servos'),
            f'expected one for each actuator, in the same order: {listed(names)}',
            listed(servos),
        )


@check('actuators', 'devices')
def _limits_of_the_servos(rig: Any) -> Iterator[Problem]:
    config = rig.devices.dynamixel
    if len(config.servos) != len(rig.actuators):
        return
    columns = ('position_min_m', 'position_max_m', 'max_speed_m_s', 'max_acceleration_m_s2')
    limits = CableLimits(*(np.array([getattr(a, c) for a in rig.actuators]) for c in columns))
    try:
        profiles(config, limits)
    except BoardLimitError as error:
        path: tuple[str | int, ...] = (*_DEVICE, 'servos', error.motor, error.field)
        if error.field == 'acceleration_m_s2':
            path = (*_DEVICE, error.field)
        yield Problem(path, error.text)


@check('actuators', 'devices')
def _pulleys(rig: Any) -> Iterator[Problem]:
    yield from other_pulleys(rig, (*_DEVICE, 'servos'), rig.devices.dynamixel.servos)


CHECKS = checks_in(globals())
