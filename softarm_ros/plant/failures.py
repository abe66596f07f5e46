"""Conversion of a status of the compiled steps to an error for the user."""

from __future__ import annotations

import numpy as np

from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.step_kernels import (
    CRUSHED,
    FOLDED,
    MAX_JOINT_RAD,
    MIN_STRETCH,
    NOT_FINITE,
    OK,
    PINCHED,
)


def require_ok(status: int, where: str) -> None:
    """Raise `PlantError`, naming a place of the arm, unless a kernel's status is OK."""
    if status == OK:
        return
    if status == FOLDED:
        raise PlantError(
            f'{where} bends by more than {np.rad2deg(MAX_JOINT_RAD):.0f} deg: the arm has folded'
        )
    if status == CRUSHED:
        raise PlantError(
            f'{where} is compressed to less than {100.0 * MIN_STRETCH:.0f} % of its length'
        )
    if status == PINCHED:
        raise PlantError(
            f'{where} has no length left on its inner side for a cable: the arm has buckled'
        )
    if status == NOT_FINITE:
        raise PlantError(f'motion of {where} is no longer finite')
    raise PlantError('the arm does not come to rest')
