"""The parts that a rig file names: which they are, and their blocks validated by their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.plant.config import MocapConfig, PlantBase
from softarm_ros.rigs.arms.base import ArmBase
from softarm_ros.rigs.checks import CHECKS as COMMON_CHECKS
from softarm_ros.rigs.checks import Check
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.errors import FieldPath, Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part, kinds_of, parts
from softarm_ros.rigs.validation import PART_ERROR

DEFAULT_ARM = 'cable_driven'
DEFAULT_SENSOR = 'motion_capture'
# Role of sensors that stand in for a real one in the simulated arm.
SIMULATED = 'simulated'

BlockT = TypeVar('BlockT', bound=ConfigBlock)


def wrong_part(path: FieldPath, value: Any, message: str) -> ValidationError:
    """Return the error of a field that names a part which does not do."""
    error = PydanticCustomError(PART_ERROR, '{message}', {'message': message})
    return _errors([InitErrorDetails(type=error, loc=path, input=value)])


def _errors(found: list[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data('rig', found)


def arm_part(kind: Any) -> Part:
    """
    Return the arm that a rig file's `kind` names.

    Raises
    ------
    ValidationError
        If there is none; lists those there are.

    """
    known = kinds_of('arm')
    if not isinstance(kind, str) or kind not in known:
        hint = did_you_mean(kind, known) if isinstance(kind, str) else ''
        message = f'no such kind of arm{hint}; known: {listed(known)}'
        raise wrong_part(('kind',), kind, message)
    part = _found('arm', kind, ('kind',))
    if not issubclass(part.config, ArmBase):
        raise wrong_part(('kind',), kind, f'config of part {part.name} is no ArmBase')
    return part


def body_part(arm: Part, kind: Any) -> Part:
    """Return the body that `plant.kind` names, the arm's usual one for None; as `arm_part`."""
    kind = _config(arm).BODY if kind is None else kind
    if not isinstance(kind, str):
        raise wrong_part(('kind',), kind, 'expected text')
    part = _fitting('body', kind, arm, ('kind',))
    if not issubclass(part.config, PlantBase):
        raise wrong_part(('kind',), kind, f'config of part {part.name} is no PlantBase')
    return part


def sensor_part(kind: Any) -> Part:
    """Return the simulated sensor of poses that `plant.mocap.kind` names; as `arm_part`."""
    kind = DEFAULT_SENSOR if kind is None else kind
    if not isinstance(kind, str):
        raise wrong_part(('kind',), kind, 'expected text')
    if kind in kinds_of('sensors'):
        part = _found('sensors', kind, ('kind',))
        if SIMULATED in part.builders and issubclass(part.config, MocapConfig):
            return part
    known = [part.kind for part in parts('sensors') if SIMULATED in part.builders]
    hint = did_you_mean(kind, known)
    raise wrong_part(('kind',), kind, f'no such simulated sensor{hint}; known: {listed(known)}')


def plant_of(arm: Part, value: Mapping[str, Any], strict: bool | None) -> PlantBase:
    """Return the plant of a block `plant`; ValidationError with all that is wrong."""
    part = body_part(arm, value.get('kind'))
    fields, problems = {**value, 'kind': part.kind}, []
    mocap = fields.get('mocap')
    if isinstance(mocap, Mapping):
        try:
            fields['mocap'] = validated(sensor_part(mocap.get('kind')).config, mocap, strict)
        except ValidationError as error:
            problems = [_within('mocap', detail) for detail in error.errors()]
            del fields['mocap']
    config = cast('type[PlantBase]', part.config)
    try:
        plant = validated(config, fields, strict)
    except ValidationError as error:
        others = [d for d in error.errors() if not (problems and d['loc'] == ('mocap',))]
        raise _errors([*problems, *map(_as_it_is, others)]) from error
    return plant


def combination_problems(
    arm: Part, plant: PlantBase | None, devices: Devices | None
) -> Iterator[Problem]:
    """Yield a problem if drives and body are attached to the arm in different ways."""
    if plant is None or devices is None:
        return
    body, drive = body_part(arm, plant.kind), find_part('drives', devices.DRIVING)
    role = role_of(drive, arm)
    if role in body.builders:
        return
    known = [part.kind for part in parts('body') if role in part.builders]
    yield Problem(
        ('plant', 'kind'),
        f'is built for {role_of(body, arm)!r}, and devices.{drive.kind} serves {role!r}; expected '
        f'one of {listed(known) or "none"}, or another device',
        repr(body.kind),
    )


def role_of(part: Part, arm: Part) -> str:
    """Return the first of the arm's attachments that a body or drive is built for."""
    return next(role for role in arm.builders if role in part.builders)


@dataclass(frozen=True)
class DeviceParts:
    """The device that drives, and the class of each block that may stand beside it."""

    driving: Part
    needed: Mapping[str, type[ConfigBlock]]
    optional: Mapping[str, type[ConfigBlock]]

    @property
    def classes(self) -> dict[str, type[ConfigBlock]]:
        """Name -> class of all blocks."""
        return {self.driving.kind: self.driving.config, **self.needed, **self.optional}


def device_parts(arm: Part, value: Mapping[str, Any]) -> DeviceParts:
    """
    Return which devices a block `devices` has: one that drives, and what goes with it.

    Raises
    ------
    ValidationError
        If none drives the actuators of this arm; lists those that would.

    """
    registered = [name for name in value if name in kinds_of('drives')]
    found = [_found('drives', name, (name,)) for name in registered]
    beside = {name for part in found for name in (*part.needs, *part.takes)}
    driving = [part for part in found if part.kind not in beside and _fits(part, arm)]
    if driving:
        return DeviceParts(driving[0], _classes(driving[0].needs), _classes(driving[0].takes))
    known = list(drives_of(arm))
    for name in value:
        if name not in registered and name not in beside:
            hint = did_you_mean(name, known) or f'; known: {listed(known)}'
            raise wrong_part((name,), value[name], f'unknown field {name!r}{hint}')
    for part in found:  # says for what it is built
        _fitting('drives', part.kind, arm, (part.kind,))
    message = f'none drives the actuators of this arm; expected one of {listed(known) or "none"}'
    raise wrong_part((), dict(value), message)


def drives_of(arm: Part) -> dict[str, type[ConfigBlock]]:
    """Return the devices that can drive an arm, with the fields of each; all are imported."""
    return {part.kind: part.config for part in parts('drives') if _fits(part, arm)}


def devices_of(arm: Part, value: Mapping[str, Any], strict: bool | None) -> Devices:
    """Return the devices of a block `devices`; ValidationError with all that is wrong."""
    which = device_parts(arm, value)
    classes, problems = which.classes, []
    blocks: dict[str, ConfigBlock | None] = dict.fromkeys(which.optional)
    for name, config in classes.items():
        if value.get(name) is None:
            if name not in which.optional:
                problems.append(InitErrorDetails(type='missing', loc=(name,), input=value))
            continue
        try:
            blocks[name] = validated(config, value[name], strict)
        except ValidationError as error:
            problems += [_within(name, detail) for detail in error.errors()]
    problems += [
        InitErrorDetails(type='extra_forbidden', loc=(name,), input=value[name])
        for name in value
        if name not in classes
    ]
    if problems:
        raise _errors(problems)
    return Devices.of(which.driving.kind, blocks)


def validated(config: type[BlockT], value: Any, strict: bool | None) -> BlockT:
    """Return a block of a rig file with the fields of its part."""
    return config.model_validate(value, strict=strict, context={'strict': strict})


def checks_of(arm: Part, plant: PlantBase | None, devices: Devices | None) -> tuple[Check, ...]:
    """
    Return what must hold between the fields of a rig.

    Checks that look at the plant know the arm's usual body; another one brings its own.
    """
    found = _checks_of_part(arm)
    if devices is not None:
        found += _checks_of_part(find_part('drives', devices.DRIVING))
    if plant is not None and plant.kind not in (None, _config(arm).BODY):
        found = [check for check in found if 'plant' not in check.needs]
        found += _checks_of_part(find_part('body', plant.kind))
    return (*COMMON_CHECKS, *found)


def _checks_of_part(part: Part) -> list[Check]:
    found: list[Check] = []
    for target in part.checks:
        found += _at(target)
    return found


def _classes(targets: Mapping[str, str]) -> dict[str, type[ConfigBlock]]:
    return {name: _at(target) for name, target in targets.items()}


def _at(target: str) -> Any:
    """Return what 'module:NAME' names."""
    module, _, name = target.partition(':')
    return getattr(import_module(module), name)


def _config(arm: Part) -> type[ArmBase]:
    return cast('type[ArmBase]', arm.config)


def _fits(part: Part, arm: Part) -> bool:
    return any(role in part.builders for role in arm.builders)


def _found(family: str, kind: str, path: FieldPath) -> Part:
    try:
        return find_part(family, kind)
    except RigError as error:
        raise wrong_part(path, kind, str(error)) from error


def _fitting(family: str, kind: str, arm: Part, path: FieldPath) -> Part:
    """Return a part that is built for what drives of this arm are attached to."""
    if kind in kinds_of(family):
        part = _found(family, kind, path)
        if _fits(part, arm):
            return part
        builders = [name for name in part.builders if ', ' not in name]
        why = f'is built for {listed(builders)}, and this arm has {listed(arm.builders)}; '
    else:
        why = ''
    known = [part.kind for part in parts(family) if _fits(part, arm)]
    why = why or f'no such {family}{did_you_mean(kind, known)}; '
    raise wrong_part(path, kind, f'{why}known: {listed(known)}')


def _within(name: str, detail: Any) -> InitErrorDetails:
    """Return one of the errors of a block as an error of the mapping around it."""
    return _as_it_is({**detail, 'loc': (name, *detail['loc'])})


def _as_it_is(detail: Any) -> InitErrorDetails:
    """Return an error, as it was found, to be found again."""
    kind: Any = detail['type']
    context = detail.get('ctx', {})
    if kind == PART_ERROR:
        kind = PydanticCustomError(PART_ERROR, '{message}', context)
    return InitErrorDetails(type=kind, loc=detail['loc'], input=detail['input'], ctx=context)
