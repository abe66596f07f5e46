"""Find the parts that a rig file names, and validate its blocks with their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import ValidationError, create_model
from pydantic_core import InitErrorDetails, PydanticCustomError

from softarm_ros.control.gripper import GRIPPER, USUAL_GRIPPER, GripperConfig
from softarm_ros.control.pose_topic import KIND, PoseTopicConfig
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.plant.config import AS_STATED, MocapConfig, PlantBase
from softarm_ros.rigs.arms.base import ArmBase
from softarm_ros.rigs.checks import Check
from softarm_ros.rigs.common_checks import CHECKS as COMMON_CHECKS
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.errors import FieldPath, Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part, kinds_of, parts
from softarm_ros.rigs.sensors import Sensors
from softarm_ros.rigs.validation import PART_ERROR

DEFAULT_SENSOR = 'motion_capture'
# Role of a sensor that simulates a real one on the simulated arm.
SIMULATED = 'simulated'
# Role of a sensor that a driver reads.
DRIVER = 'driver'

BlockT = TypeVar('BlockT', bound=ConfigBlock)


def wrong_part(path: FieldPath, value: Any, message: str) -> ValidationError:
    """Return the error for a field that names an unsuitable part."""
    error = PydanticCustomError(PART_ERROR, '{message}', {'message': message})
    return _errors([InitErrorDetails(type=error, loc=path, input=value)])


def _errors(found: list[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data('rig', found)


def arm_part(kind: Any) -> Part:
    """
    Return the arm that `arm.kind` of a rig file names.

    Raises
    ------
    ValidationError
        If there is none; the message lists the known ones.

    """
    known = kinds_of('arm')
    if not isinstance(kind, str) or kind not in known:
        if isinstance(kind, str):
            message = f'no such kind of arm{did_you_mean(kind, known)}; known: {listed(known)}'
        else:
            message = f'{"missing; " if kind is None else ""}expected one of {listed(known)}'
        raise wrong_part(('kind',), kind, message)
    part = _found('arm', kind, ('kind',))
    if not issubclass(part.config, ArmBase):
        raise wrong_part(('kind',), kind, f'config of part {part.name} is no ArmBase')
    return part


def named_arm(data: Mapping[str, Any]) -> Part | None:
    """Return the arm that the data of a rig file name, or None if there is none."""
    block = data.get('arm')
    try:
        return arm_part(block.get('kind') if isinstance(block, Mapping) else None)
    except ValidationError:
        return None


def body_part(arm: Part, kind: Any) -> Part:
    """Return the body that `plant.kind` names; None: the arm's usual one. Raises as `arm_part`."""
    kind = _config(arm).BODY if kind is None else kind
    if not isinstance(kind, str):
        raise wrong_part(('kind',), kind, 'expected text')
    part = _fitting('body', kind, arm, ('kind',))
    if not issubclass(part.config, PlantBase):
        raise wrong_part(('kind',), kind, f'config of part {part.name} is no PlantBase')
    return part


def sensor_part(kind: Any) -> Part:
    """Return the simulated sensor that `plant.pose_sensor.kind` names; raises as `arm_part`."""
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


def gripper_part(kind: Any) -> Part:
    """Return the gripper that `gripper.kind` names; None: the usual one. Raises as `arm_part`."""
    kind = USUAL_GRIPPER if kind is None else kind
    if not isinstance(kind, str):
        raise wrong_part(('kind',), kind, 'expected text')
    part = _found('gripper', kind, ('kind',))
    if not issubclass(part.config, GripperConfig):
        raise wrong_part(('kind',), kind, f'config of part {part.name} is no GripperConfig')
    return part


def named_gripper(data: Mapping[str, Any]) -> Part:
    """Return the gripper that the data of a rig file name, or the usual one if there is none."""
    block = data.get(GRIPPER)
    try:
        return gripper_part(block.get('kind') if isinstance(block, Mapping) else None)
    except ValidationError:
        return gripper_part(None)


def gripper_fields(gripper: Part, block: str) -> type[ConfigBlock]:
    """Return the class of a gripper's fields in a block of a rig, `drives` or `plant`."""
    if block not in gripper.takes:
        raise wrong_part((), gripper.kind, f'part {gripper.name} has no fields in {block}')
    return cast('type[ConfigBlock]', gripper.named(gripper.takes[block]))


def plant_of(
    arm: Part,
    gripper: Part,
    value: Mapping[str, Any],
    poses: PoseTopicConfig,
    medium: str,
    strict: bool | None,
) -> PlantBase:
    """
    Return the plant of a `plant` block; raise ValidationError with all its problems.

    Unless the block states otherwise, its sensor has the values of `poses`, and it is in
    `medium`. `gripper` gives the fields of a gripper at its tip.
    """
    part = body_part(arm, value.get('kind'))
    config = cast('type[PlantBase]', part.config)
    stated = {name: getattr(poses, name) for name in AS_STATED}

    def read_pose_sensor(block: Any) -> Any:
        if not isinstance(block, Mapping):
            return block
        return validated(sensor_part(block.get('kind')).config, {**stated, **block}, strict)

    def read_gripper(block: Any) -> Any:
        return validated(gripper_fields(gripper, 'plant'), block, strict)

    return config.model_validate(
        {'medium': medium, **value, 'kind': part.kind},
        strict=strict,
        context={
            'strict': strict,
            'read_pose_sensor': read_pose_sensor,
            'read_gripper': read_gripper,
        },
    )


def combination_problems(
    arm: Part, plant: PlantBase | None, devices: Devices | None
) -> Iterator[Problem]:
    """Yield a problem if drives and body need different attachments of the arm."""
    if plant is None or devices is None:
        return
    body, drive = body_part(arm, plant.kind), find_part('drives', devices.DRIVING)
    role = role_of(drive, arm)
    if role in body.builders:
        return
    known = [part.kind for part in parts('body') if role in part.builders]
    yield Problem(
        ('plant', 'kind'),
        f'is built for {role_of(body, arm)!r}, and drives.{drive.kind} serves {role!r}; expected '
        f'one of {listed(known) or "none"}, or another device',
        repr(body.kind),
    )


def role_of(part: Part, arm: Part) -> str:
    """Return the arm's first attachment that a body or drive is built for."""
    return next(role for role in arm.builders if role in part.builders)


@dataclass(frozen=True)
class DeviceParts:
    """The device that drives, and the classes of the blocks that go with it."""

    driving: Part
    needed: Mapping[str, type[ConfigBlock]]
    optional: Mapping[str, type[ConfigBlock]]

    @property
    def classes(self) -> dict[str, type[ConfigBlock]]:
        """Classes of all blocks, by name."""
        return {self.driving.kind: self.driving.config, **self.needed, **self.optional}


def device_parts(arm: Part, gripper: Part, value: Mapping[str, Any]) -> DeviceParts:
    """
    Return the device of a `drives` block that drives the arm, and the blocks that go with it.

    Raises
    ------
    ValidationError
        If no device drives the actuators of this arm, or several do; the message lists those that
        could.

    """
    registered = [name for name in value if name in kinds_of('drives')]
    found = [_found('drives', name, (name,)) for name in registered]
    beside = {name for part in found for name in (*part.needs, *part.takes)}
    driving = [part for part in found if part.kind not in beside and _fits(part, arm)]
    for part in driving[1:]:
        message = f'another drive beside drives.{driving[0].kind}; expected one for all actuators'
        raise wrong_part((part.kind,), value[part.kind], message)
    if driving:
        needs, takes = (_classes(driving[0], of) for of in (driving[0].needs, driving[0].takes))
        if GRIPPER in takes and GRIPPER in value and 'drives' in gripper.takes:
            takes |= _classes(gripper, {GRIPPER: gripper.takes['drives']})
        return DeviceParts(driving[0], needs, takes)
    known = list(drives_of(arm))
    for name in value:
        if name not in registered and name not in beside:
            hint = did_you_mean(name, known) or f'; known: {listed(known)}'
            raise wrong_part((name,), value[name], f'unknown field {name!r}{hint}')
    for part in found:  # raises for a device that is built for another arm
        _fitting('drives', part.kind, arm, (part.kind,))
    message = f'none drives the actuators of this arm; expected one of {listed(known) or "none"}'
    raise wrong_part((), dict(value), message)


def drives_of(arm: Part) -> dict[str, type[ConfigBlock]]:
    """Return the devices that can drive an arm, with their classes; imports all devices."""
    return {part.kind: part.config for part in parts('drives') if _fits(part, arm)}


def devices_of(arm: Part, gripper: Part, value: Mapping[str, Any], strict: bool | None) -> Devices:
    """Return the devices of a `drives` block; raise ValidationError with all its problems."""
    which = device_parts(arm, gripper, value)
    return Devices.of(
        which.driving.kind, _blocks(which.classes, frozenset(which.optional), value, strict)
    )


def sensors_of(value: Mapping[str, Any], strict: bool | None) -> Sensors:
    """Return the sensors of a `sensors` block; raise ValidationError with all its problems."""
    classes = {name: _measuring(name) for name in value if name in kinds_of('sensors')}
    unknown = [name for name in value if name not in classes]
    if unknown:  # so that the error can suggest a sensor
        classes |= sensor_classes()
    blocks = _blocks(classes, frozenset(set(classes) - set(value)), value, strict)
    given = {name: block for name, block in blocks.items() if block is not None}
    poses = given.get(KIND)
    if poses is None:
        rates = [block.rate_hz for block in given.values() if hasattr(block, 'rate_hz')]
        if not rates:
            raise _errors([InitErrorDetails(type='missing', loc=(KIND,), input=value)])
        poses = PoseTopicConfig(rate_hz=rates[0])
    return Sensors.of(given, cast('PoseTopicConfig', poses))


def sensor_classes() -> dict[str, type[ConfigBlock]]:
    """Return the sensors allowed in a `sensors` block, with their classes."""
    return {part.kind: part.config for part in parts('sensors') if _stands_alone(part)}


def _measuring(kind: str) -> type[ConfigBlock]:
    part = _found('sensors', kind, (kind,))
    if _stands_alone(part):
        return part.config
    known = listed(sensor_classes())
    message = f'is no real sensor: it has no role {DRIVER!r}; known: {known}'
    raise wrong_part((kind,), {}, message)


def _stands_alone(part: Part) -> bool:
    return part.kind == KIND or DRIVER in part.builders


def _blocks(
    classes: Mapping[str, type[ConfigBlock]],
    optional: frozenset[str],
    value: Mapping[str, Any],
    strict: bool | None,
) -> dict[str, ConfigBlock | None]:
    """Return the blocks of a mapping by name; raise ValidationError with all its problems."""
    whole = validated(_all_blocks(tuple(classes.items()), optional), value, strict)
    return {name: getattr(whole, name) for name in classes}


@cache
def _all_blocks(
    classes: tuple[tuple[str, type[ConfigBlock]], ...], optional: frozenset[str]
) -> type[ConfigBlock]:
    """Return a class for a mapping of blocks; cached, as making it is slower than using it."""
    fields: dict[str, Any] = {
        name: (config | None, None) if name in optional else (config, ...)
        for name, config in classes
    }
    return create_model('blocks', __base__=ConfigBlock, **fields)


def validated(config: type[BlockT], value: Any, strict: bool | None) -> BlockT:
    """Return a block of a rig file, validated with the fields of its part."""
    return config.model_validate(value, strict=strict, context={'strict': strict})


def checks_of(
    arm: Part,
    plant: PlantBase | None,
    devices: Devices | None,
    sensors: Sensors | None,
    gripper: GripperConfig | None,
) -> tuple[Check, ...]:
    """
    Return the consistency checks of a rig, from all its parts.

    An arm's checks of the plant assume its usual body; another body brings its own checks.
    """
    found = _checks_of_part(arm)
    if devices is not None:
        found += _checks_of_part(find_part('drives', devices.DRIVING))
    for kind in sensors.devices() if sensors is not None else ():
        found += _checks_of_part(find_part('sensors', kind))
    if gripper is not None:
        found += _checks_of_part(find_part('gripper', gripper.kind))
    if plant is not None and plant.kind not in (None, _config(arm).BODY):
        found = [check for check in found if 'plant' not in check.needs]
        found += _checks_of_part(find_part('body', plant.kind))
    return (*COMMON_CHECKS, *found)


def _checks_of_part(part: Part) -> list[Check]:
    found: list[Check] = []
    for target in part.checks:
        found += part.named(target)
    return found


def _classes(part: Part, targets: Mapping[str, str]) -> dict[str, type[ConfigBlock]]:
    return {name: part.named(target) for name, target in targets.items()}


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
    """Return the named part if it is built for an attachment of this arm; else raise."""
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
