"""The fields of a rig file, given the parts it names, and checks between its valid fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema

from softarm_ros.control.gripper import GRIPPER
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.rigs.checks import find_inconsistencies
from softarm_ros.rigs.errors import FieldPath, Problem
from softarm_ros.rigs.expectation import Schema, SchemaTree
from softarm_ros.rigs.rig_parts import (
    body_part,
    checks_of,
    combination_problems,
    device_parts,
    devices_of,
    drives_of,
    gripper_fields,
    named_arm,
    named_gripper,
    plant_of,
    sensor_classes,
    sensor_part,
    sensors_of,
    validated,
)
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.validation import adapter_of
from softarm_ros.rigs.yaml_document import YamlDocument


class RigSchema:
    """Describes the fields of a rig file for error messages; see `validation.Described`."""

    def tree(self, document: YamlDocument) -> SchemaTree:
        """Return the schema of the rig and of the parts that the document names."""
        arm = named_arm(document.data)
        if arm is None:
            return SchemaTree(Rig.model_json_schema())
        body, sensor = _body(arm, document), _sensor(document)
        gripper, devices = named_gripper(document.data), _devices(arm, document)
        grips = body is not None and GRIPPER in body.model_fields and 'plant' in gripper.takes
        simulated = gripper_fields(gripper, 'plant') if grips else None
        return _tree(arm.config, body, sensor, gripper.config, simulated, tuple(devices.items()))

    def between(self, document: YamlDocument, wrong: set[FieldPath]) -> list[Problem]:
        """Return the problems between those fields that are valid by themselves."""
        arm = named_arm(document.data)
        if arm is None:
            return []
        data, blocks = document.data, {path[0] for path in wrong}
        apart, gripper = {'arm', 'gripper', 'sensors', 'plant', 'drives'}, named_gripper(data)
        fields = _valid(Rig, data, blocks | apart)
        if 'chosen_model' in fields:
            fields['default_model'] = fields['chosen_model'].kind
        if ('arm',) not in wrong and isinstance(data.get('arm'), dict):
            of_arm = {path[1] for path in wrong if path[0] == 'arm'}
            fields |= _valid(arm.config, data['arm'], of_arm)
            if not of_arm:
                fields['arm'] = validated(arm.config, data['arm'], True)
        if 'gripper' not in blocks and data.get('gripper') is not None:
            fields['gripper'] = validated(gripper.config, data['gripper'], True)
        if 'drives' not in blocks and data.get('drives') is not None:
            fields['devices'] = devices_of(arm, gripper, data['drives'], True)
        if 'sensors' not in blocks and data.get('sensors') is not None:
            fields['sensors'] = sensors_of(data['sensors'], True)
            fields['feedback'] = fields['sensors'].poses
            if 'plant' not in blocks and data.get('plant') is not None:
                poses, medium = fields['feedback'], fields.get('medium', 'air')
                fields['plant'] = plant_of(arm, gripper, data['plant'], poses, medium, True)
        plant, devices = fields.get('plant'), fields.get('devices')
        checks = checks_of(arm, plant, devices, fields.get('sensors'), fields.get('gripper'))
        found = find_inconsistencies(SimpleNamespace(**fields), checks, fields)
        return [*found, *combination_problems(arm, plant, devices)]


def _valid(
    config: type[ConfigBlock], data: Mapping[str, Any], wrong: set[str | int]
) -> dict[str, Any]:
    """Return the fields of a block that are valid by themselves, including defaults."""
    fields: dict[str, Any] = {}
    for name, field in config.model_fields.items():
        written = field.alias or name
        if written in wrong:
            continue
        if written not in data:
            fields[name] = field.get_default(call_default_factory=True)
        else:
            annotation: Any = field.annotation
            fields[name] = adapter_of(annotation).validate_python(data[written], strict=True)
    return fields


def _body(arm: Part, document: YamlDocument) -> type[ConfigBlock] | None:
    plant = document.value_at(('plant',))
    try:
        return body_part(arm, plant.get('kind') if isinstance(plant, dict) else None).config
    except ValidationError:
        return None


def _sensor(document: YamlDocument) -> type[ConfigBlock] | None:
    try:
        return sensor_part(document.value_at(('plant', 'pose_sensor', 'kind'))).config
    except ValidationError:
        return None


def _devices(arm: Part, document: YamlDocument) -> dict[str, type[ConfigBlock]]:
    devices = document.value_at(('drives',))
    try:
        if isinstance(devices, dict):
            return device_parts(arm, named_gripper(document.data), devices).classes
    except ValidationError:
        pass
    return drives_of(arm)


@cache
def _tree(
    arm: type[ConfigBlock],
    body: type[ConfigBlock] | None,
    sensor: type[ConfigBlock] | None,
    gripper: type[ConfigBlock],
    simulated: type[ConfigBlock] | None,
    devices: tuple[tuple[str, type[ConfigBlock]], ...],
) -> SchemaTree:
    configs: list[type[ConfigBlock]] = [Rig, arm, *(config for _, config in devices)]
    configs += sensor_classes().values()
    beside = (body, sensor, gripper, simulated)
    configs += [config for config in beside if config is not None]
    asked: list[tuple[type[BaseModel], Literal['validation']]]
    asked = [(config, 'validation') for config in dict.fromkeys(configs)]
    found, whole = models_json_schema(asked)
    definitions: dict[str, Schema] = whole['$defs']

    def of(config: type[ConfigBlock]) -> Schema:
        return found[(config, 'validation')]

    tree = SchemaTree({'$defs': definitions})
    rig = tree.resolve(of(Rig))
    fields = {**rig['properties'], 'arm': of(arm)}
    if body is not None and sensor is not None:
        tree.resolve(of(body))['properties']['pose_sensor'] = of(sensor)
    if body is not None and simulated is not None:
        held = tree.resolve(of(body))['properties']
        held['gripper'] = {**held['gripper'], 'anyOf': [of(simulated), {'type': 'null'}]}
    fields['gripper'] = {**fields['gripper'], 'anyOf': [of(gripper), {'type': 'null'}]}
    if body is not None:
        fields['plant'] = {**fields['plant'], 'anyOf': [of(body), {'type': 'null'}]}
    blocks = {'type': 'object', 'properties': {name: of(c) for name, c in devices}}
    fields['drives'] = {**fields['drives'], 'anyOf': [blocks, {'type': 'null'}]}
    properties = {name: of(config) for name, config in sensor_classes().items()}
    fields['sensors'] = {'type': 'object', 'properties': properties}
    return SchemaTree({**rig, 'properties': fields, '$defs': definitions})
