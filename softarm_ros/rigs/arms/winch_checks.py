"""Consistency of the winches of a DAQ with the cables they pull."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.drivers.daq_actuators import WINCHES
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem


@check('actuators', 'pretension_N', 'devices')
def _ranges(rig: Any) -> Iterator[Problem]:
    daq = rig.devices.daq
    most = {actuator.name: actuator.tension_max_N for actuator in rig.actuators}
    for i, part in enumerate(daq.outputs):
        wanted = most.get(part.name.removesuffix(WINCHES.suffix), 0.0)
        place = ('drives', 'daq', 'outputs', i)
        if wanted and part.high < wanted:
            yield Problem(
                (*place, 'high'), f'expected at least tension_max_N = {wanted:g}', f'{part.high:g}'
            )
        if wanted and part.low > rig.pretension_N:
            yield Problem(
                (*place, 'low'),
                f'expected at most arm.pretension_N = {rig.pretension_N:g}',
                f'{part.low:g}',
            )
        if wanted and part.safe is not None and part.safe > rig.pretension_N:
            yield Problem(
                (*place, 'safe'),
                f'expected at most arm.pretension_N = {rig.pretension_N:g}, or null',
                f'{part.safe:g}',
            )
    for i, part in enumerate(daq.inputs):
        wanted = most.get(part.name, 0.0)
        if wanted and part.high is not None and part.high <= wanted:
            yield Problem(
                ('drives', 'daq', 'inputs', i, 'high'),
                f'expected more than tension_max_N = {wanted:g}, else full tension stops the arm',
                f'{part.high:g}',
            )


CHECKS = checks_in(globals())
