"""A kind of arm with other parts than its usual ones, as a rig file names them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, get_args

from pydantic import Field, create_model

from softarm_ros.geometry.parts import Part
from softarm_ros.plant.config import PlantBase
from softarm_ros.rigs.checks import CHECKS as COMMON_CHECKS
from softarm_ros.rigs.checks import Check
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.errors import FieldPath, Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part, kinds_of, parts
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.yaml_document import YamlDocument


def composed(schema: type[Rig], document: YamlDocument) -> type[Rig]:
    """
    Return the schema with the parts that a document names in place of the usual ones.

    `plant.kind` is another body; a device that the schema has no field for is another drive.

    Raises
    ------
    RigError
        If there is no such part, or it is not built for what the drives of this arm move.

    """
    body = document.value_at(('plant', 'kind'))
    other_body = body if isinstance(body, str) and body != schema.BODY else None
    if other_body is not None:
        _fitting('body', other_body, schema.DRIVES, ('plant', 'kind'), document)
    devices = document.value_at(('devices',))
    drive = _other_drive(schema, devices, document) if isinstance(devices, dict) else None
    return with_parts(schema, other_body, drive)


@cache
def with_parts(schema: type[Rig], body: str | None, drive: str | None) -> type[Rig]:
    """Return the schema with another body and another drive (None: the usual one)."""
    fields: dict[str, Any] = {}
    checks = list(schema.CHECKS)
    if body is not None:
        part = find_part('body', body)
        if not issubclass(part.config, PlantBase):
            raise RigError('', f'part {part.name}: its config is no PlantBase')
        fields['plant'] = (part.config | None, Field(default=None, description=part.summary))
        checks = [*_without(checks, 'plant'), *_checks_of(part)]
    if drive is not None:
        part = find_part('drives', drive)
        block = _devices_with(schema, drive, part)
        fields['devices'] = (block | None, Field(default=None, description=part.summary))
        checks = [*_without(checks, 'devices'), *_checks_of(part)]
    if not fields:
        return schema
    made: type[Rig] = create_model(schema.__name__, __base__=schema, **fields)
    made.CHECKS = tuple(checks)
    made.COMPOSED_OF = (schema, body, drive)
    return made


def restored(schema: type[Rig], body: str | None, drive: str | None, data: dict[str, Any]) -> Rig:
    """Return the rig of a composed schema that has travelled between processes."""
    return with_parts(schema, body, drive).model_validate(data)


def _fitting(family: str, kind: str, role: str, path: FieldPath, document: YamlDocument) -> None:
    """Raise RigError, with its place, unless there is such a part and it has the role."""
    known = [part.kind for part in parts(family) if role in part.builders]
    if kind in known:
        return
    if kind in kinds_of(family):
        builders = [name for name in find_part(family, kind).builders if ', ' not in name]
        why = f'is built for {listed(builders)}, and this arm has {role!r}; '
    else:
        why = f'no such {family}{did_you_mean(kind, known)}; '
    problem = Problem(path, f'{why}known: {listed(known)}', repr(kind), document.line_of(path))
    raise RigError(document.source, [problem])


def _other_drive(schema: type[Rig], devices: dict[str, Any], document: YamlDocument) -> str | None:
    """Return the device that drives the actuators and is not the usual one, or None."""
    usual = set(_devices_of(schema).model_fields)
    registered = kinds_of('drives')
    others = [name for name in devices if name not in usual and name in registered]
    if not others:
        return None
    _fitting('drives', others[0], schema.DRIVES, ('devices', others[0]), document)
    return others[0]


def _devices_of(schema: type[Rig]) -> type[Devices]:
    """Return the class of the schema's `devices`."""
    given = get_args(schema.model_fields['devices'].annotation)
    (own,) = [member for member in given if member is not NoneType]
    block: type[Devices] = own
    return block


def _devices_with(schema: type[Rig], drive: str, part: Part) -> type[Devices]:
    """Return devices with another drive; what else the usual ones have may be left out."""
    usual = _devices_of(schema)
    kept: dict[str, Any] = {
        name: (field.annotation | None, Field(default=None, description=field.description))
        for name, field in usual.model_fields.items()
        if name != usual.DRIVING and field.annotation is not None
    }
    kept[drive] = (part.config, Field(description=part.summary))
    made: type[Devices] = create_model('Devices', __base__=Devices, **kept)
    made.DRIVING = drive
    return made


def _without(checks: list[Check], field: str) -> list[Check]:
    """Return the checks that concern every rig, or do not look at a field."""
    return [check for check in checks if check in COMMON_CHECKS or field not in check.needs]


def _checks_of(part: Part) -> list[Check]:
    found: list[Check] = []
    for target in part.checks:
        module, _, name = target.partition(':')
        found += getattr(import_module(module), name)
    return found
