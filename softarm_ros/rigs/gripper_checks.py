"""Consistency of grippers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.rigs.checks import check
from softarm_ros.rigs.errors import Problem


@check('gripper')
def _vacuum_opens(rig: Any) -> Iterator[Problem]:
    if rig.gripper.open_pressure_Pa >= rig.gripper.close_pressure_Pa:
        yield Problem(
            ('gripper', 'open_pressure_Pa'),
            f'expected less than close_pressure_Pa = {rig.gripper.close_pressure_Pa:g}: vacuum '
            'opens, pressure closes',
            f'{rig.gripper.open_pressure_Pa:g}',
        )


SOFT_FINGERS = (_vacuum_opens,)
