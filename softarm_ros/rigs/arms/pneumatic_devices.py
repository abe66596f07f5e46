"""Checks of a DAQ that drives an arm: channels, ranges of regulators and sensors, gripper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.drivers.daq_actuators import OF_UNIT, REGULATORS, require_channels
from softarm_ros.drivers.gripper import require_channels as require_gripper_channels
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem


@check('actuators', 'devices')
def _channels(rig: Any) -> Iterator[Problem]:
    daq, names = rig.devices.daq, [actuator.name for actuator in rig.actuators]
    streamed, kind = [part.name for part in daq.streamed], OF_UNIT[rig.actuators[0].unit]
    try:
        require_channels([part.name for part in daq.inputs], streamed, names, kind.suffix)
    except ValueError as error:
        yield Problem(('drives', 'daq'), str(error))
        return
    for field in ('inputs', 'outputs'):
        for i, part in enumerate(getattr(daq, field)):
            if part.name.removesuffix(kind.suffix) in names and part.unit != kind.unit:
                yield Problem(
                    ('drives', 'daq', field, i, 'unit'), f'expected {kind.unit}', repr(part.unit)
                )


@check('actuators', 'play_compensation', 'devices')
def _ranges(rig: Any) -> Iterator[Problem]:
    daq = rig.devices.daq
    most = {actuator.name: actuator.pressure_max_Pa for actuator in rig.actuators}
    for i, part in enumerate(daq.outputs):
        wanted = most.get(part.name.removesuffix(REGULATORS.suffix), 0.0)
        needed = wanted + 0.5 * rig.play_compensation.play_Pa
        if wanted and part.streamed and part.high < needed:
            yield Problem(
                ('drives', 'daq', 'outputs', i, 'high'),
                f'expected at least {needed:g}: pressure_max_Pa and half of '
                'arm.play_compensation.play_Pa',
                f'{part.high:g}',
            )
        if wanted and part.low > 0.0:
            yield Problem(
                ('drives', 'daq', 'outputs', i, 'low'),
                'expected at most 0, where the valve is shut',
                f'{part.low:g}',
            )
    for i, part in enumerate(daq.inputs):
        wanted = most.get(part.name, 0.0)
        measured = float(
            part.value(part.max_V if part.open_above_V is None else part.open_above_V)
        )
        if wanted and measured <= wanted:
            yield Problem(
                ('drives', 'daq', 'inputs', i, 'scale'),
                f'expected a range beyond pressure_max_Pa = {wanted:g}',
                f'up to {measured:g}',
            )
        if wanted and part.high is not None and part.high <= wanted:
            yield Problem(
                ('drives', 'daq', 'inputs', i, 'high'),
                f'expected more than pressure_max_Pa = {wanted:g}, else full pressure stops '
                'the arm',
                f'{part.high:g}',
            )


@check('devices')
def _gripper_channels(rig: Any) -> Iterator[Problem]:
    gripper = rig.devices.gripper
    if gripper is None:
        return
    try:
        require_gripper_channels(gripper, rig.devices.daq)
    except ValueError as error:
        field = str(error).removeprefix('gripper ').split(':', maxsplit=1)[0]
        known = field in type(gripper).model_fields
        path = ('drives', 'gripper', field) if known else ('drives', 'gripper')
        yield Problem(path, str(error), repr(getattr(gripper, field)) if known else 'beyond it')


@check('gripper', 'devices')
def _gripper_pressures(rig: Any) -> Iterator[Problem]:
    gripper = rig.devices.gripper
    if gripper is None:
        return
    for field in ('open_pressure_Pa', 'close_pressure_Pa'):
        wanted, found = getattr(rig.gripper, field), getattr(gripper, field)
        if wanted != found:
            yield Problem(
                ('drives', 'gripper', field),
                f'expected {wanted:g} as in gripper.{field}, which tasks use',
                f'{found:g}',
            )


@check('devices', 'plant')
def _simulated(rig: Any) -> Iterator[Problem]:
    of_gripper = rig.devices.gripper is not None and getattr(rig, 'gripper', None) is None
    of_sensor = rig.devices.daq.force_sensor is not None
    for field, wired, block in (
        ('gripper', of_gripper, 'drives.gripper'),
        ('wrench_sensor', of_sensor, 'drives.daq.force_sensor'),
    ):
        if wired and getattr(rig.plant, field, True) is None:
            yield Problem(
                ('plant', field), f'expected a block: {block} needs a simulated device', 'none'
            )


CHECKS = checks_in(globals())
