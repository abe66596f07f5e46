"""Consistency of chambers on pressure regulators with their simulation, for any kind of arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softarm_ros.rigs.checks import as_many, as_many_sections, check
from softarm_ros.rigs.errors import Problem

MOST_TURNED_DEG = 10.0


@check('actuators', 'plant')
def _regulators(rig: Any) -> Iterator[Problem]:
    regulators = rig.plant.regulators
    for field in ('gain', 'offset_Pa'):
        path, count = ('plant', 'regulators', field), len(getattr(regulators, field))
        yield from as_many(path, count, 'value', 'one a chamber', len(rig.actuators))
    most = max(a.pressure_max_Pa for a in rig.actuators)
    if regulators.max_pressure_Pa < most:
        yield Problem(
            ('plant', 'regulators', 'max_pressure_Pa'),
            f'expected at least {most:g}, the largest pressure_max_Pa of actuators',
            f'{regulators.max_pressure_Pa:g}',
        )


@check('sections', 'plant')
def _sections(rig: Any) -> Iterator[Problem]:
    yield from as_many_sections(rig)


@check('sections', 'actuators', 'plant')
def _angles(rig: Any) -> Iterator[Problem]:
    from softarm_ros.plant.pneumatic.chambers import ANGLES_RAD

    for section, real in zip(rig.sections, rig.plant.sections):
        own = [i for i, a in enumerate(rig.actuators) if a.section == section.name]
        for i, angle in zip(own, np.degrees(ANGLES_RAD) + real.turn_deg):
            found = rig.actuators[i].angle_deg
            if abs((found - angle + 180.0) % 360.0 - 180.0) > MOST_TURNED_DEG:
                yield Problem(
                    ('arm', 'actuators', i, 'angle_deg'),
                    f'expected within {MOST_TURNED_DEG:g} of {angle % 360.0:g}, where the body '
                    f'{rig.plant.kind!r} has this chamber',
                    f'{found:g}',
                )


@check('gripper', 'plant')
def _gripper(rig: Any) -> Iterator[Problem]:
    if rig.plant.gripper is None:
        yield Problem(
            ('plant', 'gripper'),
            'expected a block that simulates the `gripper` of the rig',
            'none',
        )


CHECKS = (_regulators, _gripper)
# Checks for an arm of another kind than the body's own, which states its chambers' angles.
OTHER_ARM = (_sections, _angles)
